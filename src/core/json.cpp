#include "core/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <charconv>
#include <limits>
#include <set>
#include <span>
#include <stdexcept>

#include "core/canonical_json.h"
#include "core/json_packer.h"
#include "core/packed_json.h"

namespace hapax {

namespace {

constexpr std::size_t kMaxDepth = 128;
constexpr std::size_t kMaxIntegerDigits = 1000;
constexpr std::size_t kMaxShownName = 128;   // longer ones are left out of messages
constexpr std::size_t kMaxValues = 200'000;  // outside of packed ones
constexpr std::size_t kMaxPackedBytes = std::size_t{256} << 20;
constexpr std::string_view kNamedTwice = "a member is named twice";

bool written_as_integer(std::string_view literal) { return literal.find_first_of(".eE") == std::string_view::npos; }

// Whether a literal that from_chars finds out of range is too large or too small: the sign of its decimal exponent
// decides, because both limits are hundreds of places away from zero.
bool is_too_large(std::string_view literal) {
  const auto exponent_at = std::min(literal.find_first_of("eE"), literal.size());
  const auto mantissa = literal.substr(0, exponent_at);
  const auto point = std::min(mantissa.find('.'), mantissa.size());
  const auto leading = mantissa.find_first_of("123456789");
  if (leading == std::string_view::npos) return false;
  long long exponent = 0;
  if (exponent_at < literal.size()) {
    auto digits = literal.substr(exponent_at + 1);
    if (digits.starts_with('+')) digits.remove_prefix(1);
    std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
  }
  return exponent + static_cast<long long>(point) - static_cast<long long>(leading) > 0;
}

std::optional<double> to_double(std::string_view literal) {
  double value = 0;
  const auto [end, error] = std::from_chars(literal.data(), literal.data() + literal.size(), value);
  if (error == std::errc::result_out_of_range) {
    if (is_too_large(literal)) return std::nullopt;
    return literal.starts_with('-') ? -0.0 : 0.0;
  }
  if (error != std::errc() || end != literal.data() + literal.size()) return std::nullopt;
  return value;
}

// Builds the tree in place: a container does not move while it is open, because its parent grows only after it closes.
class TreeBuilder {
 public:
  static constexpr std::size_t max_object_size = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t max_array_size = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t max_key_size = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t max_string_size = std::numeric_limits<std::size_t>::max();

  using Text = boost::json::string_view;
  using Error = boost::json::error_code;

  // Packs the values of members with these names, if any.
  explicit TreeBuilder(std::span<const std::string_view> packed = {}) : packed_(packed) {}

  // Where the refused item begins, before the position at which the parser stopped.
  enum class Begins { in_front_of_number, at_opening_quote };

  bool on_document_begin(Error&) { return true; }
  bool on_document_end(Error&) { return true; }

  bool on_array_begin(Error& error) { return open(Json::Kind::array, error); }
  bool on_array_end(std::size_t, Error& error) { return close(error); }
  bool on_object_begin(Error& error) { return open(Json::Kind::object, error); }
  bool on_object_end(std::size_t, Error& error) { return close(error); }

  bool on_key_part(Text part, std::size_t, Error&) { return append(part); }
  bool on_key(Text part, std::size_t, Error& error) {
    append(part);
    if (packer_.is_open()) {
      packer_.key(text_);
      text_.clear();
      return true;
    }
    auto& frame = open_.back();
    if (is_named_twice(frame, text_)) {
      begins_ = Begins::at_opening_quote;
      return refuse(error, text_.size() > kMaxShownName ? std::string(kNamedTwice)
                                                        : fmt::format("the member \"{}\" is named twice", text_));
    }
    frame.node->members.emplace_back(std::move(text_), Json{});
    text_.clear();
    return true;
  }

  bool on_string_part(Text part, std::size_t, Error&) { return append(part); }
  bool on_string(Text part, std::size_t, Error& error) {
    append(part);
    return add_text(Json::Kind::string, error);
  }

