// The lanes of an engine, one for each verb that changes something.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/lane.h"
#include "store/store.h"

namespace hapax {

// The approximate size of the payloads, which a lane bounds.
inline std::size_t bytes_of(const std::optional<std::string>& text) { return text ? text->size() : 0; }
inline std::size_t bytes_of(const Submission& submission) { return submission.execution.input.size(); }
inline std::size_t bytes_of(const Report& report) {
  if (const auto* completed = std::get_if<Report::Completed>(&report.outcome)) return bytes_of(completed->result);
  const auto* failed = std::get_if<Report::Failed>(&report.outcome);
  return failed ? static_cast<std::size_t>(failed->error.payload_bytes()) : 0;
}
inline std::size_t bytes_of(const Turn& turn) {
  std::size_t bytes = 0;
  for (const Event& event : turn.events) bytes += bytes_of(event.value);
  for (const Turn::Start& start : turn.starts) {
    bytes += bytes_of(start.submission);
    if (start.begun && start.begun->completed) bytes += bytes_of(start.begun->completed->result);
  }
  return bytes;
}
template <class Item>
std::size_t bytes_of(const std::vector<Item>& items) {
  std::size_t bytes = 0;
  for (const Item& item : items) bytes += bytes_of(item);
  return bytes;
}

class Lanes {
 public:
  struct Commits {
    Lane<Submission, SubmitOutcome>::Commit submit;
    Lane<Report, FinishOutcome>::Commit finish;
    Lane<Extension, ExtendOutcome>::Commit extend;
    Lane<ControlRequest, ControlOutcome>::Commit control;
    Lane<Turn, TurnOutcome>::Commit turns;
  };

  Lanes(Commits commits, const Store::Parallelism& at_once, const LaneLimits& limits,
        std::optional<Duration> submit_backlog)
      : submit(std::move(commits.submit), kMaxCommit, true, at_once.submit, at_once.worth_items,
               with_backlog(limits, submit_backlog)),
        finish(std::move(commits.finish), kMaxCommit, true, 1, 1, limits),
        extend(std::move(commits.extend), kMaxCommit, true, 1, 1, limits),
        control(std::move(commits.control), kMaxCommit, true, 1, 1, limits),
        turns(std::move(commits.turns), kMaxCommit, true, at_once.commit_turns, at_once.worth_items, limits) {}

  void expire() {
    submit.expire();
    finish.expire();
    extend.expire();
    control.expire();
    turns.expire();
  }

  void stop() {
    submit.stop();
    finish.stop();
    control.stop();
    turns.stop();
    extend.stop();  // the last: the others give back
  }

  std::int64_t failures() const {
    return submit.failures() + finish.failures() + extend.failures() + control.failures() + turns.failures();
  }

  Lane<Submission, SubmitOutcome> submit;
  Lane<Report, FinishOutcome> finish;
  Lane<Extension, ExtendOutcome> extend;
  Lane<ControlRequest, ControlOutcome> control;
  Lane<Turn, TurnOutcome> turns;

 private:
  static LaneLimits with_backlog(LaneLimits limits, std::optional<Duration> backlog) {
    limits.backlog = backlog;
    return limits;
  }

  // A larger commit no longer gets cheaper per item, but keeps the others waiting longer.
  static constexpr std::size_t kMaxCommit = 512;
};

}  // namespace hapax
