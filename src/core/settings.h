// The settings of queues and types, from the configuration file and the API, with their defaults.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/identity.h"
#include "core/json.h"
#include "core/policy.h"
#include "core/retry.h"
#include "core/reuse.h"

namespace hapax {

enum class OnDuplicate : std::uint8_t { give_back, error };

std::string_view to_string(OnDuplicate on_duplicate);
std::optional<OnDuplicate> parse_on_duplicate(std::string_view text);  // "return", "error"

constexpr std::int32_t kMaxPriority = 1000;  // and its negative
constexpr std::size_t kMaxIdentityFields = 64;
constexpr std::int32_t kMaxAttemptsLimit = 1000;  // of max_attempts

// The settings of a queue in a document. Every member is optional: absent means "as the next source says".
struct QueueSettings {
  std::optional<Duration> retention;
  std::optional<Rate> rate_limit;
  std::optional<std::int64_t> burst;
  std::optional<std::int32_t> max_running;
  std::optional<std::int32_t> concurrency_limit;
  std::optional<Duration> cancel_grace;
  std::optional<Duration> idempotency_ttl;
  std::optional<bool> paused;

  bool operator==(const QueueSettings&) const = default;

  // Throws InvalidField for a member that is unknown or has a bad value; `at` is the document's place.
  static QueueSettings parse(const Json& document, const std::string& at = "");

  // These settings, and `base` where they are absent.
  QueueSettings over(const QueueSettings& base) const;

  QueuePolicy policy() const;

  // The members that are set, as a JSON object that parse() reads back.
  std::string to_json() const;
  std::vector<std::string_view> names() const;
};

// What a submission may leave to its type.
struct RetrySettings {
  std::optional<Duration> initial;
  std::optional<double> factor;
  std::optional<Duration> max;

  bool operator==(const RetrySettings&) const = default;

  static RetrySettings parse(const Json& document, const std::string& at);
  RetrySettings over(const RetrySettings& base) const;
  RetryPolicy policy() const;
};

struct TypeSettings {
  std::optional<std::string> queue;
  std::optional<Strategy> identity;
  std::optional<std::vector<std::string>> identity_fields;
  std::optional<Scope> scope;
  std::optional<Reuse> reuse;
  std::optional<OnDuplicate> on_duplicate;
  std::optional<Duration> idempotency_ttl;
  std::optional<std::int32_t> priority;
  std::optional<std::int32_t> max_attempts;
  RetrySettings retry;
  std::optional<Duration> timeout;
  std::optional<Duration> deadline;

  bool operator==(const TypeSettings&) const = default;

  static TypeSettings parse(const Json& document, const std::string& at = "");
  TypeSettings over(const TypeSettings& base) const;
  // Applies a patch by RFC 7396: null removes a member. Throws InvalidField as parse() does.
  TypeSettings patched(const Json& patch) const;
  std::string to_json() const;
  std::vector<std::string_view> names() const;
};

// What is stored of a type.
struct TypeDocument {
  TypeSettings settings;   // over the API
  bool declared = true;    // put; false: only ever patched or declared in code, which never changes what is the same
  TypeSettings code = {};  // as a program declares it; the API's win

  bool operator==(const TypeDocument&) const = default;

  static TypeDocument parse(const Json& document);
  std::string to_json() const;
};

}  // namespace hapax
