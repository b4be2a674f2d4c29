#include "core/json_packer.h"

#include <algorithm>
#include <utility>

#include "core/canonical_json.h"

namespace hapax {

void JsonPacker::open(bool object) {
  separate();
  levels_.push_back({.object = object, .begin = text_.size(), .names_begin = names_.size(), .members = {}});
  text_ += object ? '{' : '[';
}

void JsonPacker::key(std::string_view name) {
  Level& level = levels_.back();
  if (!std::exchange(level.empty, false)) text_ += ',';
  if (!level.members.empty() && !utf16_less(name_of(level.members.back()), name)) level.sorted = false;
  const auto name_begin = static_cast<std::uint32_t>(names_.size());
  names_ += name;
  level.members.push_back(
      {name_begin, static_cast<std::uint32_t>(names_.size()), static_cast<std::uint32_t>(text_.size()), 0});
  append_json_string(text_, name);
  text_ += ':';
}

void JsonPacker::add(std::string_view canonical_scalar) {
  separate();
  text_ += canonical_scalar;
  value_done();
}

bool JsonPacker::close() {
  Level& level = levels_.back();
  const bool unique = level.sorted || sort_members(level);
  text_ += level.object ? '}' : ']';
  names_.resize(level.names_begin);
  levels_.pop_back();
  value_done();
  return unique;
}

std::string JsonPacker::take() {
  text_.shrink_to_fit();
  return std::exchange(text_, {});
}

// In an object the key has written the separator.
void JsonPacker::separate() {
  if (levels_.empty() || levels_.back().object) return;
  if (!std::exchange(levels_.back().empty, false)) text_ += ',';
}

void JsonPacker::value_done() {
  if (levels_.empty() || !levels_.back().object) return;
  levels_.back().members.back().end = static_cast<std::uint32_t>(text_.size());
}

std::string_view JsonPacker::name_of(const Member& member) const {
  return std::string_view(names_).substr(member.name_begin, member.name_end - member.name_begin);
}

bool JsonPacker::sort_members(Level& level) {
  auto& members = level.members;
  std::sort(members.begin(), members.end(),
            [this](const Member& a, const Member& b) { return utf16_less(name_of(a), name_of(b)); });
  const auto same = [this](const Member& a, const Member& b) { return name_of(a) == name_of(b); };
  if (std::adjacent_find(members.begin(), members.end(), same) != members.end()) return false;
  const std::string before = text_.substr(level.begin);
  text_.resize(level.begin + 1);
  for (const Member& member : members) {
    if (text_.size() > level.begin + 1) text_ += ',';
    text_.append(before, member.begin - level.begin, member.end - member.begin);
  }
  return true;
}

}  // namespace hapax
