#include "sdk/app_state.h"

#include <pthread.h>

#include "sdk/workflow_run.h"

namespace hapax::detail {

namespace {

std::atomic<std::uint64_t> fork_count = 0;

}  // namespace

std::uint64_t AppState::forks() {
  [[maybe_unused]] static const int once = pthread_atfork(nullptr, nullptr, [] { ++fork_count; });
  return fork_count;
}

void AppState::check_usable() const {
  if (is_forked()) {
    throw Error("InvalidRequest",
                "this process was forked from the one that opened the app, and has none of its threads: call "
                "hapax::open() in the child, after the fork");
  }
  if (is_inside_workflow()) {
    throw Error("InvalidRequest",
                "the code of a workflow is replayed and must not block, so it cannot use the app: run a task with "
                "ctx.run(), a workflow with ctx.run_workflow(), or do this in a task");
  }
}

}  // namespace hapax::detail
