#include "engine/run_starter.h"

#include <algorithm>
#include <iterator>

namespace hapax {

namespace {

constexpr std::size_t kMaxRecord = 1000;

// A firing may be repeated for this long (a server died half-way, an event is delivered again), and must then find its
// workflow's id, even if the workflow itself is kept for less.
constexpr Duration kIdsKept = std::chrono::days(7);

}  // namespace

struct Starting {
  std::string name_space;
  std::vector<SubmitRequest> requests;
  std::vector<SubmitResult> results;
  Reply<std::vector<SubmitResult>> reply;
};

RunStarter::RunStarter(Engine& engine, Store& store, const KnownSettings& settings, LaneLimits limits)
    : engine_(engine),
      store_(store),
      settings_(settings),
      ledger_([this](std::span<const ActivityRun> runs) { return store_.activities().record(runs); }, kMaxRecord, true,
              1, 1, limits) {}

void RunStarter::start(const std::string& name_space, std::vector<SubmitRequest> requests,
                       Reply<std::vector<SubmitResult>> reply) {
  const auto policies = settings_.policies();
  for (SubmitRequest& request : requests) {
    const std::string queue =
        request.queue ? *request.queue : settings_.type(name_space, request.type).queue.value_or("default");
    if (policies->retention(name_space, queue, Kind::workflow) < kIdsKept) request.idempotency_ttl = kIdsKept;
  }
  if (requests.empty()) return reply(std::vector<SubmitResult>());
  start_from(std::make_shared<Starting>(Starting{name_space, std::move(requests), {}, std::move(reply)}));
}

// One batch after the other, so that they are started in their order.
void RunStarter::start_from(std::shared_ptr<Starting> starting) {
  const auto from = starting->requests.begin() + static_cast<std::ptrdiff_t>(starting->results.size());
  const auto left = static_cast<std::size_t>(starting->requests.end() - from);
  const auto to = from + static_cast<std::ptrdiff_t>(std::min(left, Engine::kMaxBatch));
  std::vector<SubmitRequest> batch(std::make_move_iterator(from), std::make_move_iterator(to));
  engine_.submit(starting->name_space, std::move(batch), [this, starting](Answer<std::vector<SubmitResult>> answer) {
    try {
      for (SubmitResult& result : std::move(answer).get()) starting->results.push_back(std::move(result));
    } catch (...) {
      return starting->reply(std::current_exception());
    }
    if (starting->results.size() < starting->requests.size()) return start_from(starting);
    starting->reply(std::move(starting->results));
  });
}

void RunStarter::record(std::vector<ActivityRun> runs, Reply<std::vector<ActivityRun>> reply) {
  if (runs.empty()) return reply(std::vector<ActivityRun>());
  ledger_.put(std::move(runs), std::move(reply));
}

bool RunStarter::is_open(const std::string& name_space, const std::string& workflow_id) {
  const auto run = engine_.find_workflow(name_space, workflow_id);
  return run && !is_closed(run->status);
}

}  // namespace hapax
