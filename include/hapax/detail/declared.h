// What typed tasks and workflows have in common: a name, and the app that they belong to. Nothing here is for callers.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "hapax/detail/pointers.h"
#include "hapax/detail/std_function.h"
#include "hapax/options.h"

struct sqlite3;
struct pg_conn;  // libpq's PGconn

namespace hapax {

class AnyHandle;
class App;
class AnyWorkflowHandle;

namespace detail {

class AppState;

// Stands for a value that may be nothing, where "nothing" needs a value.
template <class T>
using Value = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

// A task that undoes a step: see saga.h.
struct Undo {
  std::string type;
  std::string input_json;
  SubmitOptions options;
};

// For sentences that are errors wherever they are instantiated.
template <class T>
inline constexpr bool never = false;

class Declared;
void replay(const Declared& workflow, std::string_view exported);

class Declared {
 public:
  const std::string& name() const { return name_; }

 protected:
  Declared(std::string name, std::weak_ptr<AppState> app) : name_(std::move(name)), app_(std::move(app)) {}

  AnyHandle submit_json(std::string input_json, const SubmitOptions& options) const;
  void submit_json_async(std::string input_json, const SubmitOptions& options,
                         std::function<void(AnyHandle)> done) const;
  AnyHandle submit_json_in(sqlite3* connection, std::string input_json, const SubmitOptions& options) const;
  AnyHandle submit_json_in(pg_conn* connection, std::string input_json, const SubmitOptions& options) const;

  AnyWorkflowHandle start_json(std::string_view workflow_id, std::string input_json,
                               const SubmitOptions& options) const;
  void start_json_async(std::string_view workflow_id, std::string input_json, const SubmitOptions& options,
                        std::function<void(AnyWorkflowHandle)> started) const;
  AnyWorkflowHandle start_json_in(sqlite3* connection, std::string_view workflow_id, std::string input_json,
                                  const SubmitOptions& options) const;
  AnyWorkflowHandle start_json_in(pg_conn* connection, std::string_view workflow_id, std::string input_json,
                                  const SubmitOptions& options) const;
  AnyWorkflowHandle find_workflow(std::string_view workflow_id) const;

 private:
  friend void replay(const Declared& workflow, std::string_view exported);

  App app() const;  // throws if it has none, or it is closed

  std::string name_;
  std::weak_ptr<AppState> app_;
};

}  // namespace detail

}  // namespace hapax
