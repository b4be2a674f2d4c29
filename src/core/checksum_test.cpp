#include "core/checksum.h"

#include <gtest/gtest.h>

namespace hapax {
namespace {

using namespace std::string_view_literals;

// RFC 3720, B.4, and the check value of the polynomial.
TEST(Checksum, IsCrc32c) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43U);
}

TEST(Checksum, MayBeMadeInParts) { EXPECT_EQ(crc32c("6789", crc32c("12345")), crc32c("123456789")); }

TEST(Checksum, TellsValuesApartThatRunTogether) {
  EXPECT_NE(Checksum().add("ab"sv).add("c"sv).value(), Checksum().add("a"sv).add("bc"sv).value());
  EXPECT_NE(Checksum().add(std::optional<std::string>()).value(),
            Checksum().add(std::optional<std::string>("")).value());
}

TEST(Checksum, ChangesWithEveryTextOfAnExecution) {
  Execution execution;
  const std::uint32_t facts = checksum_of_facts(execution), state = checksum_of_state(execution);
  execution.type = "t";
  EXPECT_NE(checksum_of_facts(execution), facts);
  EXPECT_EQ(checksum_of_state(execution), state);
  execution.result = "1";
  EXPECT_NE(checksum_of_state(execution), state);
}

}  // namespace
}  // namespace hapax
