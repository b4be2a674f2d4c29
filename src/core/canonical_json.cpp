#include "core/canonical_json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <string_view>

#include "core/packed_json.h"

namespace hapax {

namespace {

// The significant digits of a positive number and the position of its decimal point: 0.digits times ten to the `point`.
struct Decimal {
  std::string_view digits;
  int point;
};

void append_decimal(std::string& out, const Decimal& number) {
  const auto [digits, point] = number;
  const int count = static_cast<int>(digits.size());
  if (count <= point && point <= 21) {
    out.append(digits).append(static_cast<std::size_t>(point - count), '0');
  } else if (0 < point && point <= 21) {
    const auto whole = static_cast<std::size_t>(point);
    out.append(digits.substr(0, whole)).append(1, '.').append(digits.substr(whole));
  } else if (-6 < point && point <= 0) {
    out.append("0.").append(static_cast<std::size_t>(-point), '0').append(digits);
  } else {
    out.append(digits.substr(0, 1));
    if (count > 1) out.append(1, '.').append(digits.substr(1));
    const int exponent = point - 1;
    out.append(exponent < 0 ? "e-" : "e+").append(std::to_string(std::abs(exponent)));
  }
}

void append_number(std::string& out, double value) {
  if (value == 0) {
    out += '0';
    return;
  }
  if (value < 0) out += '-';

  std::array<char, 32> buffer{};  // d.ddddde±xxx, of at most 17 digits
  const char* end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), std::abs(value), std::chars_format::scientific).ptr;
  const char* mark = std::find(static_cast<const char*>(buffer.data()), end, 'e');
  int exponent = 0;
  std::from_chars(mark[1] == '+' ? mark + 2 : mark + 1, end, exponent);

  std::string digits(1, buffer[0]);
  if (mark - buffer.data() > 1) digits.append(static_cast<const char*>(buffer.data()) + 2, mark);
  append_decimal(out, {digits, exponent + 1});
}

// ECMAScript writes integers of 22 digits and more with an exponent. That is done here only if no digit is lost: the
// significant digits must be those of the nearest double.
bool takes_exponent_form(const Json& number, std::string_view digits, std::string& out) {
  constexpr std::size_t kPlainDigits = 21;
  if (digits.size() <= kPlainDigits) return false;
  const auto value = number.as_double();
  if (!value) return false;

  std::string nearest;
  append_number(nearest, std::abs(*value));
  std::string exact;
  const auto significant = digits.substr(0, digits.find_last_not_of('0') + 1);
  append_decimal(exact, {significant, static_cast<int>(digits.size())});
  if (nearest != exact) return false;
  if (*value < 0) out += '-';
  out += exact;
  return true;
}

void append_integer(std::string& out, const Json& number) {
  const std::string_view literal = number.text;
  if (literal == "-0") {
    out += '0';
    return;
  }
  const auto digits = literal.substr(literal.starts_with('-') ? 1 : 0);
  if (!takes_exponent_form(number, digits, out)) out += literal;
}

// The position of the first character from `at` on that needs an escape, or the end. Checks eight at a time: a byte
// minus n is negative, and the byte itself is not, only if it is less than n.
std::size_t first_escaped(std::string_view text, std::size_t at) {
  constexpr std::uint64_t kOnes = 0x0101010101010101U, kSigns = 0x80 * kOnes;
  const auto has_less = [](std::uint64_t bytes, std::uint64_t n) { return (bytes - n * kOnes) & ~bytes & kSigns; };
  for (std::uint64_t bytes; at + sizeof bytes <= text.size(); at += sizeof bytes) {
    std::memcpy(&bytes, text.data() + at, sizeof bytes);
    if (has_less(bytes, 0x20) | has_less(bytes ^ '"' * kOnes, 1) | has_less(bytes ^ '\\' * kOnes, 1)) break;
  }
  while (at < text.size()) {
    const auto c = static_cast<unsigned char>(text[at]);
    if (c < 0x20 || c == '"' || c == '\\') break;
    ++at;
  }
  return at;
}

void append(std::string& out, const Json& json);

void append_array(std::string& out, const Json& array) {
  out += '[';
  bool first = true;
  for (const auto& item : array.items) {
    if (!first) out += ',';
    first = false;
    append(out, item);
  }
  out += ']';
}

void append_object(std::string& out, const Json& object) {
  using Member = std::pair<std::string, Json>;
  std::vector<const Member*> sorted;
  sorted.reserve(object.members.size());
  for (const auto& member : object.members) sorted.push_back(&member);
  std::sort(sorted.begin(), sorted.end(),
            [](const Member* a, const Member* b) { return utf16_less(a->first, b->first); });

  out += '{';
  bool first = true;
  for (const auto* member : sorted) {
    if (!first) out += ',';
    first = false;
    append_json_string(out, member->first);
    out += ':';
    append(out, member->second);
  }
  out += '}';
}

void append(std::string& out, const Json& json) {
  switch (json.kind) {
    case Json::Kind::null: out += "null"; break;
    case Json::Kind::boolean: out += json.boolean ? "true" : "false"; break;
    case Json::Kind::number:
      if (json.text.find_first_of(".eE") == std::string::npos) {
        append_integer(out, json);
      } else {
        append_number(out, json.as_double().value());
      }
      break;
    case Json::Kind::string: append_json_string(out, json.text); break;
    case Json::Kind::array: is_packed(json) ? void(out += json.text) : append_array(out, json); break;
    case Json::Kind::object: is_packed(json) ? void(out += json.text) : append_object(out, json); break;
  }
}

}  // namespace

std::string canonical_json(const Json& document) {
  std::string out;
  append(out, document);
  return out;
}

std::string canonical_number(double value) {
  std::string out;
  append_number(out, value);
  return out;
}

// The order of UTF-8 bytes and of UTF-16 units agree but for one case: characters above U+FFFF are written with
// surrogates, which sort before U+E000 to U+FFFF; in UTF-8 they start with F0 and up, those with EE and EF.
bool utf16_less(std::string_view a, std::string_view b) {
  const auto [left, right] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  if (left == a.end() || right == b.end()) return left == a.end() && right != b.end();
  const auto x = static_cast<unsigned char>(*left);
  const auto y = static_cast<unsigned char>(*right);
  if (x >= 0xEE && y >= 0xEE && (x >= 0xF0) != (y >= 0xF0)) return x >= 0xF0;
  return x < y;
}

void append_json_string(std::string& out, std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  out += '"';
  std::size_t plain = 0;  // start of the run of characters that need no escape
  for (std::size_t i = first_escaped(text, 0); i < text.size(); i = first_escaped(text, i + 1)) {
    const auto c = static_cast<unsigned char>(text[i]);
    out.append(text.substr(plain, i - plain));
    plain = i + 1;
    out += '\\';
    switch (c) {
      case '"':
      case '\\': out += static_cast<char>(c); break;
      case '\b': out += 'b'; break;
      case '\t': out += 't'; break;
      case '\n': out += 'n'; break;
      case '\f': out += 'f'; break;
      case '\r': out += 'r'; break;
      default: out.append("u00").append(1, kHex[c >> 4U]).append(1, kHex[c & 0xFU]);
    }
  }
  out.append(text.substr(plain));
  out += '"';
}

}  // namespace hapax
