#include "engine/turn.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <type_traits>

#include "core/canonical_json.h"
#include "engine/begin_step.h"
#include "engine/submit.h"

namespace hapax {

namespace {

std::string_view error_type(Refusal::Code code) {
  switch (code) {
    case Refusal::Code::idempotency_key_required: return "IdempotencyKeyRequired";
    case Refusal::Code::identity_field_missing: return "IdentityFieldMissing";
    default: return "InvalidRequest";
  }
}

Event refused(std::int32_t step, const Refusal& refusal) {
  Event event;
  event.kind = Event::Kind::closed;
  event.step = step;
  event.status = Status::failed;
  event.error = AttemptError{std::string(error_type(refusal.code)), refusal.message};
  return event;
}

bool may_be_begun(const Submission& submission) {
  return !submission.execution.identity && !submission.execution.timeout && !submission.deadline &&
         submission.execution.max_attempts > 0;
}

// Of a step that a worker elsewhere began. Nothing if the settings do not allow it, or no longer.
std::optional<Submission> resolve_begun(const std::string& name_space, const TurnRequest::Command& command,
                                        const KnownSettings& settings, const EngineOptions& options) {
  if (!command.start || !may_begin_within_turn(*command.start)) return std::nullopt;
  auto resolved = resolve(name_space, *command.start, settings, options, ExecutionId(), Submitter::workflow);
  auto* accepted = std::get_if<ResolvedSubmission>(&resolved);
  if (!accepted || !may_be_begun(accepted->submission)) return std::nullopt;
  return std::move(accepted->submission);
}

}  // namespace

std::optional<Turn> resolve_turn(TurnRequest request, const KnownSettings& settings, const EngineOptions& options,
                                 const ExecutionId& id) {
  Turn turn;
  turn.token = request.token;
  turn.name_space = request.name_space;
  turn.claimed = std::move(request.run);
  turn.step = std::move(request.step);
  turn.seen = request.seen;
  for (TurnRequest::Command& command : request.commands) {
    Event& event = command.event;
    std::optional<Event> outcome;
    if (command.within_turn) {
      auto& [submission, begun] = *command.within_turn;
      if (!submission) submission = resolve_begun(request.name_space, command, settings, options);
      if (!submission) return std::nullopt;
      turn.starts.push_back({event.step, *std::move(submission), std::move(begun)});
    } else if (command.start) {
      SubmitRequest& start = *command.start;
      start.dry_run = false;
      if (start.kind == Kind::workflow) {
        if (!start.idempotency_key) start.idempotency_key = child_workflow_id(turn.token.execution, event.step);
        event.key = start.idempotency_key;
      }
      auto resolved =
          resolve(request.name_space, std::move(start), settings, options, ExecutionId(), Submitter::workflow);
      if (const auto* refusal = std::get_if<Refusal>(&resolved)) {
        outcome = refused(event.step, *refusal);
      } else {
        turn.starts.push_back({event.step, std::move(std::get<ResolvedSubmission>(resolved).submission)});
      }
    }
    turn.events.push_back(std::move(event));
    if (outcome) turn.events.push_back(*std::move(outcome));
  }
  std::visit(
      [&](auto& end) {
        if constexpr (std::is_same_v<std::decay_t<decltype(end)>, TurnRequest::Continued>) {
          std::string input = canonical_json(end.input);
          const InputHash hash = hash_input(input);
          turn.end = Turn::Continued{id, std::move(input), hash};
        } else {
          turn.end = std::move(end);
        }
      },
      request.end);
  return turn;
}

namespace {

// Whether steps of these types, or of any, are claimable as soon as they are there, with nothing of the same types
// before them.
bool is_free(const std::string& name_space, const std::string& queue, const std::vector<std::string>& types,
             const KnownSettings& settings, const ClaimDesk& claims) {
  const QueueSettings limits = settings.queue(name_space, queue);
  if (limits.paused.value_or(false) || limits.max_running || limits.rate_limit) return false;
  if (types.empty()) return claims.is_empty({name_space, queue, Kind::task});
  return std::all_of(types.begin(), types.end(),
                     [&](const std::string& type) { return claims.is_empty({name_space, queue, Kind::task, type}); });
}

}  // namespace

std::optional<Execution> begin_within_turn(const Execution& run, const TurnWorker& call, TurnRequest::Command& command,
                                           const KnownSettings& settings, const EngineOptions& options,
                                           const ClaimDesk& claims, Time now) {
  if (!command.start || !may_begin_within_turn(*command.start) || run.timeout) return std::nullopt;
  const std::string queue = queue_of(call.name_space, *command.start, settings);
  if (std::find(call.queues.begin(), call.queues.end(), queue) == call.queues.end() ||
      !is_free(call.name_space, queue, {command.start->type}, settings, claims))
    return std::nullopt;
  std::optional<Submission> submission = resolve_begun(call.name_space, command, settings, options);
  if (!submission) return std::nullopt;
  Execution step = begin_step(submission->execution, run, call, command, now);
  command.within_turn->submission = std::move(submission);
  return step;
}

StepsWithinTurns steps_within_turns(const std::string& name_space, const std::vector<std::string>& queues,
                                    const std::vector<std::string>& claimed_types, const KnownSettings& settings,
                                    const EngineOptions& options, const ClaimDesk& claims) {
  constexpr std::size_t kMaxTypes = 200;  // more would take longer than they gain
  StepsWithinTurns allowed;
  const std::vector<std::string> types = settings.type_names(name_space);
  if (types.size() > kMaxTypes) return allowed;
  for (const std::string& queue : queues) {
    if (is_free(name_space, queue, claimed_types, settings, claims)) allowed.queues.push_back(queue);
  }
  if (allowed.queues.empty()) return allowed;
  for (const std::string& type : types) {
    TurnRequest::Command command;
    command.start.emplace().type = type;
    if (!resolve_begun(name_space, command, settings, options)) allowed.except_types.push_back(type);
  }
  return allowed;
}

std::int64_t steps_begun(const Turn& turn) {
  return std::count_if(turn.starts.begin(), turn.starts.end(),
                       [](const Turn::Start& start) { return start.begun.has_value(); });
}

std::int64_t steps_completed(const Turn& turn) {
  return std::count_if(turn.starts.begin(), turn.starts.end(),
                       [](const Turn::Start& start) { return start.begun && start.begun->completed; });
}

void resolve_control(ControlRequest& request, const EngineOptions& options, const ExecutionId& id) {
  request.request_ttl = options.request_ttl;
  std::string parameters;
  if (request.action == ControlRequest::Action::cancel && request.asks) {
    parameters = fmt::format("request {} {}", request.grace ? format_duration(*request.grace) : "",
                             request.payload.value_or(""));
  } else if (request.action == ControlRequest::Action::signal) {
    append_json_string(parameters, request.signal);
    parameters += request.payload ? canonical_json(parse_json(*request.payload)) : "";
  } else if (request.action == ControlRequest::Action::fork) {
    if (request.from_step == 0) request.from_step = 1;  // from the start
    parameters = fmt::format("{} {}", request.from_step, request.fork_workflow_id);
    if (request.fork_workflow_id.empty()) {
      request.fork_workflow_id = fork_workflow_id(request.workflow_id.value_or(""), request.request_key);
    }
    request.fork_identity = workflow_identity(request.name_space, request.fork_workflow_id);
    request.fork_id = id;
  }
  request.parameters = hash_input(parameters);
}

std::optional<Execution> find_workflow(Store& store, const std::string& name_space, const std::string& workflow_id) {
  // The ledger knows the current run; after its entry has died, it is the run with the largest id.
  const Identity of_id = workflow_identity(name_space, workflow_id);
  auto identity = store.find_identity_in(name_scope(of_id.scope, {}, {}), of_id.hash);
  if (identity && identity->owner) return std::move(identity->owner);
  ListFilter filter;
  filter.name_space = name_space;
  filter.kind = Kind::workflow;
  filter.idempotency_key = workflow_id;
  filter.limit = 1;
  Page runs = store.list(filter);
  if (!runs.damaged.empty()) {
    const std::string& what = runs.damaged.front().what;
    throw Failure(Failure::Code::corrupt, what, what);
  }
  if (runs.empty()) return std::nullopt;
  return std::move(runs.front());
}

namespace {

using Steady = std::chrono::steady_clock;

class RunsWait final : public Waiting, public std::enable_shared_from_this<RunsWait> {
 public:
  using Find = std::function<std::optional<Execution>()>;

