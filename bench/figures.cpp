#include "figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "core/json_writer.h"

namespace hapax::bench {

void Figures::add(Figure figure) {
  fmt::print(stderr, "  {}: {:.4g} {}\n", figure.name, figure.value, figure.unit);
  figures_.push_back(std::move(figure));
}

void Figures::print() const {
  fmt::print("\n{:<58} {:>12} {:<9} {:>6}  {:<34} {}\n", "measure", "value", "unit", "ratio", "against", "target");
  for (const Figure& f : figures_) {
    const std::string ratio = f.against.empty() ? "" : fmt::format("{:.2f}", f.ratio);
    const std::string target = f.target.empty() ? "" : fmt::format("{} {}", f.target, f.met ? "met" : "MISSED");
    fmt::print("{:<58} {:>12.4g} {:<9} {:>6}  {:<34} {}\n", f.name, f.value, f.unit, ratio, f.against, target);
  }
}

std::string Figures::to_json() const {
  JsonWriter json;
  json.begin_array();
  for (const Figure& f : figures_) {
    json.begin_object().key("measure").string(f.name).key("value").number(f.value).key("unit").string(f.unit);
    if (!f.against.empty()) json.key("against").string(f.against).key("ratio").number(f.ratio);
    if (!f.target.empty()) json.key("target").string(f.target).key("met").boolean(f.met);
    json.end_object();
  }
  json.end_array();
  return json.take();
}

bool Figures::all_met() const {
  return std::all_of(figures_.begin(), figures_.end(), [](const Figure& f) { return f.met; });
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace hapax::bench
