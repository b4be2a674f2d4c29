// The identity of a submission: which two submissions are the same.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/hash.h"
#include "core/json.h"

namespace hapax {

// Stored by number: do not change the numbers.
enum class Strategy : std::uint8_t { caller_provided = 0, strict = 1, contextual = 2, always_unique = 3 };

std::string_view to_string(Strategy strategy);
std::optional<Strategy> parse_strategy(std::string_view text);

// Where a key is unique. The tag keeps a custom scope named "payments" apart from the queue of that name.
struct Scope {
  // Stored by number: do not change the numbers.
  enum class Tag : std::uint8_t {
    type = 0,
    queue = 1,
    global = 2,
    custom = 3,
    workflow = 4  // of workflow ids, and only of those
  };

  Tag tag = Tag::type;
  std::string name;  // of a custom scope only; a type's or queue's name comes from the submission

  bool operator==(const Scope&) const = default;

  // "type", "queue", "global"; any other text is a custom scope.
  static Scope parse(std::string_view text);
  std::string to_string() const;
};

// The scope of one submission, with the name of its type or queue. Scopes of different tags may have the same name.
struct NamedScope {
  Scope::Tag tag = Scope::Tag::type;
  std::string name;  // of the type, the queue or the custom scope; empty for global and workflow

  bool operator==(const NamedScope&) const = default;
};
NamedScope name_scope(const Scope& scope, std::string_view type, std::string_view queue);

// What makes a submission the same as another one. Absent for always_unique.
struct Identity {
  IdentityHash hash;
  Strategy strategy = Strategy::caller_provided;
  Scope scope;

  bool operator==(const Identity&) const = default;

  // A duplicate of the same key must have the same input. The other strategies cannot conflict in theirs: strict is the
  // input itself, contextual compares only the fields it names.
  bool compares_input() const { return strategy == Strategy::caller_provided; }
};

InputHash hash_input(std::string_view canonical_input);

// The parts of a hash, named so that they are not mixed up.
struct IdentityParts {
  std::string_view name_space;
  std::string_view type;
  std::string_view queue;
  Scope scope;
};

IdentityHash hash_key(const IdentityParts& parts, std::string_view key);
// Workflow ids have a separate scope in each namespace.
Identity workflow_identity(std::string_view name_space, std::string_view workflow_id);
IdentityHash hash_strict(const IdentityParts& parts, const Json& input);

// An identity field that the input lacks is named by its pointer.
struct FieldMissing {
  std::string pointer;
};
std::variant<IdentityHash, FieldMissing> hash_contextual(const IdentityParts& parts, const Json& input,
                                                         const std::vector<std::string>& fields);

}  // namespace hapax
