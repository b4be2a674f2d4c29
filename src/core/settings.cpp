#include "core/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

#include "core/field.h"
#include "core/json_writer.h"

namespace hapax {

namespace {

constexpr std::int64_t kMaxRunning = 1'000'000;  // also of one concurrency key
constexpr std::int64_t kMaxBurst = 1'000'000'000;
constexpr Duration kLongestRefill = std::chrono::days(365);
constexpr double kMaxRetryFactor = 100;

template <class T>
std::optional<T> first_of(const std::optional<T>& mine, const std::optional<T>& base) {
  return mine ? mine : base;
}

std::optional<std::int32_t> int32(std::optional<std::int64_t> number) {
  if (!number) return std::nullopt;
  return static_cast<std::int32_t>(*number);
}

std::optional<Duration> positive_duration(FieldReader& reader, std::string_view name) {
  const auto duration = reader.duration(name);
  if (duration && *duration == Duration::zero()) throw InvalidField(reader.pointer(name), "must be longer than 0");
  return duration;
}

std::optional<Scope> read_scope(FieldReader& reader, std::string_view name) {
  const auto text = reader.name(name);
  if (!text) return std::nullopt;
  return Scope::parse(*text);
}

std::optional<std::vector<std::string>> read_identity_fields(FieldReader& reader,
                                                             const std::optional<Strategy>& identity) {
  constexpr std::string_view kName = "identity_fields";
  auto fields = reader.strings(kName);
  const bool contextual = identity == Strategy::contextual;
  if (!contextual && fields) {
    throw InvalidField(reader.pointer(kName), "goes only with \"identity\": \"contextual\"");
  }
  if (contextual && !fields) {
    throw InvalidField(reader.pointer(kName), "is required with \"identity\": \"contextual\"");
  }
  if (!fields) return fields;
  if (fields->empty() || fields->size() > kMaxIdentityFields) {
    throw InvalidField(reader.pointer(kName), fmt::format("must name 1 to {} fields of the input", kMaxIdentityFields));
  }
  for (std::size_t i = 0; i < fields->size(); ++i) {
    const auto& field = (*fields)[i];
    if (!is_json_pointer(field)) {
      throw InvalidField(fmt::format("{}/{}", reader.pointer(kName), i),
                         fmt::format("must be a JSON pointer such as \"/order_id\", not \"{}\"", field));
    }
  }
  return fields;
}

// A bucket is stored as the instant at which it is full again: one that takes centuries to fill has none.
void check_burst(const FieldReader& reader, const QueueSettings& queue) {
  if (!queue.burst) return;
  if (!queue.rate_limit) throw InvalidField(reader.pointer("burst"), "goes only with a rate_limit");
  const auto [count, per, unset] = *queue.rate_limit;
  if (*queue.burst / count >= kLongestRefill / per) {
    throw InvalidField(reader.pointer("burst"), "is too large: at this rate_limit it would take over a year to refill");
  }
}

// Writes the members that are set; to_json() and names() share this list.
class SettingsWriter {
 public:
  SettingsWriter() { json_.begin_object(); }

  void add(std::string_view name, const std::optional<Duration>& value) {
    if (value) set(name).string(format_duration(*value));
  }
  void add(std::string_view name, const std::optional<Rate>& value) {
    if (value) set(name).string(format_rate(*value));
  }
  void add(std::string_view name, const std::optional<std::int64_t>& value) {
    if (value) set(name).integer(*value);
  }
  void add(std::string_view name, const std::optional<std::int32_t>& value) {
    if (value) set(name).integer(*value);
  }
  void add(std::string_view name, const std::optional<double>& value) {
    if (value) set(name).number(*value);
  }
  void add(std::string_view name, const std::optional<bool>& value) {
    if (value) set(name).boolean(*value);
  }
  void add(std::string_view name, const std::optional<std::string>& value) {
    if (value) set(name).string(*value);
  }
  void add(std::string_view name, const std::optional<std::vector<std::string>>& value) {
    if (!value) return;
    set(name).begin_array();
    for (const auto& item : *value) json_.string(item);
    json_.end_array();
  }
  void add(std::string_view name, const std::optional<Scope>& value) {
    if (value) set(name).string(value->to_string());
  }
  template <class Word>
    requires std::is_enum_v<Word>
  void add(std::string_view name, const std::optional<Word>& value) {
    if (value) set(name).string(to_string(*value));
  }
  void add(std::string_view name, const RetrySettings& retry) {
    if (retry == RetrySettings{}) return;
    SettingsWriter inner;
    inner.add("initial", retry.initial);
    inner.add("factor", retry.factor);
    inner.add("max", retry.max);
    set(name).raw(inner.take_json());
  }

