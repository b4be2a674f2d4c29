// Answers each line "expression <tab> zone <tab> seconds since the epoch" with the seconds of the next firing.
#include <cstdint>
#include <iostream>
#include <string>

#include "core/cron.h"

namespace {

std::string answer(const std::string& line) {
  using namespace hapax;
  const auto first = line.find('\t'), second = line.rfind('\t');
  const auto cron = Cron::parse(line.substr(0, first));
  if (const auto* bad = std::get_if<Cron::Bad>(&cron)) return bad->message;
  const auto zone = TimeZone::find(line.substr(first + 1, second - first - 1));
  if (!zone) return "there is no such time zone";
  const auto next = std::get<Cron>(cron).next(from_ms(std::stoll(line.substr(second + 1)) * 1000), *zone);
  return next ? std::to_string(to_ms(*next) / 1000) : "never";
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) std::cout << answer(line) << "\n";
}