  RunsWait(ResultDesk& results, Timer& reader, std::string name_space, Duration wait,
           Reply<std::optional<Execution>> reply, Find find)
      : results_(results),
        reader_(reader),
        name_space_(std::move(name_space)),
        until_(Steady::now() + wait),
        reply_(std::move(reply)),
        find_(std::move(find)) {}

  void begin() {
    reader_.soon([self = shared_from_this()] { self->find_and_wait(); });
  }

  // Another server may have replaced this run by the time this is known here: then it is not completed, and the current
  // run is looked up.
  void begin_with(const ResultDesk::OpenRun& run) {
    assumed_ = run.id;
    wait_for(run.id, run.since);
  }

  void cancel() override {
    std::shared_ptr<Waiting> current;
    {
      const std::lock_guard lock(mutex_);
      cancelled_ = true;
      current = current_.lock();
    }
    if (current) current->cancel();
  }

 private:
  void find_and_wait() {
    std::optional<Execution> run;
    const ResultDesk::Mark mark = results_.mark();
    try {
      run = find_();
    } catch (...) {
      return reply_(std::current_exception());
    }
    const bool is_open = run && !is_closed(run->status);
    run ? wait_for(run->id, is_open ? std::optional(mark) : std::nullopt) : reply_(std::optional<Execution>());
  }

