#include "store/cache/cached_identity.h"

#include <bit>
#include <cstring>
#include <type_traits>

namespace hapax {

namespace {

constexpr std::string_view kVersion = "hapax/2";
constexpr std::size_t kChecksumBytes = 16;

// Numbers as 8 bytes, texts with their length before them, what may be absent with a byte that says whether it is
// there.
class Writer {
 public:
  void operator()(const std::string& text) {
    (*this)(static_cast<std::int64_t>(text.size()));
    out_ += text;
  }
  void operator()(std::int64_t number) {
    for (int shift = 0; shift < 64; shift += 8) out_ += static_cast<char>(static_cast<std::uint64_t>(number) >> shift);
  }
  void operator()(std::int32_t number) { (*this)(static_cast<std::int64_t>(number)); }
  void operator()(bool flag) { out_ += flag ? '\1' : '\0'; }
  void operator()(double number) { (*this)(std::bit_cast<std::int64_t>(number)); }
  void operator()(Time time) { (*this)(to_ms(time)); }
  void operator()(Duration duration) { (*this)(static_cast<std::int64_t>(duration.count())); }
  template <std::size_t N>
  void operator()(const std::array<std::uint8_t, N>& bytes) {
    out_.append(reinterpret_cast<const char*>(bytes.data()), N);
  }
  template <class Enum>
    requires std::is_enum_v<Enum>
  void operator()(Enum value) {
    out_ += static_cast<char>(value);
  }
  template <class Value>
  void operator()(const std::optional<Value>& value) {
    (*this)(value.has_value());
    if (value) fields(*this, *value);
  }
  template <class Value>
  void operator()(const std::vector<Value>& values) {
    (*this)(static_cast<std::int64_t>(values.size()));
    for (const Value& value : values) fields(*this, value);
  }

  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

// After the first mismatch it reads only zeros, and reports the mismatch at the end.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  void operator()(std::string& text) { text = take(length()); }
  void operator()(std::int64_t& number) {
    const std::string_view bytes = take(8);
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      value |= static_cast<std::uint64_t>(static_cast<std::uint8_t>(bytes[i])) << (8 * i);
    }
    number = static_cast<std::int64_t>(value);
  }
  void operator()(std::int32_t& number) {
    std::int64_t wide = 0;
    (*this)(wide);
    number = static_cast<std::int32_t>(wide);
    if (number != wide) whole_ = false;
  }
  void operator()(bool& flag) { flag = byte() == 1; }
  void operator()(double& number) {
    std::int64_t bits = 0;
    (*this)(bits);
    number = std::bit_cast<double>(bits);
  }
  void operator()(Time& time) {
    std::int64_t ms = 0;
    (*this)(ms);
    time = from_ms(ms);
  }
  void operator()(Duration& duration) {
    std::int64_t ms = 0;
    (*this)(ms);
    duration = Duration(ms);
  }
  template <std::size_t N>
  void operator()(std::array<std::uint8_t, N>& bytes) {
    const std::string_view text = take(N);
    std::memcpy(bytes.data(), text.data(), text.size());
  }
  template <class Enum>
    requires std::is_enum_v<Enum>
  void operator()(Enum& value) {
    value = static_cast<Enum>(byte());
  }
  template <class Value>
  void operator()(std::optional<Value>& value) {
    bool there = false;
    (*this)(there);
    if (there) fields(*this, value.emplace());
  }
  template <class Value>
  void operator()(std::vector<Value>& values) {
    for (std::size_t count = length(); count > 0 && whole_; --count) fields(*this, values.emplace_back());
  }

  bool ended_well() const { return whole_ && rest_.empty(); }

