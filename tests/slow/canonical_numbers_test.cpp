// Canonical numbers against Node's JSON.stringify: over a million doubles, both must print the same text.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "core/canonical_json.h"

namespace hapax {
namespace {

constexpr int kRandomPatterns = 1'000'000;

// Reads bit patterns as hex, one per line, and prints each double as JSON.
constexpr std::string_view kNodeProgram =
    "const lines = require('fs').readFileSync(0, 'latin1').trimEnd().split('\\n');"
    "const view = new DataView(new ArrayBuffer(8));"
    "const out = lines.map(line => { view.setBigUint64(0, BigInt('0x' + line)); return "
    "JSON.stringify(view.getFloat64(0)); });"
    "require('fs').writeFileSync(1, out.join('\\n') + '\\n');";

struct Neighbours {
  std::vector<double>& doubles;

  // The value and the ones next to it, of both signs.
  void add(double value, int reach) {
    double below = value, above = value;
    keep(value);
    for (int i = 0; i < reach; ++i) {
      keep(below = std::nextafter(below, -HUGE_VAL));
      keep(above = std::nextafter(above, HUGE_VAL));
    }
  }

  void keep(double value) {
    if (!std::isfinite(value)) return;
    doubles.push_back(value);
    doubles.push_back(-value);
  }
};

std::vector<double> doubles_to_compare(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> doubles;
  Neighbours neighbours{doubles};
  while (doubles.size() < kRandomPatterns) {
    const auto value = std::bit_cast<double>(random());
    if (std::isfinite(value)) doubles.push_back(value);
  }
  for (int exponent = -324; exponent <= 308; ++exponent) {
    neighbours.add(std::strtod(("1e" + std::to_string(exponent)).c_str(), nullptr), 20);
  }
  for (int exponent = -1074; exponent <= 1023; ++exponent) neighbours.add(std::ldexp(1.0, exponent), 5);
  for (int i = 0; i < 100'000; ++i) {
    neighbours.keep(static_cast<double>(random() >> (random() % 64)));  // integers of every length
    neighbours.keep(std::bit_cast<double>(random() >> 12));             // subnormals
    neighbours.keep(static_cast<double>(random() % 1'000'000'000) / std::pow(10, random() % 10));  // prices
  }
  neighbours.add(0, 100);
  neighbours.add(9007199254740992.0, 100);
  return doubles;
}

class TemporaryFile {
 public:
  TemporaryFile() {
    path_ = testing::TempDir() + "hapax-numbers-XXXXXX";
    const int descriptor = mkstemp(path_.data());
    if (descriptor < 0) throw std::runtime_error("cannot make a file in " + testing::TempDir());
    close(descriptor);
  }
  ~TemporaryFile() { std::remove(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// What Node prints for each of them; nothing, and a failed test, if Node fails.
std::vector<std::string> printed_by_node(const std::vector<double>& doubles) {
  const TemporaryFile patterns, texts;
  {
    std::ofstream file(patterns.path());
    for (const double value : doubles) {
      std::array<char, 20> line{};
      std::snprintf(line.data(), line.size(), "%016llx\n",
                    static_cast<unsigned long long>(std::bit_cast<std::uint64_t>(value)));
      file << line.data();
    }
  }
  const std::string command =
      "node -e \"" + std::string(kNodeProgram) + "\" < '" + patterns.path() + "' > '" + texts.path() + "'";
  const int status = std::system(command.c_str());
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
    ADD_FAILURE() << "node is not installed; this test needs it to compare with (apt-get install nodejs)";
    return {};
  }
  if (status != 0) {
    ADD_FAILURE() << "node failed with status " << status;
    return {};
  }
  std::vector<std::string> lines;
  std::ifstream file(texts.path());
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::uint64_t choose_seed() {
  const char* given = std::getenv("HAPAX_TEST_SEED");
  return given ? std::strtoull(given, nullptr, 10) : std::random_device{}();
}

TEST(CanonicalNumbers, MatchNode) {
  const std::uint64_t seed = choose_seed();
  std::cout << "seed " << seed << " (repeat with HAPAX_TEST_SEED=" << seed << ")\n";
  const std::vector<double> doubles = doubles_to_compare(seed);
  const std::vector<std::string> expected = printed_by_node(doubles);
  ASSERT_EQ(expected.size(), doubles.size());

  int differences = 0;
  for (std::size_t i = 0; i < doubles.size() && differences < 20; ++i) {
    const std::string text = canonical_number(doubles[i]);
    // The printed text must also be read back as the same double, and print the same again.
    const Json read = parse_json(text);
    const bool same = text == expected[i] && read.as_double() == doubles[i] && canonical_json(read) == text;
    if (same) continue;
    ++differences;
    ADD_FAILURE() << "bits " << std::hex << std::bit_cast<std::uint64_t>(doubles[i]) << ": Hapax " << text << ", Node "
                  << expected[i] << ", canonical again " << canonical_json(read);
  }
  std::cout << doubles.size() << " doubles compared\n";
}

}  // namespace
}  // namespace hapax
