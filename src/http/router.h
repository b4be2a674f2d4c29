// The table of routes: method and path pattern to handler.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/message.h"

namespace hapax::http {

using Handler = std::function<void(Request&, const Responder&)>;

enum class Access : std::uint8_t { token, open };

// The header Idempotency-Key: refused, not ignored, where it has no meaning.
enum class KeyHeader : std::uint8_t { refused, taken };

struct Route {
  Method method = Method::get;
  std::string pattern;  // "/v1/tasks/{id}/result": a part in braces stands for any one part
  Handler handler;
  Access access = Access::token;
  KeyHeader key_header = KeyHeader::refused;
  std::vector<std::string> parts;
};

std::string_view to_string(Method method);

// Decodes %XX. Nothing if a sequence is malformed or the result is not UTF-8.
std::optional<std::string> percent_decode(std::string_view text, bool plus_is_blank = false);

class Router {
 public:
  void add(Method method, std::string pattern, Handler handler, Access access = Access::token,
           KeyHeader key_header = KeyHeader::refused);

  struct Match {
    const Route* route = nullptr;          // null: no route with that method and path
    std::string allow;                     // the methods of the path, if it lacks the requested one
    Access access = Access::token;         // of the path
    std::vector<std::string_view> params;  // still encoded
  };
  // The first pattern in the list that matches counts: /v1/tasks/batch is not /v1/tasks/{id}. The path * has all
  // methods.
  Match find(Method method, std::string_view path) const;

  const std::vector<Route>& routes() const { return routes_; }
  std::size_t index_of(const Route& route) const { return static_cast<std::size_t>(&route - routes_.data()); }

 private:
  std::vector<Route> routes_;
};

}  // namespace hapax::http