  void wait_for(const ExecutionId& run, std::optional<ResultDesk::Mark> found_open_since = {}) {
    const auto left = std::chrono::duration_cast<Duration>(until_ - Steady::now());
    auto waiting = results_.wait(
        name_space_, run, std::max(left, Duration(0)),
        [self = shared_from_this()](Answer<std::optional<Execution>> answer) { self->answered(std::move(answer)); },
        found_open_since);
    const std::lock_guard lock(mutex_);
    current_ = waiting;
    if (cancelled_ && waiting) waiting->cancel();
  }

  void answered(Answer<std::optional<Execution>> answer) {
    std::optional<Execution> run;
    try {
      run = std::move(answer).get();
    } catch (...) {
      return reply_(std::current_exception());
    }
    if (run && run->run.continued_as) return wait_for(*run->run.continued_as);
    const bool is_doubtful = !run || (is_closed(run->status) && run->status != Status::completed);
    if (is_doubtful && assumed_ && (!run || run->id == *assumed_)) {
      assumed_.reset();
      return begin();
    }
    reply_(std::move(run));
  }

  ResultDesk& results_;
  Timer& reader_;
  const std::string name_space_;
  const Steady::time_point until_;
  const Reply<std::optional<Execution>> reply_;
  const Find find_;
  std::optional<ExecutionId> assumed_;  // to be the current run
  std::mutex mutex_;
  std::weak_ptr<Waiting> current_;  // which holds this one
  bool cancelled_ = false;
};

}  // namespace

std::shared_ptr<Waiting> wait_for_runs(ResultDesk& results, Timer& reader, const std::string& name_space,
                                       const std::string& workflow_id, Duration wait,
                                       Reply<std::optional<Execution>> reply,
                                       std::function<std::optional<Execution>()> find) {
  const auto open = wait > Duration(0) ? results.open_run(name_space, workflow_id) : std::nullopt;
  auto waiting = std::make_shared<RunsWait>(results, reader, name_space, wait, std::move(reply), std::move(find));
  open ? waiting->begin_with(*open) : waiting->begin();
  return waiting;
}

}  // namespace hapax
