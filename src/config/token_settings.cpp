#include "config/token_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "core/field.h"

namespace hapax {

namespace {

constexpr std::size_t kMaxFileBytes = 64 * 1024;

std::string from_variable(const std::string& variable, const std::string& at, const Environment& environment) {
  const auto found = environment.find(variable);
  if (found == environment.end()) throw InvalidField(at, fmt::format("the variable {} is not set", variable));
  return found->second;
}

std::string from_file(const std::string& path, const std::string& at) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxFileBytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.eof()) {
    const char* why = file.is_open() && !file.bad() && file.gcount() > 0 ? "it is too long" : std::strerror(errno);
    throw InvalidField(at, fmt::format("cannot read the token from \"{}\": {}", path, why));
  }
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
  return text;
}

}  // namespace

std::string token_key(const Json& table) {
  return table.find("token") ? "token" : table.find("token_env") ? "token_env" : "token_file";
}

TokenSettings read_token(const std::string& name, const Json& table, const std::string& at,
                         const Environment& environment) {
  FieldReader reader(table, at);
  const auto token = reader.string("token"), variable = reader.string("token_env"), file = reader.string("token_file");
  TokenSettings settings{name, "", reader.name("namespace")};
  reader.done();
  if (!token && !variable && !file) {
    throw InvalidField(
        at, "write token = \"…\", or token_file = \"FILE\" or token_env = \"VARIABLE\" to take it from there");
  }
  if (token && variable) throw InvalidField(at + "/token_env", "token is given too; remove one of them");
  if (file && (token || variable)) {
    throw InvalidField(at + "/token_file",
                       fmt::format("{} is given too; remove one of them", token ? "token" : "token_env"));
  }
  const std::string source = at + "/" + token_key(table);
  settings.token = token ? *token : variable ? from_variable(*variable, source, environment) : from_file(*file, source);
  const bool printable =
      std::all_of(settings.token.begin(), settings.token.end(), [](char c) { return c > ' ' && c < 127; });
  if (settings.token.empty() || !printable) {
    throw InvalidField(source, "a token is one or more printable ASCII characters without spaces");
  }
  return settings;
}

}  // namespace hapax
