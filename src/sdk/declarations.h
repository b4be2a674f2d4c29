// The tasks and workflows that this program declared, by type.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "engine/engine.h"
#include "hapax/app.h"

namespace hapax::detail {

// Stands for every type without its own task.
inline constexpr std::string_view kAnyType = "";

struct DeclaredTask {
  TaskOptions options;
  Handler handler;
};

struct DeclaredWorkflow {
  WorkflowOptions options;
  WorkflowFunction function;
};

class Declarations {
 public:
  // Throws Error for a type that is declared already, and for a function that has another name.
  void declare(std::string type, DeclaredTask task, const void* address);
  void declare(std::string type, DeclaredWorkflow workflow, const void* address);
  void declare_any(DeclaredTask task);                  // for every type without its own task
  void mock(const std::string& type, Handler handler);  // in place of the task's own, if it has one

  // Throws Error for a function that was not declared.
  std::string type_of(const void* address) const;

  std::optional<std::string> find_type(const void* address) const;

  // The queue that the type was declared with, if it was.
  std::optional<std::string> queue_of(std::string_view type, Kind kind = Kind::task) const;

  // The settings of types that the engine was not told of yet.
  std::map<std::string, TypeSettings> take_untold();
  void put_back(std::map<std::string, TypeSettings> untold);

  std::map<std::string, DeclaredTask> tasks() const;
  std::map<std::string, DeclaredWorkflow> workflows() const;

 private:
  void check_new(bool is_taken, const std::string& type, const std::string& what, const void* address) const;

  mutable std::mutex mutex_;
  std::map<std::string, DeclaredTask, std::less<>> tasks_;
  std::map<std::string, DeclaredWorkflow, std::less<>> workflows_;
  std::map<std::string, TypeSettings> untold_;
  std::map<const void*, std::string> types_;  // of plain functions
};

// A submission as the caller worded it, for the engine. Throws Error for what breaks a rule (engine/check_request.h).
SubmitRequest to_request(const Declarations& declared, std::string_view type, const std::string& input_json,
                         const SubmitOptions& options, Kind kind = Kind::task);

// The document in a JSON text; the empty text is null. Throws Error(InvalidJson).
Json parse_document(const std::string& json);

// Throws Error(InvalidRequest) for what cannot be the name of a signal, a side effect or a change.
void check_step_name(std::string_view name);

}  // namespace hapax::detail