 private:
  std::uint8_t byte() {
    const std::string_view one = take(1);
    return one.empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(one.front());
  }
  // Never more than there is left: a list of that many items needs at least as many bytes.
  std::size_t length() {
    std::int64_t number = 0;
    (*this)(number);
    if (number < 0 || static_cast<std::uint64_t>(number) > rest_.size()) whole_ = false;
    return whole_ ? static_cast<std::size_t>(number) : 0;
  }
  std::string_view take(std::size_t count) {
    if (count > rest_.size()) whole_ = false;
    if (!whole_) return {};
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

  std::string_view rest_;
  bool whole_ = true;
};

// The same list of members writes and reads: they cannot disagree.
template <class Archive, class Value>
  requires(!std::is_class_v<std::remove_cvref_t<Value>> || std::is_same_v<std::remove_cvref_t<Value>, std::string> ||
           std::is_same_v<std::remove_cvref_t<Value>, Time> || std::is_same_v<std::remove_cvref_t<Value>, Duration>)
void fields(Archive& archive, Value& value) {
  archive(value);
}

template <class Value, class Plain>
concept Is = std::is_same_v<std::remove_const_t<Value>, Plain>;

template <class Archive, class Value>
  requires Is<Value, ExecutionId> || Is<Value, LeaseSecret> || Is<Value, InputHash> || Is<Value, IdentityHash>
void fields(Archive& archive, Value& value) {
  archive(value.bytes);
}

template <class Archive, Is<AttemptError> Value>
void fields(Archive& archive, Value& error) {
  archive(error.type);
  archive(error.message);
}

template <class Archive, Is<AttemptRecord> Value>
void fields(Archive& archive, Value& record) {
  archive(record.attempt);
  archive(record.worker);
  archive(record.started_at);
  archive(record.ended_at);
  fields(archive, record.error);
  fields(archive, record.secret);
  archive(record.reported);
}

template <class Archive, Is<Identity> Value>
void fields(Archive& archive, Value& identity) {
  fields(archive, identity.hash);
  archive(identity.strategy);
  archive(identity.scope.tag);
  archive(identity.scope.name);
}

template <class Archive, Is<Execution> Value>
void fields(Archive& archive, Value& execution) {
  fields(archive, execution.id);
  archive(execution.kind);
  archive(execution.name_space);
  archive(execution.type);
  archive(execution.queue);
  archive(execution.input);
  fields(archive, execution.input_hash);
  archive(execution.idempotency_key);
  archive(execution.identity);
  archive(execution.parent);
  archive(execution.priority);
  archive(execution.concurrency_key);
  archive(execution.max_attempts);
  archive(execution.retry.initial);
  archive(execution.retry.factor);
  archive(execution.retry.max);
  archive(execution.timeout);
  archive(execution.deadline_at);
  archive(execution.created_at);
  archive(execution.superseded);
  archive(execution.status);
  archive(execution.run_at);
  archive(execution.attempt);
  archive(execution.attempt_limit);
  archive(execution.started_at);
  archive(execution.finished_at);
  archive(execution.cancel_requested_at);
  archive(execution.cancel_by);
  archive(execution.result);
  archive(execution.error);
  archive(execution.failed_attempts);
  archive(execution.worker);
  archive(execution.lease_secret);
  archive(execution.lease_expires_at);
  archive(execution.attempt_ends_by);
}

// An entry with its owner stored has no tombstone.
template <class Archive, Is<CachedIdentity> Value>
void fields(Archive& archive, Value& cached) {
  fields(archive, cached.entry.identity);
  archive(cached.entry.name_space);
  fields(archive, cached.entry.owner);
  fields(archive, cached.entry.input_hash);
  archive(cached.entry.created_at);
  archive(cached.entry.expires_at);
  fields(archive, cached.owner);
}

std::string checksum(std::string_view text) {
  const Digest digest = sha256(text);
  return {reinterpret_cast<const char*>(digest.data()), kChecksumBytes};
}

}  // namespace

std::string cache_key(const IdentityHash& hash, const std::string& store_identity) {
  const std::string key = std::string(kVersion) + ":" + hash.to_string().substr(7);
  return store_identity.empty() ? key : key + ":" + store_identity;
}

std::string write_cached(const CachedIdentity& identity) {
  Writer writer;
  fields(writer, identity);
  std::string text = std::string(kVersion) + writer.take();
  return text + checksum(text);
}

std::optional<CachedIdentity> read_cached(std::string_view text, const IdentityHash& hash) {
  if (text.size() < kVersion.size() + kChecksumBytes || !text.starts_with(kVersion)) return std::nullopt;
  const std::string_view body = text.substr(0, text.size() - kChecksumBytes);
  if (checksum(body) != text.substr(body.size())) return std::nullopt;
  Reader reader(body.substr(kVersion.size()));
  CachedIdentity cached;
  fields(reader, cached);
  if (!reader.ended_well() || cached.entry.identity.hash != hash) return std::nullopt;
  if (cached.owner.status != Status::completed || !cached.owner.finished_at) return std::nullopt;
  if (cached.entry.owner != cached.owner.id || cached.entry.name_space != cached.owner.name_space) return std::nullopt;
  return cached;
}

}  // namespace hapax
