#include "cli/setting_words.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/document.h"
#include "config/nearest.h"
#include "core/canonical_json.h"
#include "core/name.h"

namespace hapax {

namespace {

const KnownSetting& require_setting(const std::string& name, const std::vector<KnownSetting>& known) {
  std::vector<std::string> names;
  for (const KnownSetting& setting : known) {
    if (setting.name == name) return setting;
    names.push_back(setting.name);
  }
  const std::string meant = suggestion(name, names);
  throw CommandError(kUsage,
                     fmt::format("unknown setting \"{}\"{}", name,
                                 meant.empty() ? fmt::format("; there are {}", fmt::join(names, ", ")) : meant));
}

Json list_of(std::string_view text) {
  Json list;
  list.kind = Json::Kind::array;
  while (!text.empty()) {
    const auto comma = text.find(',');
    list.items.push_back(json_string(std::string(text.substr(0, comma))));
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
  }
  return list;
}

// A text that does not have the setting's form stays a text: the reader of settings then says what it must be.
Json value_of(const KnownSetting& setting, const std::string& text) {
  if (setting.form == KnownSetting::Form::list) return list_of(text);
  if (setting.form == KnownSetting::Form::boolean || setting.form == KnownSetting::Form::number) {
    try {
      const Json value = parse_json(text);
      if (value.is(setting.form == KnownSetting::Form::boolean ? Json::Kind::boolean : Json::Kind::number))
        return value;
    } catch (const InvalidJson&) {}
  }
  return json_string(text);
}

void erase_member(Json& object, std::string_view name) {
  std::erase_if(object.members, [&](const auto& member) { return member.first == name; });
}

Json& object_member(Json& object, const std::string& name) {
  for (auto& [member, value] : object.members) {
    if (member == name) return value;
  }
  return object.members.emplace_back(name, json_object()).second;
}

// A removed setting is left out, or a null.
enum class TakenBack { left_out, null };

void change(Json& document, const KnownSetting& setting, const std::string& text, TakenBack taken_back) {
  const auto dot = setting.name.find('.');
  Json& object = dot == std::string::npos ? document : object_member(document, setting.name.substr(0, dot));
  const std::string name = dot == std::string::npos ? setting.name : setting.name.substr(dot + 1);
  erase_member(object, name);
  if (!text.empty()) {
    object.members.emplace_back(name, value_of(setting, text));
  } else if (taken_back == TakenBack::null) {
    object.members.emplace_back(name, Json());
  }
}

void change_all(Json& document, const std::vector<std::string>& words, const std::vector<KnownSetting>& known,
                TakenBack taken_back) {
  for (const std::string& word : words) {
    const auto equals = word.find('=');
    if (equals == std::string::npos) {
      throw CommandError(kUsage, fmt::format("\"{0}\" sets nothing; write NAME=VALUE, or NAME= to remove it", word));
    }
    if (!is_valid_utf8(word)) throw CommandError(kUsage, "a setting must be UTF-8");
    change(document, require_setting(word.substr(0, equals), known), word.substr(equals + 1), taken_back);
  }
}

std::string value_in_words(const Json& value) {
  if (value.is(Json::Kind::string)) return value.text;
  if (!value.is(Json::Kind::array)) return canonical_json(value);
  std::vector<std::string> items;
  for (const Json& item : value.items) items.push_back(item.text);
  return fmt::format("{}", fmt::join(items, ","));
}

}  // namespace

Json change_settings(const std::string& current, const std::vector<std::string>& from_file,
                     const std::vector<std::string>& words, const std::vector<KnownSetting>& known) {
  Json document = parse_json(current);
  for (const std::string& name : from_file) erase_member(document, name);
  change_all(document, words, known, TakenBack::left_out);
  return document;
}

Json settings_patch(const std::vector<std::string>& words, const std::vector<KnownSetting>& known) {
  Json patch = json_object();
  change_all(patch, words, known, TakenBack::null);
  return patch;
}

CommandError setting_error(const InvalidField& error) {
  std::string name = error.pointer().substr(error.pointer().empty() ? 0 : 1);
  std::replace(name.begin(), name.end(), '/', '.');
  return CommandError(kUsage, fmt::format("{} {}", name, error.what()));
}

std::string settings_in_words(const std::string& document) {
  std::string out;
  const auto add = [&](const std::string& name, const Json& value) {
    out += (out.empty() ? "" : " ") + name + "=" + value_in_words(value);
  };
  for (const auto& [name, value] : parse_json(document).members) {
    if (value.is(Json::Kind::object)) {
      for (const auto& [inner, inner_value] : value.members) add(name + "." + inner, inner_value);
    } else {
      add(name, value);
    }
  }
  return out;
}

}  // namespace hapax