  bool on_number_part(Text part, Error&) { return append(part); }
  bool on_int64(std::int64_t, Text part, Error& error) { return add_number(part, error); }
  bool on_uint64(std::uint64_t, Text part, Error& error) { return add_number(part, error); }
  bool on_double(double, Text part, Error& error) { return add_number(part, error); }

  bool on_bool(bool value, Error& error) {
    if (packer_.is_open()) return pack(value ? "true" : "false");
    add(Json::Kind::boolean).boolean = value;
    return !is_too_much(error);
  }
  bool on_null(Error& error) {
    if (packer_.is_open()) return pack("null");
    add(Json::Kind::null);
    return !is_too_much(error);
  }

  bool on_comment_part(Text, Error&) { return true; }
  bool on_comment(Text, Error&) { return true; }

  Json take() { return std::move(root_); }
  const std::string& refusal() const { return refusal_; }

  // The offset of the refused item, given the one at which the parser stopped.
  std::size_t refused_at(std::string_view document, std::size_t stopped) const {
    if (begins_ == Begins::in_front_of_number) return stopped - text_.size();
    // A quote inside a member's name follows a backslash; the one that opens it never does.
    auto quote = document.rfind('"', stopped - 1);
    while (quote > 0 && document[quote - 1] == '\\') quote = document.rfind('"', quote - 1);
    return quote;
  }

 private:
  struct Frame {
    Json* node;
    std::set<std::string, std::less<>> names;  // filled only once the object is large
  };

  // Large objects use a tree, not a hash table, so that no choice of names makes it slow.
  static bool is_named_twice(Frame& frame, const std::string& name) {
    constexpr std::size_t kSmall = 16;
    const auto& members = frame.node->members;
    if (members.size() < kSmall) {
      return std::any_of(members.begin(), members.end(), [&](const auto& member) { return member.first == name; });
    }
    if (frame.names.empty()) {
      for (const auto& member : members) frame.names.insert(member.first);
    }
    return !frame.names.insert(name).second;
  }

  bool append(Text part) {
    text_.append(part.data(), part.size());
    return true;
  }

  Json& add(Json::Kind kind) {
    Json* node = &root_;
    if (!open_.empty()) {
      Json& parent = *open_.back().node;
      node = parent.is(Json::Kind::array) ? &parent.items.emplace_back() : &parent.members.back().second;
    }
    node->kind = kind;
    return *node;
  }

  bool add_text(Json::Kind kind, Error& error) {
    if (packer_.is_open()) {
      Json scalar;
      scalar.kind = kind;
      scalar.text.swap(text_);
      pack(canonical_json(scalar));
      text_ = std::move(scalar.text);  // keeps its memory
    } else {
      add(kind).text = std::move(text_);
    }
    text_.clear();
    return !is_too_much(error);
  }

  bool pack(std::string_view scalar) {
    packer_.add(scalar);
    return true;
  }

  bool is_too_much(Error& error) {
    if (packed_.empty() || packer_.is_open() || ++values_ <= kMaxValues) return false;
    begins_ = Begins::in_front_of_number;
    refuse(error, fmt::format("more than {} values outside of payloads", kMaxValues));
    return true;
  }

  bool is_to_pack() const {
    if (packed_.empty() || open_.empty() || !open_.back().node->is(Json::Kind::object)) return false;
    return std::find(packed_.begin(), packed_.end(), open_.back().node->members.back().first) != packed_.end();
  }

  bool add_number(Text part, Error& error) {
    append(part);
    begins_ = Begins::in_front_of_number;
    if (written_as_integer(text_)) {
      const auto digits = text_.size() - (text_.front() == '-' ? 1 : 0);
      if (digits > kMaxIntegerDigits) {
        return refuse(error,
                      fmt::format("an integer of {} digits is too long, {} are the most", digits, kMaxIntegerDigits));
      }
    } else if (!to_double(text_)) {
      return refuse(error, "the number is too large for a double");
    }
    return add_text(Json::Kind::number, error);
  }

