#include "sdk/report_lane.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "sdk/thrown.h"

namespace hapax::detail {

namespace {

using Steady = std::chrono::steady_clock;

constexpr std::size_t kMaxReports = 1000;                 // in one call
constexpr Duration kFirstPause{50}, kLongestPause{2000};  // before the same is reported again

}  // namespace

ReportLane::ReportLane(Engine& engine, std::string name_space, Duration lease)
    : engine_(engine),
      name_space_(std::move(name_space)),
      lease_(lease),
      lane_([this](std::span<const Report> reports) { return finish(reports); }, kMaxReports, false) {}

void ReportLane::put(Report report, Reply<std::vector<FinishOutcome>> done) {
  std::vector<Report> reports;
  reports.push_back(std::move(report));
  lane_.put(std::move(reports), std::move(done));
}

void ReportLane::stop() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    ending_.notify_all();
  }
  lane_.stop();
}

// Reports until the engine has answered: a report may be repeated, and a lost lease fences it off.
std::vector<FinishOutcome> ReportLane::finish(std::span<const Report> reports) {
  const auto give_up = Steady::now() + lease_;
  for (Duration pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
    try {
      return await<std::vector<FinishOutcome>>(
          [&](auto reply) { engine_.finish(std::vector<Report>(reports.begin(), reports.end()), std::move(reply)); });
    } catch (const Failure& failure) {
      if (!failure.safe_to_retry()) return finish_one_by_one(reports, failure.what());
      if (Steady::now() + pause > give_up) throw;
    }
    std::unique_lock lock(mutex_);
    ending_.wait_for(lock, pause, [&] { return ended_; });
  }
}

// A refused report (a result too large to send) must not affect the others: it fails its task for good.
std::vector<FinishOutcome> ReportLane::finish_one_by_one(std::span<const Report> reports, const std::string& why) {
  std::vector<FinishOutcome> outcomes;
  if (reports.size() > 1) {
    for (const Report& report : reports) outcomes.push_back(finish({&report, 1}).at(0));
    return outcomes;
  }
  Report refused{reports[0].token, Report::Failed{presentable_error("ReportRefused", why), false}, name_space_};
  return await<std::vector<FinishOutcome>>([&](auto reply) { engine_.finish({refused}, std::move(reply)); });
}

}  // namespace hapax::detail
