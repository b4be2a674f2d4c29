#include "store/postgres/connection/url.h"

#include <fmt/format.h>
#include <libpq-fe.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "core/failure.h"

namespace hapax::postgres {

namespace {

constexpr std::string_view kOwn = "hapax_";

// What a URL does not say. A server that vanished without a word is given up after some ten seconds.
constexpr std::pair<std::string_view, const char*> kDefaults[] = {
    {"application_name", "hapax"}, {"target_session_attrs", "read-write"},
    {"keepalives_idle", "5"},      {"keepalives_interval", "2"},
    {"keepalives_count", "3"},     {"tcp_user_timeout", "10000"},
};

[[noreturn]] void refuse(const std::string& why) { throw Failure(Failure::Code::misuse, "the PostgreSQL URL: " + why); }

void take_own(Url& url, std::string_view name, const std::string& value) {
  if (name == "hapax_schema") {
    const bool is_plain = !value.empty() && value.size() < 60 &&
                          value.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos;
    if (!is_plain) refuse("hapax_schema takes lower case letters, digits and _, not \"" + value + "\"");
    url.schema = value;
  } else if (name == "hapax_pooled") {
    if (value != "0" && value != "1") refuse("hapax_pooled is 0 or 1, not \"" + value + "\"");
    url.pooled = value == "1";
  } else if (name == "fast") {
    url.fast = fast::parse_switches(value);
  } else {
    refuse("there is no option " + std::string(name) + "; Hapax's own are hapax_schema and hapax_pooled");
  }
}

// Takes Hapax's own options out of the query.
std::string without_own(const std::string& text, Url& url) {
  const std::size_t question = text.find('?');
  if (question == std::string::npos) return text;
  std::string kept;
  std::string_view rest = std::string_view(text).substr(question + 1);
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('&'), rest.size());
    const std::string_view option = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (option.starts_with(kOwn) || option.starts_with("fast=")) {
      const std::size_t equals = std::min(option.find('='), option.size());
      take_own(url, option.substr(0, equals), std::string(option.substr(std::min(equals + 1, option.size()))));
    } else {
      kept += (kept.empty() ? "?" : "&") + std::string(option);
    }
  }
  return text.substr(0, question) + kept;
}

// What libpq found wrong, without what it quotes, which may be a part of the password. The name of a parameter is none.
std::string without_quoted(const std::string& why) {
  if (why.starts_with("invalid URI query parameter")) return why;
  std::string shown;
  bool inside = false;
  for (const char c : why) {
    if (c == '"') inside = !inside;
    if (c == '"' && inside) shown += "\"***";
    if (!inside) shown += c;
  }
  return shown;
}

std::string quoted(std::string_view value) {
  std::string out = "'";
  for (const char c : value) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

std::vector<std::string> split(std::string_view list) {
  std::vector<std::string> parts;
  for (;;) {
    const std::size_t comma = list.find(',');
    parts.emplace_back(list.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    list.remove_prefix(comma + 1);
  }
}

// As libpq takes it: 0 is no limit, and 2 the least.
Duration seconds(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    refuse("connect_timeout is a number of seconds, not \"" + text + "\"");
  }
  return value <= 0 ? Duration(std::chrono::hours(1))
                    : Duration(std::chrono::seconds(std::clamp<std::int64_t>(value, 2, 3600)));
}

}  // namespace

Url parse_url(const std::string& text) {
  Url url;
  const std::size_t begin = std::min(text.find("://"), text.size());
  const std::string before_query = text.substr(begin, text.find('?') - begin);
  if (std::count(before_query.begin(), before_query.end(), '@') > 1) {
    refuse("an @ in the user name or password is written %40, and a / is %2F");
  }
  const std::string stripped = without_own(text, url);
  char* error = nullptr;
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> options(PQconninfoParse(stripped.c_str(), &error),
                                                                             &PQconninfoFree);
  if (!options) {
    const std::string why = error ? error : "cannot be read";
    PQfreemem(error);
    refuse(without_quoted(why.substr(0, why.find_last_not_of('\n') + 1)));
  }
  std::string common;
  std::map<std::string, std::vector<std::string>> lists;  // what each host has one of
  for (const PQconninfoOption* option = options.get(); option->keyword; ++option) {
    const std::string keyword = option->keyword;
    const char* value = option->val;
    for (const auto& [name, otherwise] : kDefaults) {
      if (!value && name == keyword) value = otherwise;
    }
    if (!value) continue;
    if (keyword == "host" || keyword == "hostaddr" || keyword == "port") {
      lists[keyword] = split(value);
    } else if (keyword == "connect_timeout") {
      url.connect_timeout = seconds(value);
    } else {
      common += keyword + "=" + quoted(value) + " ";
    }
  }
  std::size_t count = 1;
  for (const auto& [keyword, values] : lists) count = std::max(count, values.size());
  for (std::size_t i = 0; i < count; ++i) {
    std::string host = common;
    for (const auto& [keyword, values] : lists) {
      if (values.size() != 1 && values.size() != count) {
        refuse(fmt::format("it names {} hosts, but {} of {}", count, values.size(), keyword));
      }
      host += keyword + "=" + quoted(values.size() == 1 ? values.front() : values[i]) + " ";
    }
    url.hosts.push_back(std::move(host));
  }
  return url;
}

}  // namespace hapax::postgres