  bool open(Json::Kind kind, Error& error) {
    if (packer_.is_open() || is_to_pack()) {
      if (!packer_.is_open()) packed_node_ = &add(kind);
      packer_.open(kind == Json::Kind::object);
      return true;
    }
    open_.push_back({&add(kind), {}});
    return !is_too_much(error);
  }

  bool close(Error& error) {
    if (!packer_.is_open()) {
      open_.pop_back();
      return true;
    }
    if (!packer_.close()) return refuse(error, std::string(kNamedTwice));
    if (!packer_.is_open()) packed_node_->text = packer_.take();
    return true;
  }

  bool refuse(Error& error, std::string why) {
    refusal_ = std::move(why);
    error = boost::json::error::syntax;
    return false;
  }

  const std::span<const std::string_view> packed_;
  Json root_;
  std::vector<Frame> open_;
  JsonPacker packer_;
  Json* packed_node_ = nullptr;  // while the packer is open
  std::size_t values_ = 0;       // that are not packed
  std::string text_;             // of the key, string or number that is being read
  std::string refusal_;
  Begins begins_ = Begins::in_front_of_number;
};

// The length of the UTF-8 sequence at the start of the text, 0 if there is none.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return follows(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const bool overlong = lead == 0xE0 && byte(1) < 0xA0;
    const bool surrogate = lead == 0xED && byte(1) > 0x9F;
    return follows(1) && follows(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const bool overlong = lead == 0xF0 && byte(1) < 0x90;
    const bool beyond = lead == 0xF4 && byte(1) > 0x8F;
    return follows(1) && follows(2) && follows(3) && !overlong && !beyond ? 4 : 0;
  }
  return 0;
}

std::optional<std::size_t> first_malformed_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto length = utf8_length(text.substr(i));
    if (length == 0) return i;
    i += length;
  }
  return std::nullopt;
}

[[noreturn]] void fail(std::string_view text, std::size_t offset, std::string_view why) {
  const auto before = text.substr(0, offset);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const auto last_line = before.substr(before.rfind('\n') + 1);
  const auto column = 1 + std::count_if(last_line.begin(), last_line.end(),
                                        [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; });
  throw InvalidJson(fmt::format("line {}, column {}: {}", line, column, why), offset);
}

std::string describe_unexpected(std::string_view text, std::size_t offset) {
  if (offset >= text.size()) return "the document ends too early";
  const auto byte = static_cast<unsigned char>(text[offset]);
  if (offset == 0 && text.starts_with("\xEF\xBB\xBF")) return "a byte order mark must not stand before the document";
  if (byte < 0x20 || byte == 0x7F) return fmt::format("a control character (0x{:02x}) must not stand here", byte);
  return fmt::format("unexpected '{}'", text.substr(offset, utf8_length(text.substr(offset))));
}

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r\n") == std::string_view::npos; }

// A high surrogate without its other half is a plain syntax error to the parser.
bool follows_high_surrogate(std::string_view text, std::size_t offset) {
  for (std::size_t back = 6; back <= 12 && back <= offset; ++back) {
    const auto escape = text.substr(offset - back, 4);
    if (escape.starts_with("\\u") && (escape[2] | 0x20) == 'd' &&
        std::string_view("89abAB").find(escape[3]) != std::string_view::npos) {
      return true;
    }
  }
  return false;
}

std::string describe(const boost::json::error_code& code, std::string_view text, std::size_t offset) {
  using boost::json::error;
  if (code == error::incomplete) {
    return is_blank(text) ? "there is no document, only nothing or blanks" : "the document ends too early";
  }
  if (code == error::too_deep) return fmt::format("more than {} levels of arrays and objects", kMaxDepth);
  if (code == error::exponent_overflow) return "the number's exponent is too large";
  if (code == error::illegal_leading_surrogate || code == error::illegal_trailing_surrogate ||
      code == error::expected_utf16_escape || follows_high_surrogate(text, offset)) {
    return "a surrogate without its other half is no character";
  }
  if (code == error::expected_hex_digit) return "a \\u escape needs four hex digits";
  return describe_unexpected(text, offset);
}

}  // namespace

