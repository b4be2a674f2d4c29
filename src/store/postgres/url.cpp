#include "store/postgres/url.h"

#include <libpq-fe.h>

#include <memory>
#include <string_view>
#include <utility>

#include "core/failure.h"

namespace hapax::postgres {

namespace {

constexpr std::string_view kOwn = "hapax_";

// What a URL does not say. A server that vanished without a word is given up after some ten seconds.
constexpr std::pair<std::string_view, const char*> kDefaults[] = {
    {"application_name", "hapax"}, {"target_session_attrs", "read-write"}, {"connect_timeout", "10"},
    {"keepalives_idle", "5"},      {"keepalives_interval", "2"},           {"keepalives_count", "3"},
    {"tcp_user_timeout", "10000"},
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
    if (option.starts_with(kOwn)) {
      const std::size_t equals = std::min(option.find('='), option.size());
      take_own(url, option.substr(0, equals), std::string(option.substr(std::min(equals + 1, option.size()))));
    } else {
      kept += (kept.empty() ? "?" : "&") + std::string(option);
    }
  }
  return text.substr(0, question) + kept;
}

std::string quoted(std::string_view value) {
  std::string out = "'";
  for (const char c : value) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

}  // namespace

Url parse_url(const std::string& text) {
  Url url;
  const std::string stripped = without_own(text, url);
  char* error = nullptr;
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> options(PQconninfoParse(stripped.c_str(), &error),
                                                                             &PQconninfoFree);
  if (!options) {
    const std::string why = error ? error : "cannot be read";
    PQfreemem(error);
    refuse(why.substr(0, why.find_last_not_of('\n') + 1));
  }
  for (const PQconninfoOption* option = options.get(); option->keyword; ++option) {
    const char* value = option->val;
    for (const auto& [name, otherwise] : kDefaults) {
      if (!value && name == option->keyword) value = otherwise;
    }
    if (value) url.conninfo += std::string(option->keyword) + "=" + quoted(value) + " ";
  }
  return url;
}

}  // namespace hapax::postgres
