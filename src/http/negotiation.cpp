#include "http/negotiation.h"

#include <algorithm>
#include <cctype>
#include <optional>

namespace hapax::http {

namespace {

constexpr int kFullQuality = 1000;

bool equals(std::string_view text, std::string_view lower) {
  return std::equal(text.begin(), text.end(), lower.begin(), lower.end(),
                    [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; });
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Removes the part before the separator from the text and returns it.
std::string_view take(std::string_view& text, char separator) {
  const auto end = text.find(separator);
  const std::string_view part = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  return trimmed(part);
}

// "0.5" in thousandths. A malformed quality counts as 0: a plain answer is better than an unreadable one.
int parse_quality(std::string_view text) {
  if (text.empty() || text.size() > 5 || (text.front() != '0' && text.front() != '1')) return 0;
  if (text.size() > 1 && text[1] != '.') return 0;
  int quality = text.front() - '0';
  for (std::size_t i = 2; i < 5; ++i) {
    const char digit = i < text.size() ? text[i] : '0';
    if (digit < '0' || digit > '9') return 0;
    quality = quality * 10 + (digit - '0');
  }
  return std::min(quality, kFullQuality);
}

// Calls `each` with the name of every item and its quality.
template <class Each>
void for_each_item(std::string_view header, Each each) {
  while (!header.empty()) {
    std::string_view item = take(header, ',');
    const std::string_view name = take(item, ';');
    int quality = kFullQuality;
    while (!item.empty()) {
      std::string_view parameter = take(item, ';');
      if (equals(take(parameter, '='), "q")) quality = parse_quality(trimmed(parameter));
    }
    if (!name.empty()) each(name, quality);
  }
}

}  // namespace

bool prefers_problem(std::string_view accept) {
  int problem = 0, json = 0;
  for_each_item(accept, [&](std::string_view name, int quality) {
    if (equals(name, "application/problem+json")) problem = quality;
    if (equals(name, "application/json")) json = quality;
  });
  return problem > 0 && problem >= json;
}

Coding choose_coding(std::string_view accept_encoding) {
  std::optional<int> gzip, deflate, identity, any;
  for_each_item(accept_encoding, [&](std::string_view name, int quality) {
    if (equals(name, "gzip") || equals(name, "x-gzip")) gzip = quality;
    if (equals(name, "deflate")) deflate = quality;
    if (equals(name, "identity")) identity = quality;
    if (name == "*") any = quality;
  });
  const int as_gzip = gzip.value_or(any.value_or(0)), as_deflate = deflate.value_or(any.value_or(0));
  const int best = std::max(as_gzip, as_deflate);
  if (best == 0 || best < identity.value_or(0)) return Coding::identity;
  return as_gzip == best ? Coding::gzip : Coding::deflate;
}

}  // namespace hapax::http
