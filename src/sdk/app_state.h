// What all copies of an App share.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/remote_engine.h"
#include "engine/engine.h"
#include "hapax/app.h"
#include "open/open_engine.h"

namespace hapax::detail {

// Stands for every type that has no task of its own.
inline constexpr std::string_view kAnyType = "";

struct DeclaredTask {
  TaskOptions options;
  Handler handler;
};

class AppState {
 public:
  AppState(Opened opened, std::string name_space) : opened_(std::move(opened)), name_space_(std::move(name_space)) {}

  Engine& engine() const { return *opened_.engine; }
  const Opened& opened() const { return opened_; }
  const std::string& name_space() const { return name_space_; }

  void declare(std::string type, DeclaredTask task, const void* address);
  std::string type_of(const void* address) const;

  // The queue that the type was declared with, if it was.
  std::optional<std::string> queue_of(std::string_view type) const;
  std::map<std::string, DeclaredTask> tasks() const;

  // What work() looks at, and takes back when it returns.
  std::atomic<bool> stop_requested = false;

 private:
  const Opened opened_;
  const std::string name_space_;
  mutable std::mutex mutex_;
  std::map<std::string, DeclaredTask, std::less<>> tasks_;
  std::map<const void*, std::string> types_;  // of plain functions
};

// A submission as the caller worded it, for the engine. Throws Error(InvalidRequest) for words it does not know.
SubmitRequest to_request(const AppState& state, std::string_view type, const std::string& input_json,
                         const SubmitOptions& options);

inline const char* code_of(const Failure& failure) {
  switch (failure.code()) {
    case Failure::Code::unavailable:
    case Failure::Code::outcome_unknown: return "StoreUnavailable";
    case Failure::Code::corrupt: return "StoreCorrupt";
    case Failure::Code::misuse: return "InvalidRequest";
    case Failure::Code::stopped: return "ShuttingDown";
  }
  return "StoreUnavailable";
}

// Runs what the engine may throw, and gives it the caller's exceptions.
template <class Function>
auto translating(Function&& function) -> decltype(function()) {
  try {
    return function();
  } catch (const RemoteRefusal& refusal) {
    throw Error(refusal.word(), refusal.what());
  } catch (const Failure& failure) {
    throw Error(code_of(failure), failure.what(), failure.safe_to_retry());
  }
}

class HandleState {
 public:
  HandleState(std::shared_ptr<AppState> app, SubmitResult result) : app_(std::move(app)), result_(std::move(result)) {}

  // Throws the refusal that this submission met, if it met one.
  const Receipt& receipt() const;
  const ExecutionId& id() const { return receipt().execution.id; }
  AppState& app() const { return *app_; }

 private:
  const std::shared_ptr<AppState> app_;
  const SubmitResult result_;
};

}  // namespace hapax::detail
