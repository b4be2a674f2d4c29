#include "core/secret.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

namespace hapax {

namespace {

constexpr std::string_view kHidden = "***";

// A parameter whose name contains one of these holds a secret.
constexpr std::array<std::string_view, 5> kSecretNames{"password", "passwd", "secret", "token", "api_key"};

std::optional<int> hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower >= 'a' && lower <= 'f' ? std::optional(lower - 'a' + 10) : std::nullopt;
}

// In lower case, with %XX decoded: libpq takes pass%77ord for password.
std::string plain_name(std::string_view name) {
  std::string plain;
  for (std::size_t i = 0; i < name.size(); ++i) {
    char c = name[i];
    if (c == '%' && i + 2 < name.size()) {
      const auto high = hex_value(name[i + 1]), low = hex_value(name[i + 2]);
      if (high && low) {
        c = static_cast<char>(*high * 16 + *low);
        i += 2;
      }
    }
    plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return plain;
}

bool is_secret(std::string_view name) {
  const std::string plain = plain_name(name);
  return std::any_of(kSecretNames.begin(), kSecretNames.end(),
                     [&](std::string_view each) { return plain.find(each) != std::string::npos; });
}

// The end of a value: after its quotes, or at the next separator.
std::size_t end_of_value(std::string_view text, std::size_t begin, std::string_view separators) {
  if (begin < text.size() && text[begin] == '\'') {
    for (std::size_t i = begin + 1; i < text.size(); ++i) {
      if (text[i] == '\\') {
        ++i;
      } else if (text[i] == '\'') {
        return i + 1;
      }
    }
    return text.size();
  }
  return std::min(text.find_first_of(separators, begin), text.size());
}

// name=value, with these between two of them.
std::string hide_values(std::string_view text, std::string_view separators) {
  std::string shown;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t equals = text.find('=', at);
    if (equals == std::string_view::npos) break;
    const std::size_t before = text.find_last_of(separators, equals);
    const std::size_t name = before == std::string_view::npos || before < at ? at : before + 1;
    const std::size_t end = end_of_value(text, equals + 1, separators);
    shown += text.substr(at, equals + 1 - at);
    shown += is_secret(text.substr(name, equals - name)) ? kHidden : text.substr(equals + 1, end - equals - 1);
    at = end;
  }
  return shown + std::string(text.substr(std::min(at, text.size())));
}

// Everything from the scheme to the query. A password with an unescaped / or @ is a mistake, and still a password.
std::string hide_user(std::string_view scheme, std::string_view rest) {
  const std::size_t at = rest.rfind('@');
  if (at == std::string_view::npos) return std::string(rest);
  const std::size_t colon = scheme.starts_with("http") ? 0 : rest.find(':');
  if (colon == std::string_view::npos || colon > at) return std::string(rest);
  const std::string user(rest.substr(0, colon));
  return user + (user.empty() && scheme.starts_with("http") ? "" : ":") + std::string(kHidden) +
         std::string(rest.substr(at));
}

// A ? with an @ after it, and no parameter in between, belongs to a password.
std::size_t begin_of_query(std::string_view url, std::size_t begin) {
  const std::size_t question = std::min(url.find('?', begin), url.size());
  const std::size_t at = url.find('@', question);
  const bool is_password = at != std::string_view::npos && url.find('@', begin) == at && url.find('=', question) > at;
  return is_password ? std::min(url.find('?', at), url.size()) : question;
}

}  // namespace

std::string without_secrets(std::string_view url) {
  constexpr std::string_view kAuthority = "://";
  const std::size_t scheme = url.find(kAuthority);
  if (scheme == std::string_view::npos) return hide_values(url, " \t\n&?;");
  const std::size_t begin = scheme + kAuthority.size();
  const std::size_t query = begin_of_query(url, begin);
  return std::string(url.substr(0, begin)) + hide_user(url.substr(0, scheme), url.substr(begin, query - begin)) +
         hide_values(url.substr(query), "?&#");
}

}  // namespace hapax
