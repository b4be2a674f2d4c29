#include "core/identity.h"

#include <algorithm>

#include "core/canonical_json.h"
#include "core/packed_json.h"

namespace hapax {

std::string_view to_string(Strategy strategy) {
  switch (strategy) {
    case Strategy::caller_provided: return "caller_provided";
    case Strategy::strict: return "strict";
    case Strategy::contextual: return "contextual";
    case Strategy::always_unique: return "always_unique";
  }
  return {};
}

std::optional<Strategy> parse_strategy(std::string_view text) {
  for (Strategy strategy :
       {Strategy::caller_provided, Strategy::strict, Strategy::contextual, Strategy::always_unique}) {
    if (to_string(strategy) == text) return strategy;
  }
  return {};
}

Scope Scope::parse(std::string_view text) {
  if (text == "type") return {Tag::type, ""};
  if (text == "queue") return {Tag::queue, ""};
  if (text == "global") return {Tag::global, ""};
  return {Tag::custom, std::string(text)};
}

std::string Scope::to_string() const {
  switch (tag) {
    case Tag::type: return "type";
    case Tag::queue: return "queue";
    case Tag::global: return "global";
    case Tag::custom: return name;
    case Tag::workflow: return "workflow";
  }
  return {};
}

namespace {

std::string_view tag_word(Scope::Tag tag) {
  switch (tag) {
    case Scope::Tag::type: return "type";
    case Scope::Tag::queue: return "queue";
    case Scope::Tag::global: return "global";
    case Scope::Tag::custom: return "custom";
    case Scope::Tag::workflow: return "workflow";
  }
  return {};
}

std::string_view scope_name(const Scope& scope, std::string_view type, std::string_view queue) {
  switch (scope.tag) {
    case Scope::Tag::type: return type;
    case Scope::Tag::queue: return queue;
    case Scope::Tag::global: return "";
    case Scope::Tag::custom: return scope.name;
    case Scope::Tag::workflow: return "";
  }
  return {};
}

// The array is already canonical: strings in shortest form, no white space, and canonical material.
IdentityHash hash_identity(const IdentityParts& parts, Strategy strategy, std::string_view canonical_material) {
  std::string text = "[\"hapax/1\"";
  for (std::string_view element : {parts.name_space, tag_word(parts.scope.tag),
                                   scope_name(parts.scope, parts.type, parts.queue), to_string(strategy)}) {
    text += ',';
    append_json_string(text, element);
  }
  text += ',';
  text += canonical_material;
  text += ']';
  return IdentityHash{sha256(text)};
}

}  // namespace

NamedScope name_scope(const Scope& scope, std::string_view type, std::string_view queue) {
  return {scope.tag, std::string(scope_name(scope, type, queue))};
}

InputHash hash_input(std::string_view canonical_input) { return InputHash{sha256(canonical_input)}; }

IdentityHash hash_key(const IdentityParts& parts, std::string_view key) {
  std::string material;
  append_json_string(material, key);
  return hash_identity(parts, Strategy::caller_provided, material);
}

Identity workflow_identity(std::string_view name_space, std::string_view workflow_id) {
  const Scope scope{Scope::Tag::workflow, ""};
  const IdentityParts parts{.name_space = name_space, .type = {}, .queue = {}, .scope = scope};
  return {.hash = hash_key(parts, workflow_id), .strategy = Strategy::caller_provided, .scope = scope};
}

IdentityHash hash_strict(const IdentityParts& parts, const Json& input) {
  return hash_identity(parts, Strategy::strict, canonical_json(input));
}

std::variant<IdentityHash, FieldMissing> hash_contextual(const IdentityParts& parts, const Json& input,
                                                         const std::vector<std::string>& fields) {
  if (is_packed(input)) return hash_contextual(parts, unpacked(input), fields);
  Json material;
  material.kind = Json::Kind::object;
  for (const std::string& field : fields) {
    const Json* value = input.at(field);
    if (!value) return FieldMissing{field};
    if (!material.find(field)) material.members.emplace_back(field, *value);
  }
  return hash_identity(parts, Strategy::contextual, canonical_json(material));
}

}  // namespace hapax
