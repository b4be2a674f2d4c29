// The state that all copies of an App share.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <variant>

#include "engine/engine.h"
#include "hapax/app.h"
#include "open/open_engine.h"
#include "sdk/declarations.h"
#include "sdk/errors.h"
#include "sdk/telling.h"

namespace hapax::detail {

class AppState : public Declarations, public std::enable_shared_from_this<AppState> {
 public:
  AppState(Opened opened, std::string name_space, Telling::Log log = {},
           std::shared_ptr<std::atomic<int>> working = std::make_shared<std::atomic<int>>(0))
      : name_space_(std::move(name_space)),
        telling_(std::move(log)),
        working_(std::move(working)),
        opened_(std::make_unique<const Opened>(std::move(opened))) {}
  ~AppState() {
    if (is_forked()) (void)opened_.release();  // its threads are in the parent: nothing could end them here
  }

  // Throws Error in a process that was forked from the one that opened it, and in the code of a workflow.
  void check_usable() const;

  Engine& engine() const {
    check_usable();
    return *opened_->engine;
  }
  const Opened& opened() const {
    check_usable();
    return *opened_;
  }
  bool is_remote() const { return opened_->is_remote; }
  const std::string& name_space() const { return name_space_; }

  // Tells the engine what the declared tasks say of their types, if that is new. Throws Failure; then it is told the
  // next time.
  void tell_types() {
    auto untold = take_untold();
    try {
      for (const auto& [type, settings] : untold) engine().declare_type(name_space_, type, settings);
    } catch (...) {
      put_back(std::move(untold));
      throw;
    }
  }

  Telling& telling() { return telling_; }
  const Telling& telling() const { return telling_; }

  // What every work() looks at. The last one to return takes it back.
  std::atomic<bool> stop_requested = false;
  void work_begins() { ++*working_; }
  void work_ended() {
    if (--*working_ == 0) stop_requested = false;
  }

 private:
  static std::uint64_t forks();  // of which this process is the child
  bool is_forked() const { return forks_ != forks(); }

  const std::string name_space_;
  Telling telling_;
  const std::shared_ptr<std::atomic<int>> working_;  // workers
  const std::uint64_t forks_ = forks();              // when it was opened
  std::unique_ptr<const Opened> opened_;             // destroyed first: what it still answers may use the rest
};

// For what the engine calls: it ends before the state does, and on no thread of its own, so that must not be what keeps
// the state.
inline std::shared_ptr<AppState> unowned(const std::shared_ptr<AppState>& state) {
  return {std::shared_ptr<void>(), state.get()};
}

class HandleState {
 public:
  using Result = std::variant<Receipt, Error>;

  HandleState(std::shared_ptr<AppState> app, Result&& result) : app_(std::move(app)), result_(std::move(result)) {}

  // Throws this submission's refusal or failure, if any.
  const Receipt& receipt() const;
  const ExecutionId& id() const { return receipt().execution.id; }
  AppState& app() const { return *app_; }

 private:
  const std::shared_ptr<AppState> app_;
  const Result result_;
};

class WorkflowHandleState {
 public:
  // The outcome of the start, or why it is unknown.
  using Result = std::variant<Receipt, Error>;

  WorkflowHandleState(std::shared_ptr<AppState> app, std::string workflow_id, Result result)
      : app_(std::move(app)), workflow_id_(std::move(workflow_id)), result_(std::move(result)) {}
  // How the workflow ended, or why that is unknown.
  using End = std::variant<Execution, Error>;
  WorkflowHandleState(const WorkflowHandleState& started, End end)
      : app_(started.app_), workflow_id_(started.workflow_id_), result_(started.result_), end_(std::move(end)) {}

  // The same for callbacks of the engine, which must not keep the app alive.
  std::shared_ptr<WorkflowHandleState> unowned() const {
    return std::make_shared<WorkflowHandleState>(hapax::detail::unowned(app_), workflow_id_, result_);
  }

  const std::string& workflow_id() const { return workflow_id_; }
  // Throws the start's refusal or failure, if any.
  const Receipt& receipt() const;
  const Error* failure() const { return std::get_if<Error>(&result_); }
  // Nothing if it is not known yet. Throws the failure that kept it from being known.
  const Execution* end() const;
  AppState& app() const { return *app_; }
  const std::shared_ptr<AppState>& shared_app() const { return app_; }

 private:
  const std::shared_ptr<AppState> app_;
  const std::string workflow_id_;
  const Result result_;
  const std::optional<End> end_;
};

// The receipt, or the refusal as the error that it is thrown as.
std::variant<Receipt, Error> received_or_refused(SubmitResult&& result, Kind of);

}  // namespace hapax::detail
