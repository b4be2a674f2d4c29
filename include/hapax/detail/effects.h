// How TaskContext::once_in() keeps its rows in the caller's database. Nothing here is for callers.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "hapax/detail/pointers.h"
#include "hapax/detail/std_function.h"
#include "hapax/json.h"

struct sqlite3;
struct pg_conn;  // libpq's PGconn

namespace hapax::detail {

// One effect in the transaction that the caller has begun. What its function writes is undone unless it is stored.
class Effect {
 public:
  Effect(sqlite3* connection, std::string key);
  Effect(pg_conn* connection, std::string key);
  ~Effect();
  Effect(const Effect&) = delete;
  Effect& operator=(const Effect&) = delete;

  // The result that is stored: it has happened before. Empty text: it returned nothing.
  const std::optional<std::string>& stored() const { return stored_; }
  void store(const std::string& result_json);

  class Rows;

 private:
  void begin();

  const std::string key_;
  const std::unique_ptr<Rows> rows_;
  std::optional<std::string> stored_;
  bool is_open_ = false;
};

// With the connection in front, if it takes one.
template <class Connection, class Function, class... Arguments>
decltype(auto) call_effect(Connection* connection, Function&& function, const Arguments&... arguments) {
  if constexpr (std::is_invocable_v<Function, Connection*, const Arguments&...>) {
    return std::forward<Function>(function)(connection, arguments...);
  } else {
    static_assert(std::is_invocable_v<Function, const Arguments&...>,
                  "hapax: once_in calls its function with the given arguments, after the connection if it takes one");
    return std::forward<Function>(function)(arguments...);
  }
}

template <class Connection, class Function, class... Arguments>
auto run_effect(Connection* connection, std::string key, Function&& function, const Arguments&... arguments) {
  using Result = std::decay_t<decltype(call_effect(connection, std::forward<Function>(function), arguments...))>;
  Effect effect(connection, std::move(key));
  if constexpr (std::is_void_v<Result>) {
    if (effect.stored()) return;
    call_effect(connection, std::forward<Function>(function), arguments...);
    effect.store("");
  } else {
    if (effect.stored()) return from_json<Result>(*effect.stored());
    Result result = call_effect(connection, std::forward<Function>(function), arguments...);
    effect.store(to_json(result));
    return result;
  }
}

}  // namespace hapax::detail
