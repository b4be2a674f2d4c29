// Every vector, replayed by the C++ library.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/canonical_json.h"
#include "protocol/script.h"
#include "wire/event.h"

namespace hapax::protocol {

namespace {

Json read_file(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return parse_json(text.str());
}

TEST(ProtocolVectors, TheLibraryAnswersEachAsWritten) {
  std::size_t turns = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(HAPAX_VECTORS)) {
    if (entry.path().extension() != ".json") continue;
    const Json vector = read_file(entry.path());
    for (const Json& turn : vector.find("turns")->items) {
      std::vector<Event> history;
      for (const Json& event : turn.find("history")->items) history.push_back(wire::read_event(event));
      const std::string found = describe(run_script(*turn.find("code"), history));
      EXPECT_EQ(canonical_json(parse_json(found)), canonical_json(*turn.find("turn"))) << entry.path();
      ++turns;
    }
  }
  EXPECT_GE(turns, 56U);
}

}  // namespace

}  // namespace hapax::protocol
