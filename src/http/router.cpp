#include "http/router.h"

#include <array>
#include <bitset>

#include "core/name.h"

namespace hapax::http {

namespace {

constexpr std::size_t kMaxParts = 8;

struct Parts {
  std::array<std::string_view, kMaxParts> at;
  std::size_t count = 0;
  bool too_many = false;
};

Parts split(std::string_view path) {
  Parts parts;
  while (!path.empty()) {
    path.remove_prefix(1);
    if (parts.count == kMaxParts) {
      parts.too_many = true;
      return parts;
    }
    const auto slash = path.find('/');
    parts.at[parts.count++] = path.substr(0, slash);
    path = slash == std::string_view::npos ? std::string_view{} : path.substr(slash);
  }
  return parts;
}

bool is_param(std::string_view part) { return part.starts_with('{'); }

bool fits(const Route& route, const Parts& parts) {
  if (route.parts.size() != parts.count) return false;
  for (std::size_t i = 0; i < parts.count; ++i) {
    if (is_param(route.parts[i]) ? parts.at[i].empty() : parts.at[i] != route.parts[i]) return false;
  }
  return true;
}

using Methods = std::bitset<static_cast<std::size_t>(Method::other)>;

std::string allow_of(const Methods& methods) {
  std::string allow;
  for (std::size_t i = 0; i < static_cast<std::size_t>(Method::options); ++i) {
    const auto method = static_cast<Method>(i);
    if (methods.test(i)) allow.append(to_string(method)).append(method == Method::get ? ", HEAD, " : ", ");
  }
  return allow + "OPTIONS";
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::string_view to_string(Method method) {
  switch (method) {
    case Method::get: return "GET";
    case Method::post: return "POST";
    case Method::put: return "PUT";
    case Method::patch: return "PATCH";
    case Method::del: return "DELETE";
    case Method::options: return "OPTIONS";
    case Method::other: break;
  }
  return "OTHER";
}

std::optional<std::string> percent_decode(std::string_view text, bool plus_is_blank) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      const int high = text.size() - i > 2 ? hex_value(text[i + 1]) : -1;
      const int low = text.size() - i > 2 ? hex_value(text[i + 2]) : -1;
      if (high < 0 || low < 0) return std::nullopt;
      out.push_back(static_cast<char>(high * 16 + low));
      i += 2;
    } else {
      out.push_back(plus_is_blank && text[i] == '+' ? ' ' : text[i]);
    }
  }
  if (!is_valid_utf8(out)) return std::nullopt;
  return out;
}

void Router::add(Method method, std::string pattern, Handler handler, Access access, KeyHeader key_header) {
  const Parts parts = split(pattern);
  Route route{method, pattern, std::move(handler), access, key_header, {}};
  for (std::size_t i = 0; i < parts.count; ++i) route.parts.emplace_back(parts.at[i]);
  routes_.push_back(std::move(route));
}

Router::Match Router::find(Method method, std::string_view path) const {
  Match match;
  const bool any = path == "*";
  if (!path.starts_with('/') && !any) return match;
  const Parts parts = any ? Parts{} : split(path);
  if (parts.too_many) return match;
  const Route* first = nullptr;
  Methods methods;
  for (const Route& route : routes_) {
    if (!any && (first != nullptr ? route.pattern != first->pattern : !fits(route, parts))) continue;
    if (!any && route.method == method) {
      match.route = &route;
      match.access = route.access;
      for (std::size_t i = 0; i < parts.count; ++i) {
        if (is_param(route.parts[i])) match.params.push_back(parts.at[i]);
      }
      return match;
    }
    if (first == nullptr) first = &route;
    methods.set(static_cast<std::size_t>(route.method));
  }
  if (first == nullptr) return match;
  match.access = any ? Access::token : first->access;
  match.allow = allow_of(methods);
  return match;
}

}  // namespace hapax::http