namespace {

Json parse(std::string_view text, std::span<const std::string_view> packed) {
  boost::json::parse_options options;
  options.max_depth = kMaxDepth;
  boost::json::basic_parser<TreeBuilder> parser(options, packed);
  boost::json::error_code error;
  const auto stopped = parser.write_some(false, text.data(), text.size(), error);
  if (!error && stopped == text.size()) return parser.handler().take();

  const auto& builder = parser.handler();
  // Found only when the object ends: another pass finds the place.
  if (error && !packed.empty() && builder.refusal() == kNamedTwice) return parse(text, {});
  if (error && !builder.refusal().empty()) fail(text, builder.refused_at(text, stopped), builder.refusal());
  // The parser stops up to a whole character after the wrong byte.
  if (const auto malformed = first_malformed_utf8(text); malformed && *malformed <= stopped + 3) {
    fail(text, *malformed,
         fmt::format("the byte 0x{:02x} is no UTF-8 here", static_cast<unsigned char>(text[*malformed])));
  }
  if (error) fail(text, stopped, describe(error, text, stopped));
  fail(text, stopped, "more text follows after the document: " + describe_unexpected(text, stopped));
}

}  // namespace

Json parse_json(std::string_view text) { return parse(text, {}); }

Json parse_packed_json(std::string_view text, std::span<const std::string_view> packed) {
  return parse(text, text.size() > kMaxPackedBytes ? std::span<const std::string_view>() : packed);
}

bool is_packed(const Json& value) {
  return (value.is(Json::Kind::array) || value.is(Json::Kind::object)) && !value.text.empty();
}

Json unpacked(const Json& value) { return is_packed(value) ? parse_json(value.text) : value; }

namespace {

[[noreturn]] void throw_packed() { throw std::logic_error("a packed JSON value was looked into"); }

}  // namespace

const Json* Json::find(std::string_view name) const {
  if (is_packed(*this)) throw_packed();
  for (const auto& member : members) {
    if (member.first == name) return &member.second;
  }
  return nullptr;
}

namespace {

// One step of a pointer with ~1 and ~0 decoded.
std::string unescape_step(std::string_view step) {
  std::string name;
  for (std::size_t i = 0; i < step.size(); ++i) {
    if (step[i] == '~') {
      ++i;
      name += step[i] == '1' ? '/' : '~';
    } else {
      name += step[i];
    }
  }
  return name;
}

const Json* item_at(const Json& array, std::string_view step) {
  if (step.size() > 1 && step.front() == '0') return nullptr;
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(step.data(), step.data() + step.size(), index);
  if (error != std::errc() || end != step.data() + step.size() || index >= array.items.size()) return nullptr;
  return &array.items[index];
}

}  // namespace

const Json* Json::at(std::string_view pointer) const {
  if (!is_json_pointer(pointer)) return nullptr;
  const Json* node = this;
  while (node != nullptr && !pointer.empty()) {
    pointer.remove_prefix(1);
    const auto step = pointer.substr(0, pointer.find('/'));
    pointer.remove_prefix(step.size());
    if (is_packed(*node)) throw_packed();
    node = node->is(Kind::array) ? item_at(*node, step) : node->find(unescape_step(step));
  }
  return node;
}

std::optional<std::int64_t> Json::as_int() const {
  if (kind != Kind::number) return std::nullopt;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> Json::as_double() const {
  if (kind != Kind::number) return std::nullopt;
  return to_double(text);
}

bool is_json_pointer(std::string_view text) {
  if (!text.empty() && text.front() != '/') return false;
  for (auto at = text.find('~'); at != std::string_view::npos; at = text.find('~', at + 1)) {
    if (at + 1 == text.size() || (text[at + 1] != '0' && text[at + 1] != '1')) return false;
  }
  return true;
}

std::string pointer_step(std::string_view name) {
  std::string step;
  for (const char c : name) {
    if (c == '~') {
      step += "~0";
    } else if (c == '/') {
      step += "~1";
    } else {
      step += c;
    }
  }
  return step;
}

}  // namespace hapax
