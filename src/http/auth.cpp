#include "http/auth.h"

#include <algorithm>
#include <cctype>
#include <stdexcept>

#include "core/name.h"
#include "http/error.h"

namespace hapax::http {

namespace {

// Takes the same time wherever the two differ.
bool equal(const Digest& a, const Digest& b) {
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned>(a[i] ^ b[i]);
  return difference == 0;
}

std::string_view bearer_secret(std::string_view authorization) {
  constexpr std::string_view kScheme = "bearer ";
  if (authorization.size() <= kScheme.size()) return {};
  auto same = [](char c, char lower) { return std::tolower(static_cast<unsigned char>(c)) == lower; };
  if (!std::equal(kScheme.begin(), kScheme.end(), authorization.begin(),
                  [&](char lower, char c) { return same(c, lower); })) {
    return {};
  }
  authorization.remove_prefix(kScheme.size());
  const auto start = authorization.find_first_not_of(' ');
  return start == std::string_view::npos ? std::string_view{} : authorization.substr(start);
}

RequestError unauthorized(const std::string& message) {
  return RequestError(401, "Unauthorized", message).with_header("WWW-Authenticate", "Bearer");
}

std::string checked_name_space(std::string_view name) {
  if (!is_valid_utf8(name)) throw invalid_header("Hapax-Namespace", "must be UTF-8");
  if (auto wrong = check_name(name)) throw invalid_header("Hapax-Namespace", *wrong);
  return std::string(name);
}

}  // namespace

Auth::Auth(const std::vector<AccessToken>& tokens) {
  for (const AccessToken& token : tokens) {
    if (token.secret.empty()) throw std::invalid_argument("an access token must not be empty");
    if (token.name_space) {
      if (auto wrong = check_name(*token.name_space)) {
        throw std::invalid_argument("the namespace '" + *token.name_space + "' of an access token " + *wrong);
      }
    }
    known_.push_back({sha256(token.secret), token.name_space});
  }
}

const Auth::Known* Auth::find(std::string_view secret) const {
  const Digest digest = sha256(secret);
  const Known* found = nullptr;
  for (const Known& known : known_) {
    if (equal(known.secret, digest) && found == nullptr) found = &known;
  }
  return found;
}

Auth::Admission Auth::admit(const Request& request) const {
  const bool named = request.name_space_header.data() != nullptr;
  if (known_.empty()) return {named ? checked_name_space(request.name_space_header) : "default"};

  const std::string_view secret = bearer_secret(request.authorization);
  if (secret.empty()) throw unauthorized("This server needs a token: send the header \"Authorization: Bearer …\".");
  const Known* known = find(secret);
  if (known == nullptr) throw unauthorized("This server does not know the token.");
  if (!named) return {known->name_space.value_or("default"), known->name_space.has_value()};
  std::string name_space = checked_name_space(request.name_space_header);
  if (known->name_space && *known->name_space != name_space) {
    throw RequestError(403, "Forbidden", "The token is not valid for the namespace '" + name_space + "'.");
  }
  return {std::move(name_space), known->name_space.has_value()};
}

}  // namespace hapax::http