  std::string take_json() { return json_.end_object().take(); }
  std::vector<std::string_view> take_names() { return std::move(names_); }

 private:
  JsonWriter& set(std::string_view name) {
    names_.push_back(name);
    return json_.key(name);
  }

  JsonWriter json_;
  std::vector<std::string_view> names_;
};

SettingsWriter write(const QueueSettings& queue) {
  SettingsWriter writer;
  writer.add("retention", queue.retention);
  writer.add("rate_limit", queue.rate_limit);
  writer.add("burst", queue.burst);
  writer.add("max_running", queue.max_running);
  writer.add("concurrency_limit", queue.concurrency_limit);
  writer.add("cancel_grace", queue.cancel_grace);
  writer.add("idempotency_ttl", queue.idempotency_ttl);
  writer.add("paused", queue.paused);
  return writer;
}

SettingsWriter write(const TypeSettings& type) {
  SettingsWriter writer;
  writer.add("queue", type.queue);
  writer.add("identity", type.identity);
  writer.add("identity_fields", type.identity_fields);
  writer.add("scope", type.scope);
  writer.add("reuse", type.reuse);
  writer.add("on_duplicate", type.on_duplicate);
  writer.add("idempotency_ttl", type.idempotency_ttl);
  writer.add("priority", type.priority);
  writer.add("max_attempts", type.max_attempts);
  writer.add("retry", type.retry);
  writer.add("timeout", type.timeout);
  writer.add("deadline", type.deadline);
  return writer;
}

}  // namespace

std::string_view to_string(OnDuplicate on_duplicate) {
  return on_duplicate == OnDuplicate::give_back ? "return" : "error";
}

std::optional<OnDuplicate> parse_on_duplicate(std::string_view text) {
  if (text == "return") return OnDuplicate::give_back;
  if (text == "error") return OnDuplicate::error;
  return std::nullopt;
}

QueueSettings QueueSettings::parse(const Json& document, const std::string& at) {
  FieldReader reader(document, at);
  QueueSettings queue;
  queue.retention = reader.duration("retention");
  queue.rate_limit = reader.rate("rate_limit");
  queue.burst = reader.integer("burst", 1, kMaxBurst);
  queue.max_running = int32(reader.integer("max_running", 1, kMaxRunning));
  queue.concurrency_limit = int32(reader.integer("concurrency_limit", 1, kMaxRunning));
  queue.cancel_grace = reader.duration("cancel_grace");
  queue.idempotency_ttl = reader.duration("idempotency_ttl");
  queue.paused = reader.boolean("paused");
  reader.done();
  check_burst(reader, queue);
  return queue;
}

QueueSettings QueueSettings::over(const QueueSettings& base) const {
  QueueSettings queue;
  queue.retention = first_of(retention, base.retention);
  queue.rate_limit = first_of(rate_limit, base.rate_limit);
  queue.burst = rate_limit ? burst : first_of(burst, base.burst);  // a burst belongs to the rate it was set with
  queue.max_running = first_of(max_running, base.max_running);
  queue.concurrency_limit = first_of(concurrency_limit, base.concurrency_limit);
  queue.cancel_grace = first_of(cancel_grace, base.cancel_grace);
  queue.idempotency_ttl = first_of(idempotency_ttl, base.idempotency_ttl);
  queue.paused = first_of(paused, base.paused);
  return queue;
}

QueuePolicy QueueSettings::policy() const {
  QueuePolicy policy;
  policy.paused = paused.value_or(policy.paused);
  policy.rate_limit = rate_limit;
  if (policy.rate_limit) policy.rate_limit->burst = burst.value_or(policy.rate_limit->count);
  policy.max_running = max_running;
  policy.concurrency_limit = concurrency_limit.value_or(policy.concurrency_limit);
  policy.cancel_grace = cancel_grace.value_or(policy.cancel_grace);
  policy.retention = retention;
  policy.idempotency_ttl = idempotency_ttl;
  return policy;
}

std::string QueueSettings::to_json() const { return write(*this).take_json(); }

std::vector<std::string_view> QueueSettings::names() const { return write(*this).take_names(); }

RetrySettings RetrySettings::parse(const Json& document, const std::string& at) {
  FieldReader reader(document, at);
  RetrySettings retry;
  retry.initial = reader.duration("initial");
  retry.factor = reader.number("factor", 1, kMaxRetryFactor);
  retry.max = reader.duration("max");
  reader.done();
  if (retry.initial && retry.max && *retry.max < *retry.initial) {
    throw InvalidField(reader.pointer("max"), "must not be shorter than \"initial\"");
  }
  return retry;
}

RetrySettings RetrySettings::over(const RetrySettings& base) const {
  return {first_of(initial, base.initial), first_of(factor, base.factor), first_of(max, base.max)};
}

RetryPolicy RetrySettings::policy() const {
  RetryPolicy policy;
  policy.initial = initial.value_or(policy.initial);
  policy.factor = factor.value_or(policy.factor);
  // A long first pause without a cap must not be shortened by the default cap.
  policy.max = max.value_or(std::max(policy.initial, policy.max));
  policy.initial = std::min(policy.initial, policy.max);  // where the two come from different documents
  return policy;
}

TypeSettings TypeSettings::parse(const Json& document, const std::string& at) {
  FieldReader reader(document, at);
  TypeSettings type;
  type.queue = reader.name("queue");
  type.identity = reader.word("identity", parse_strategy, "caller_provided, strict, contextual, always_unique");
  type.identity_fields = read_identity_fields(reader, type.identity);
  type.scope = read_scope(reader, "scope");
  type.reuse = reader.word("reuse", parse_reuse, "allow_failed, reject, allow_closed, replace");
  type.on_duplicate = reader.word("on_duplicate", parse_on_duplicate, "return, error");
  type.idempotency_ttl = reader.duration("idempotency_ttl");
  type.priority = int32(reader.integer("priority", -kMaxPriority, kMaxPriority));
  type.max_attempts = int32(reader.integer("max_attempts", 1, kMaxAttemptsLimit));
  if (const Json* retry = reader.object("retry")) type.retry = RetrySettings::parse(*retry, reader.pointer("retry"));
  type.timeout = positive_duration(reader, "timeout");
  type.deadline = positive_duration(reader, "deadline");
  reader.done();
  return type;
}

TypeSettings TypeSettings::over(const TypeSettings& base) const {
  // Fields of a strategy that was replaced must not come back.
  const bool leaves_contextual = identity && *identity != Strategy::contextual;
  TypeSettings type;
  type.queue = first_of(queue, base.queue);
  type.identity = first_of(identity, base.identity);
  type.identity_fields = leaves_contextual ? identity_fields : first_of(identity_fields, base.identity_fields);
  type.scope = first_of(scope, base.scope);
  type.reuse = first_of(reuse, base.reuse);
  type.on_duplicate = first_of(on_duplicate, base.on_duplicate);
  type.idempotency_ttl = first_of(idempotency_ttl, base.idempotency_ttl);
  type.priority = first_of(priority, base.priority);
  type.max_attempts = first_of(max_attempts, base.max_attempts);
  type.retry = retry.over(base.retry);
  type.timeout = first_of(timeout, base.timeout);
  type.deadline = first_of(deadline, base.deadline);
  return type;
}

namespace {

// A null stays, and reads as absent, so that an unknown name is reported even if it is removed.
void merge(Json& target, const Json& patch) {
  for (const auto& [name, value] : patch.members) {
    const auto found = std::find_if(target.members.begin(), target.members.end(),
                                    [&](const auto& member) { return member.first == name; });
    if (found == target.members.end()) {
      target.members.emplace_back(name, value);
    } else if (found->second.is(Json::Kind::object) && value.is(Json::Kind::object)) {
      merge(found->second, value);
    } else {
      found->second = value;
    }
  }
}

}  // namespace

TypeSettings TypeSettings::patched(const Json& patch) const {
  if (!patch.is(Json::Kind::object)) throw InvalidField("", "must be an object");
  Json document = parse_json(to_json());
  merge(document, patch);
  return parse(document);
}

TypeDocument TypeDocument::parse(const Json& document) {
  TypeDocument type;
  Json settings = document;
  if (const Json* declared = document.find("declared")) type.declared = declared->boolean;
  if (const Json* code = document.find("code")) type.code = TypeSettings::parse(*code, "/code");
  std::erase_if(settings.members,
                [](const auto& member) { return member.first == "declared" || member.first == "code"; });
  type.settings = TypeSettings::parse(settings);
  return type;
}

std::string TypeDocument::to_json() const {
  std::string text = settings.to_json();
  const auto add = [&](const std::string& member) {
    text = "{" + member + (text == "{}" ? "}" : "," + text.substr(1));
  };
  if (code != TypeSettings()) add("\"code\":" + code.to_json());
  if (!declared) add("\"declared\":false");
  return text;
}

std::string TypeSettings::to_json() const { return write(*this).take_json(); }

std::vector<std::string_view> TypeSettings::names() const { return write(*this).take_names(); }

}  // namespace hapax
