#include "store/s3/documents/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <span>

#include "core/claim_secret.h"
#include "core/hash.h"
#include "core/hex.h"

namespace hapax::s3 {

namespace {

constexpr std::int64_t kLastTime = (std::int64_t{1} << 48) - 1;  // twelve hexadecimal digits

bool stands_for_itself(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

std::string digits(std::int64_t value) { return fmt::format("{:012x}", std::clamp<std::int64_t>(value, 0, kLastTime)); }
std::string digits(Time time) { return digits(to_ms(time)); }

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// High priorities first.
std::string rank(std::int32_t priority) {
  return fmt::format("{:08x}", static_cast<std::uint32_t>(INT32_MAX - static_cast<std::int64_t>(priority)));
}
std::int32_t priority_of(std::int64_t rank) { return static_cast<std::int32_t>(INT32_MAX - rank); }

std::string hex(std::span<const std::uint8_t> bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes) append_hex(text, byte);
  return text;
}

std::string hex(const ExecutionId& id) { return hex(id.bytes); }

ExecutionId complement(ExecutionId id) {
  for (std::uint8_t& byte : id.bytes) byte = static_cast<std::uint8_t>(~byte);
  return id;
}

std::optional<ExecutionId> id_from_hex(std::string_view text) {
  if (text.size() != 32) return std::nullopt;
  ExecutionId id;
  for (std::size_t i = 0; i < 16; ++i) {
    const auto byte = parse_hex(text[2 * i], text[2 * i + 1]);
    if (!byte) return std::nullopt;
    id.bytes[i] = *byte;
  }
  return id;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::string_view letter(Kind kind) { return kind == Kind::task ? "t" : "w"; }
Kind kind_of(std::string_view letter) { return letter == "w" ? Kind::workflow : Kind::task; }

constexpr std::string_view kNoKey = "none";

constexpr std::string_view kGlobal = "global", kWorkflow = "workflow";

std::string escape_first(std::string_view text) {
  std::string out = "%";
  append_hex(out, static_cast<std::uint8_t>(text.front()));
  return out + escape(text.substr(1));
}

// A type's folder has its own name. The others have a "=" in theirs, which is escaped in names, or one of two words,
// whose first letter is escaped if they are the name of a type.
std::string scope_folder(const NamedScope& scope) {
  switch (scope.tag) {
    case Scope::Tag::type: break;
    case Scope::Tag::queue: return "queue=" + escape(scope.name);
    case Scope::Tag::global: return std::string(kGlobal);
    case Scope::Tag::custom: return "custom=" + escape(scope.name);
    case Scope::Tag::workflow: return std::string(kWorkflow);
  }
  const bool is_taken = scope.name == kGlobal || scope.name == kWorkflow;
  return is_taken ? escape_first(scope.name) : escape(scope.name);
}

std::string_view end_word(End end) {
  switch (end) {
    case End::identity: return "identities";
    case End::request: return "requests";
    case End::grave: return "graves";
  }
  return "graves";
}

}  // namespace

std::string escape(std::string_view text) {
  if (text.empty()) return "%";
  std::string out;
  for (const char c : text) {
    if (stands_for_itself(c)) {
      out += c;
    } else {
      out += '%';
      append_hex(out, static_cast<std::uint8_t>(c));
    }
  }
  return out;
}

std::string unescape(std::string_view segment) {
  std::string out;
  for (std::size_t i = 0; i < segment.size(); ++i) {
    const auto byte =
        segment[i] == '%' && i + 2 < segment.size() ? parse_hex(segment[i + 1], segment[i + 2]) : std::nullopt;
    if (byte) {
      out += static_cast<char>(*byte);
      i += 2;
    } else if (segment[i] != '%') {
      out += segment[i];
    }
  }
  return out;
}

std::string task_name(const ExecutionId& id) {
  std::string shard;
  append_hex(shard, id.bytes[15]);
  return fmt::format("{}{}/{}.json", kTasks, shard, id.to_string());
}

std::optional<ExecutionId> task_id(std::string_view task_name) {
  const std::size_t slash = task_name.rfind('/');
  if (slash == std::string_view::npos || !task_name.ends_with(".json")) return std::nullopt;
  return ExecutionId::parse(task_name.substr(slash + 1, task_name.size() - slash - 6));
}

std::string record_name_in(std::string_view folder, const IdentityHash& hash) {
  return fmt::format("{}{}/{}.json", kRecords, folder, hex(hash.bytes));
}

std::string record_name(const NamedScope& scope, const IdentityHash& hash) {
  return record_name_in(scope_folder(scope), hash);
}

std::string record_name(const Execution& execution) {
  return record_name(name_scope(execution.identity->scope, execution.type, execution.queue), execution.identity->hash);
}

std::string request_name(std::string_view name_space, std::string_view request_key) {
  return fmt::format("requests/{}/{}.json", escape(name_space), hex(sha256(request_key)));
}

std::string setting_name(const SettingDocument& setting) {
  const bool queue = setting.kind == SettingDocument::Kind::queue;
  return fmt::format("{}{}/{}/{}.json", kSettings, escape(setting.name_space), queue ? "queue" : "type",
                     escape(setting.name));
}

std::string queue_name(std::string_view name_space, std::string_view queue) {
  return fmt::format("queues/{}/{}.json", escape(name_space), escape(queue));
}

std::string used_queue_name(std::string_view name_space, std::string_view queue) {
  return fmt::format("{}{}/{}", kUsedQueues, escape(name_space), escape(queue));
}

std::optional<UsedQueue> parse_used_queue(std::string_view name) {
  if (!name.starts_with(kUsedQueues)) return std::nullopt;
  name.remove_prefix(kUsedQueues.size());
  const auto slash = name.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  return UsedQueue{unescape(name.substr(0, slash)), unescape(name.substr(slash + 1))};
}

std::string transaction_name(std::string_view id) { return fmt::format("{}{}", kTransactions, id); }

std::string workers_prefix(std::string_view name_space) { return fmt::format("{}{}/", kWorkers, escape(name_space)); }

std::string worker_name(std::string_view name_space, std::string_view worker) {
  return fmt::format("{}{}.json", workers_prefix(name_space), escape(worker));
}

// ---- hints

std::string ready_prefix(std::string_view name_space, std::string_view queue, Kind kind) {
  return fmt::format("{}{}/{}/{}/", kReady, escape(name_space), escape(queue), letter(kind));
}
std::string ready_prefix(std::string_view name_space, std::string_view queue, Kind kind, std::string_view type) {
  return fmt::format("{}{}/", ready_prefix(name_space, queue, kind), type);
}
std::string closed_prefix(std::string_view name_space, std::string_view queue, Kind kind) {
  return fmt::format("{}{}/{}/{}/", kClosed, escape(name_space), escape(queue), letter(kind));
}
std::string running_prefix(std::string_view name_space, std::string_view queue, Kind kind) {
  return fmt::format("{}{}/{}/{}/", kRunning, escape(name_space), escape(queue), letter(kind));
}
std::string namespace_prefix(std::string_view hints, std::string_view name_space) {
  return fmt::format("{}{}/", hints, escape(name_space));
}
std::string all_runs_prefix(std::string_view name_space) { return fmt::format("runs/{}/", escape(name_space)); }
std::string steps_prefix(const ExecutionId& run) { return fmt::format("steps/{}/", hex(run)); }

namespace {

std::string runs_prefix_of(std::string_view name_space, std::string_view digest) {
  return fmt::format("runs/{}/{}/", escape(name_space), digest);
}
std::string digest_of_workflow(std::string_view workflow_id) { return hex(sha256(workflow_id)); }

}  // namespace

std::string runs_prefix(std::string_view name_space, std::string_view workflow_id) {
  return runs_prefix_of(name_space, digest_of_workflow(workflow_id));
}

std::string new_mark() {
  std::array<std::uint8_t, 6> random;
  fill_random(random.data(), random.size());
  return hex(random);
}

namespace {

std::string short_digest(std::string_view text) {
  const Digest digest = sha256(text);
  return hex(std::span(digest).first(8));
}

}  // namespace

std::string digest_of_key(std::string_view concurrency_key) { return short_digest(concurrency_key); }
std::string digest_of_type(std::string_view type) { return short_digest(type); }
// A secret is never part of a name.
std::string digest_of_claim(const LeaseSecret& secret) {
  return short_digest({reinterpret_cast<const char*>(secret.bytes.data()), secret.bytes.size()});
}

std::string Hint::name() const {
  const std::string_view key = concurrency_key.empty() ? kNoKey : std::string_view(concurrency_key);
  switch (kind) {
    case Kind::ready: {
      const std::string prefix = ready_prefix(name_space, queue, execution_kind, type);
      // "at" comes before "now": one listing shows what has become due and what is ready.
      if (delayed) return fmt::format("{}at-{}-{}-{}-{}-{}", prefix, digits(time), rank(priority), hex(id), key, mark);
      return fmt::format("{}now-{}-{}-{}-{}-{}", prefix, rank(priority), digits(time), hex(id), key, mark);
    }
    case Kind::running:
      return fmt::format("{}{}-{}-{}-{}-{}", running_prefix(name_space, queue, execution_kind), digits(time), hex(id),
                         key, claim.empty() ? kNoKey : std::string_view(claim), mark);
    case Kind::due: return fmt::format("{}{}-{}-{}", kDue, digits(time), hex(id), mark);
    case Kind::closed:
      return fmt::format("{}{}/{}/{}/{}-{}-{}", kClosed, escape(name_space), escape(queue), letter(execution_kind),
                         digits(time), hex(id), mark);
    case Kind::step: return fmt::format("steps/{}/{}-{}", group, hex(id), mark);
    case Kind::run:
      return fmt::format("{}{}-{}-{}", runs_prefix_of(name_space, group), digits(kLastTime - to_ms(time)),
                         hex(complement(id)), mark);
  }
  return {};
}

bool Hint::serves(const Hint& wanted) const {
  if (kind != wanted.kind || id != wanted.id) return false;
  switch (kind) {
    case Kind::running: return time <= wanted.time && claim == wanted.claim;
    case Kind::due: return time <= wanted.time;
    case Kind::ready: return time == wanted.time && priority == wanted.priority;
    default: return time == wanted.time;
  }
}

namespace {

std::optional<Hint> parse_ready(const std::vector<std::string_view>& path) {
  if (path.size() != 6) return std::nullopt;
  const auto parts = split(path[5], '-');
  if (parts.size() != 6) return std::nullopt;
  Hint hint;
  hint.kind = Hint::Kind::ready;
  hint.delayed = parts[0] == "at";
  const auto time = number(parts[hint.delayed ? 1 : 2]), rank = number(parts[hint.delayed ? 2 : 1]);
  const auto id = id_from_hex(parts[3]);
  if (!time || !rank || !id) return std::nullopt;
  hint.time = from_ms(*time);
  hint.priority = priority_of(*rank);
  hint.id = *id;
  if (parts[4] != kNoKey) hint.concurrency_key = parts[4];
  hint.mark = parts[5];
  hint.name_space = unescape(path[1]);
  hint.queue = unescape(path[2]);
  hint.execution_kind = kind_of(path[3]);
  hint.type = path[4];
  return hint;
}

std::optional<Hint> parse_running(const std::vector<std::string_view>& path) {
  if (path.size() != 5) return std::nullopt;
  const auto parts = split(path[4], '-');
  if (parts.size() != 5) return std::nullopt;
  Hint hint;
  hint.kind = Hint::Kind::running;
  const auto time = number(parts[0]);
  const auto id = id_from_hex(parts[1]);
  if (!time || !id) return std::nullopt;
  hint.time = from_ms(*time);
  hint.id = *id;
  if (parts[2] != kNoKey) hint.concurrency_key = parts[2];
  if (parts[3] != kNoKey) hint.claim = parts[3];
  hint.mark = parts[4];
  hint.name_space = unescape(path[1]);
  hint.queue = unescape(path[2]);
  hint.execution_kind = kind_of(path[3]);
  return hint;
}

// {time}-{id}-{mark}
std::optional<Hint> parse_timed(Hint::Kind kind, std::string_view segment) {
  const auto parts = split(segment, '-');
  if (parts.size() != 3) return std::nullopt;
  const auto time = number(parts[0]);
  const auto id = id_from_hex(parts[1]);
  if (!time || !id) return std::nullopt;
  Hint hint;
  hint.kind = kind;
  hint.time = from_ms(*time);
  hint.id = *id;
  hint.mark = parts[2];
  return hint;
}

std::optional<Hint> parse_step(const std::vector<std::string_view>& path) {
  const auto parts = path.size() == 3 ? split(path[2], '-') : std::vector<std::string_view>();
  const auto id = parts.size() == 2 ? id_from_hex(parts[0]) : std::nullopt;
  if (!id) return std::nullopt;
  Hint hint;
  hint.kind = Hint::Kind::step;
  hint.id = *id;
  hint.group = path[1];
  hint.mark = parts[1];
  return hint;
}

}  // namespace

std::optional<Hint> Hint::parse(std::string_view name) {
  const auto path = split(name, '/');
  if (path[0] == "ready") return parse_ready(path);
  if (path[0] == "running") return parse_running(path);
  if (path[0] == "due" && path.size() == 2) return parse_timed(Kind::due, path[1]);
  if (path[0] == "steps") return parse_step(path);
  if (path[0] == "closed" && path.size() == 5) {
    auto hint = parse_timed(Kind::closed, path[4]);
    if (!hint) return std::nullopt;
    hint->name_space = unescape(path[1]);
    hint->queue = unescape(path[2]);
    hint->execution_kind = kind_of(path[3]);
    return hint;
  }
  if (path[0] == "runs" && path.size() == 4) {
    auto hint = parse_timed(Kind::run, path[3]);
    if (!hint) return std::nullopt;
    hint->time = from_ms(kLastTime - to_ms(hint->time));
    hint->id = complement(hint->id);
    hint->name_space = unescape(path[1]);
    hint->group = path[2];
    return hint;
  }
  return std::nullopt;
}

std::vector<Hint> wanted_hints(const Execution& execution, Time now) {
  std::vector<Hint> hints;
  const auto add = [&](Hint::Kind kind, Time time) -> Hint& {
    Hint& hint = hints.emplace_back();
    hint.kind = kind;
    hint.id = execution.id;
    hint.time = time;
    hint.name_space = execution.name_space;
    hint.queue = execution.queue;
    hint.execution_kind = execution.kind;
    if (execution.concurrency_key) hint.concurrency_key = digest_of_key(*execution.concurrency_key);
    return hint;
  };
  if (execution.status == Status::pending) {
    Hint& hint = add(Hint::Kind::ready, execution.run_at);
    hint.priority = execution.priority;
    hint.type = digest_of_type(execution.type);
    hint.delayed = execution.run_at > now;
  }
  if (const auto due = execution.due_at()) {
    Hint& hint = add(execution.status == Status::running ? Hint::Kind::running : Hint::Kind::due, *due);
    const auto& secret = execution.lease_secret;
    if (hint.kind == Hint::Kind::running && secret && is_of_repeatable_claim(*secret)) {
      hint.claim = digest_of_claim(*secret);
    }
  }
  if (is_closed(execution.status)) add(Hint::Kind::closed, *execution.finished_at);
  if (execution.parent) add(Hint::Kind::step, Time()).group = hex(*execution.parent);
  if (execution.kind == Kind::workflow) {
    add(Hint::Kind::run, execution.created_at).group = digest_of_workflow(execution.idempotency_key.value_or(""));
  }
  return hints;
}

std::string ends_prefix(End end) { return fmt::format("ends/{}/", end_word(end)); }

std::string end_hint(End end, Time time, std::string_view object_name) {
  return fmt::format("{}{}/{}", ends_prefix(end), digits(time), object_name);
}

std::optional<EndHint> parse_end_hint(End end, std::string_view name) {
  const std::string prefix = ends_prefix(end);
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  const std::size_t slash = name.find('/');
  const auto time = number(name.substr(0, slash));
  if (!time || slash == std::string_view::npos) return std::nullopt;
  return EndHint{from_ms(*time), std::string(name.substr(slash + 1))};
}

}  // namespace hapax::s3
