#include "capi/worker.h"

#include <algorithm>
#include <utility>

#include "core/field.h"
#include "core/json.h"
#include "core/json_writer.h"
#include "engine/check_request.h"
#include "http/error.h"
#include "sdk/errors.h"
#include "sdk/own_origin.h"
#include "wire/read_request.h"
#include "wire/worker.h"
#include "wire/write_answer.h"

namespace hapax::capi {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMaxClaimsUnderWay = 4;  // of tasks and of turns each
constexpr std::int64_t kMostCredit = 1'000'000;
constexpr auto kClaimWait = 20s;
constexpr auto kGather = 2ms;  // for more credit, before a small claim
constexpr auto kPauseAfterFailure = 500ms;
constexpr Duration kFirstUnknownPause{50}, kLongestUnknownPause{2000};

std::optional<std::set<std::string>> set_of(std::optional<std::vector<std::string>> names) {
  if (!names) return std::nullopt;
  return std::set<std::string>(names->begin(), names->end());
}

std::atomic<std::uint64_t> last_claim = 0;

}  // namespace

Json parse_given(std::string_view text) {
  try {
    return parse_json(text);
  } catch (const InvalidJson& error) {
    throw InvalidField("", std::string("is not JSON: ") + error.what(), "InvalidJson");
  }
}

Json with_lease(Json document) {
  std::erase_if(document.members, [](const auto& member) { return member.first == "lease"; });
  Json lease;
  lease.kind = Json::Kind::string;
  document.members.emplace_back("lease", std::move(lease));
  return document;
}

WorkerOptions read_worker_options(const char* json) {
  WorkerOptions options;
  const Json document = parse_given(json == nullptr || *json == '\0' ? "{}" : json);
  if (!document.is(Json::Kind::object)) throw InvalidField("", "the options must be a JSON object");
  FieldReader fields(document);
  options.name = fields.string("name").value_or(detail::own_name());
  options.queues = fields.strings("queues").value_or(std::vector<std::string>{"default"});
  options.types = set_of(fields.strings("types"));
  options.workflows = set_of(fields.strings("workflows"));
  options.lease = fields.duration("lease").value_or(options.lease);
  options.origin = detail::own_origin("c");
  if (fields.object("sdk")) options.origin.version.clear();  // that of the library on top, if it says so
  wire::read_sdk(fields, options.origin);
  fields.done();
  ClaimCall call;
  call.name_space = "default";
  call.queues = options.queues;
  call.worker = options.name;
  call.lease = options.lease;
  check(call);
  return options;
}

Worker::Worker(Workplace place, WorkerOptions options, std::shared_ptr<CompletionQueue> queue)
    : place_(std::move(place)), options_(std::move(options)), queue_(std::move(queue)) {
  reports_ = std::make_unique<detail::ReportLane>(*place_.engine, place_.name_space, options_.lease);
}

void Worker::start(hapax_worker* handle) {
  handle_ = handle;
  heartbeat_ = std::thread([this] { keep_leases(); });
}

void Worker::drain() {
  std::vector<std::shared_ptr<Waiting>> waiting;
  {
    const std::lock_guard lock(mutex_);
    is_draining_ = true;
    for (const Claiming& claiming : claiming_) {
      for (const auto& [call, wait] : claiming.under_way) waiting.push_back(wait);
    }
  }
  for (const auto& wait : waiting) {
    if (wait) wait->cancel();
  }
  const std::lock_guard lock(mutex_);
  end_if_quiet();
}

void Worker::stop() {
  drain();
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(is_stopping_, true)) return;
    take_back_unseen(Steady::time_point::max());
    changed_.notify_all();
  }
  if (heartbeat_.joinable()) heartbeat_.join();
  reports_->stop();
  timer_.stop();
  {
    std::unique_lock lock(mutex_);
    const auto is_answered = [&] { return asking_ == 0; };
    changed_.wait(lock, is_answered);
    for (const auto& [number, held] : held_) held->within.reset();
    held_.clear();
    unheard_.clear();
    if (!returns_.empty()) {  // of claims that were answered after the heartbeats ended
      ++asking_;
      auto returns = std::exchange(returns_, {});
      lock.unlock();
      send_returns(std::move(returns));
      lock.lock();
      changed_.wait(lock, is_answered);
    }
    end_if_quiet();
  }
}

// Nothing is under way, and the program has nothing to report. With the lock held.
bool Worker::is_quiet() const { return held_.empty() && returns_.empty() && unheard_.empty() && asking_ == 0; }

// With the lock held: once a worker has ended, another thread may destroy it.
void Worker::end_if_quiet() {
  changed_.notify_all();
  if (!is_draining_ || !is_quiet() || has_ended_.exchange(true)) return;
  tell(HAPAX_WORKER_ENDED, 0, failure_ ? *failure_ : http::json_response(200, "{}"));
}

// The last thing that the answer to a call of the engine does.
void Worker::answered() {
  const std::lock_guard lock(mutex_);
  --asking_;
  end_if_quiet();
}

void Worker::tell(std::int32_t kind, std::uint64_t claim, http::Response response) {
  queue_->tell(
      {.token = claim, .kind = kind, .worker = handle_, .make = [response = std::move(response)] { return response; }});
}

// ---- claiming

void Worker::credit(std::int32_t more_tasks, std::int32_t more_turns) {
  const std::lock_guard lock(mutex_);
  for (const auto& [line, more] : {std::pair(tasks, more_tasks), std::pair(turns, more_turns)}) {
    const std::int64_t sum = std::int64_t{claiming_[line].credit} + more;
    claiming_[line].credit = static_cast<std::int32_t>(std::clamp(sum, -kMostCredit, kMostCredit));
    if (more > 0) claim_at(line, Steady::now());
  }
}

// With the lock held.
void Worker::claim_at(Line line, Steady::time_point time) {
  Claiming& claiming = claiming_[line];
  if (claiming.is_scheduled || claiming.credit <= 0 || is_draining_) return;
  claiming.is_scheduled = true;
  timer_.at(std::max(time, claim_again_at_), [this, line] { claim_more(line); });
}

void Worker::claim_more(Line line) {
  for (;;) {
    std::int32_t limit = 0;
    {
      const std::lock_guard lock(mutex_);
      claiming_[line].is_scheduled = false;
      limit = next_limit(line);
    }
    if (limit == 0) return;
    send_claim(line, limit);
  }
}

// How many to ask for now, if any. Several claims are under way where there is much room: while one is being answered,
// another still waits, and may be handed what a commit makes claimable. What is finished quickly is claimed in bulk.
// With the lock held.
std::int32_t Worker::next_limit(Line line) {
  const Claiming& claiming = claiming_[line];
  const bool has_none = types_of(line) && types_of(line)->empty();
  if (has_none || is_draining_ || claiming.credit <= 0 || claiming.under_way.size() >= kMaxClaimsUnderWay) return 0;
  const std::int64_t room = std::int64_t{claiming.credit} + claiming.reserved + claiming.held;
  const bool is_little = std::int64_t{claiming.credit} * 4 < room;
  if (is_little && !claiming.under_way.empty()) return 0;
  const auto not_before = std::max(claim_again_at_, is_little ? claiming.answered_at + kGather : Steady::time_point{});
  if (Steady::now() < not_before) {
    claim_at(line, not_before);
    return 0;
  }
  return std::clamp((claiming.credit + 1) / 2, 1, kMaxClaims);
}

void Worker::send_claim(Line line, std::int32_t limit) {
  ClaimCall call;
  call.name_space = place_.name_space;
  call.queues = options_.queues;
  const auto& types = types_of(line);
  if (types && types->size() <= kMaxClaimTypes) call.types.assign(types->begin(), types->end());
  call.tasks = line == tasks;
  call.workflows = line == turns;
  call.limit = limit;
  call.worker = options_.name;
  call.lease = options_.lease;
  call.wait = kClaimWait;
  call.origin = options_.origin;
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    Claiming& claiming = claiming_[line];
    number = ++last_call_;
    claiming.under_way.emplace(number, nullptr);
    ++asking_;
    claiming.credit -= limit;
    claiming.reserved += limit;
  }
  auto waiting =
      place_.engine->claim(std::move(call), [this, line, number, limit](Answer<std::vector<Claimed>> answer) {
        claimed(line, number, limit, std::move(answer));
      });
  bool is_late = false;  // the worker has begun to drain
  {
    const std::lock_guard lock(mutex_);
    const auto found = claiming_[line].under_way.find(number);
    if (found == claiming_[line].under_way.end()) return;
    found->second = waiting;
    is_late = is_draining_;
  }
  if (is_late && waiting) waiting->cancel();
}

const std::optional<std::set<std::string>>& Worker::types_of(Line line) const {
  return line == turns ? options_.workflows : options_.types;
}

bool Worker::knows(const Execution& execution) const {
  const auto& types = types_of(execution.kind == Kind::workflow ? turns : tasks);
  return !types || types->contains(execution.type);
}

void Worker::claimed(Line line, std::uint64_t call, std::int32_t limit, Answer<std::vector<Claimed>> answer) {
  std::vector<Claimed> executions;
  std::exception_ptr failure;
  try {
    executions = std::move(answer).get();
  } catch (const std::exception&) {
    failure = std::current_exception();
  }
  std::vector<HeldClaim> taken;
  {
    const std::lock_guard lock(mutex_);
    const auto now = Steady::now();
    Claiming& claiming = claiming_[line];
    claiming.under_way.erase(call);
    claiming.reserved -= limit;
    claiming.answered_at = now;
    bool is_unknown = false;
    for (Claimed& each : executions) {
      const LeaseToken token{each.execution.id, each.execution.attempt, *each.execution.lease_secret};
      const bool is_known = knows(each.execution);
      is_unknown = is_unknown || !is_known;
      if (!is_known || is_draining_) {
        returns_.push_back({token, now + options_.lease});
      } else {
        taken.push_back(hold(line, std::move(each)));
      }
    }
    claiming.credit += limit - static_cast<std::int32_t>(taken.size());
    claiming.held += static_cast<std::int32_t>(taken.size());
    if (failure) claim_again_at_ = now + kPauseAfterFailure;
    // A claim that got only what this worker does not know: do not ask for the same again at once.
    unknown_pause_ = !is_unknown || !taken.empty()
                         ? Duration(0)
                         : std::clamp(2 * unknown_pause_, kFirstUnknownPause, kLongestUnknownPause);
    claim_again_at_ = std::max(claim_again_at_, now + unknown_pause_);
    claim_at(line, now);
    changed_.notify_all();
  }
  for (const HeldClaim& held : taken) deliver(held);
  if (failure) fail(failure);
  answered();
}

// With the lock held.
Worker::HeldClaim Worker::hold(Line line, Claimed claimed) {
  const std::uint64_t number = ++last_claim;
  auto held = std::make_shared<Held>(number, line, std::move(claimed));
  held_.emplace(number, held);
  if (held->task.ends_at == Steady::time_point::max()) return held;
  held->time_over = timer_.at(held->task.ends_at, [this, number] {
    {
      const std::lock_guard lock(mutex_);
      const auto found = held_.find(number);
      if (found == held_.end() || !found->second->is_with_program) return;
    }
    tell(HAPAX_TIME_OVER, number);
  });
  return held;
}

void Worker::deliver(const HeldClaim& held) {
  queue_->tell(
      {.token = held->number, .kind = held->line == turns ? HAPAX_TURN : HAPAX_TASK, .worker = handle_, .make = [held] {
         held->is_drained = true;
         JsonWriter out;
         wire::write_claim_of(out, held->task.execution, held->task.events);
         return http::json_response(200, out.take());
       }});
}

// What keeps it from claiming for good ends the worker: a wrong token, a damaged store.
void Worker::fail(const std::exception_ptr& why) {
  try {
    std::rethrow_exception(why);
  } catch (const Failure& failure) {
    if (failure.safe_to_retry()) return;
    const Error error = detail::to_error(failure);
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = no_answer(error.code(), error.what(), false);
  } catch (const std::exception& error) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = no_answer("InternalError", error.what(), false);
  }
  drain();
}

// ---- reporting

void Worker::finish(std::uint64_t claim, const char* outcome, std::size_t size) {
  std::optional<wire::FinishItem> item;
  try {
    if (outcome != nullptr) {
      item = wire::read_finish_item(with_lease(parse_given({outcome, size})), "");
    }
  } catch (const std::exception&) {
    return refuse(claim, std::current_exception());
  }
  const HeldClaim held = take_from_program(claim, tasks);
  if (!held) return;
  if (!item) return give_back(held);
  Report said{held->task.token, std::move(item->outcome), place_.name_space};
  held->within ? end_step(held, std::move(said)) : report(held, std::move(said));
}

// Null if it is not there any more: the lease was lost, or it was reported.
Worker::HeldClaim Worker::take_from_program(std::uint64_t claim, Line line) {
  const std::lock_guard lock(mutex_);
  const auto found = held_.find(claim);
  if (found == held_.end()) return nullptr;
  const HeldClaim held = found->second;
  if (held->line != line || !held->is_with_program) return nullptr;
  held->is_with_program = false;
  if (held->is_counted) --claiming_[line].held;
  held->is_counted = false;
  if (held->time_over) timer_.cancel(*held->time_over);
  return held;
}

// An attempt that failed because its time was over is the engine's to end.
void Worker::report(const HeldClaim& held, Report report) {
  if (std::holds_alternative<Report::Failed>(report.outcome) && held->task.is_over()) return release(held);
  reports_->put(std::move(report), [this, held](Answer<std::vector<FinishOutcome>> answer) {
    bool is_accepted = false;
    try {
      is_accepted = std::move(answer).get().at(0).accepted;
    } catch (const std::exception&) {
      // The lease ends, and another attempt follows.
    }
    if (!is_accepted) tell(HAPAX_LEASE_LOST, held->number);
    release(held);
  });
}

void Worker::give_back(const HeldClaim& held) {
  bool goes_with_turn = false;
  {
    const std::lock_guard lock(mutex_);
    StepInTurn* within = held->within.get();
    goes_with_turn = within && !within->is_told;  // nobody else knows of it
    if (goes_with_turn) {
      within->is_told = true;
      within->request->commands.back().within_turn.reset();
    } else if (within && !within->is_known) {
      within->is_given_back = true;  // there is no lease yet to give back
      return;
    } else {
      returns_.push_back({held->task.token, Steady::now() + options_.lease});
      changed_.notify_all();
    }
  }
  if (goes_with_turn) end_turn(held->within->turn, held->within->request);
  release(held);
}

void Worker::release(const HeldClaim& held) {
  {
    const std::lock_guard lock(mutex_);
    held_.erase(held->number);
    held->within.reset();
    if (held->is_counted) --claiming_[held->line].held;
    held->is_counted = false;
    end_if_quiet();
  }
}

void Worker::lose(const HeldClaim& held) {
  tell(HAPAX_LEASE_LOST, held->number);
  release(held);
}

void Worker::refuse(std::uint64_t claim, const std::exception_ptr& why) {
  tell(HAPAX_REFUSED, claim, http::error_response(why));
}

// ---- leases

void Worker::keep_leases() {
  const auto period = std::max<Duration>(options_.lease / 3, Duration(1));
  auto next_beat = Steady::now() + period;
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto may_return = [&] { return !returns_.empty() && Steady::now() >= return_again_at_; };
    const auto until = returns_.empty() ? next_beat : std::min(next_beat, std::max(return_again_at_, Steady::now()));
    changed_.wait_until(lock, until, [&] { return is_stopping_ || may_return(); });
    auto returns = may_return() || is_stopping_ ? std::exchange(returns_, {}) : std::vector<Return>();
    std::vector<HeldClaim> claims, unseen;
    if (Steady::now() >= next_beat) {
      next_beat = Steady::now() + period;
      unseen = take_back_unseen(Steady::now() - options_.lease);
      for (const auto& [number, held] : held_) {
        if (held->has_lease) claims.push_back(held);
      }
    }
    const bool is_last = is_stopping_;
    asking_ += (returns.empty() ? 0 : 1) + (claims.empty() ? 0 : 1);
    lock.unlock();
    for (const HeldClaim& held : unseen) tell(HAPAX_LEASE_LOST, held->number);
    if (!returns.empty()) send_returns(std::move(returns));
    if (!claims.empty()) extend(claims);
    if (is_last) return;
    lock.lock();
  }
}

// A program that does not drain its queue must not keep claims from workers that would run them. With the lock held.
std::vector<Worker::HeldClaim> Worker::take_back_unseen(Steady::time_point delivered_by) {
  std::vector<HeldClaim> unseen;
  for (const auto& [number, held] : held_) {
    const bool is_unseen = held->is_with_program && !held->is_drained && held->has_lease && !held->done;
    if (is_unseen && held->delivered_at <= delivered_by) unseen.push_back(held);
  }
  for (const HeldClaim& held : unseen) {
    returns_.push_back({held->task.token, Steady::now() + options_.lease});
    held->is_with_program = false;
    if (held->time_over) timer_.cancel(*held->time_over);
    if (std::exchange(held->is_counted, false)) --claiming_[held->line].held;
    held_.erase(held->number);
  }
  return unseen;
}

// Until the engine has answered: a lease that ends instead would cost an attempt.
void Worker::send_returns(std::vector<Return> returns) {
  std::vector<Extension> extensions;
  for (const Return& each : returns) extensions.push_back({each.token, Duration(0), place_.name_space});
  place_.engine->heartbeat(std::move(extensions), [this, returns](Answer<std::vector<ExtendOutcome>> answer) {
    bool may_try_again = false;
    try {
      std::move(answer).get();
    } catch (const Failure& failure) {
      may_try_again = failure.safe_to_retry();
    }
    const std::lock_guard lock(mutex_);
    --asking_;
    if (may_try_again && !is_stopping_) {
      return_again_at_ = Steady::now() + kPauseAfterFailure;
      std::copy_if(returns.begin(), returns.end(), std::back_inserter(returns_),
                   [&](const Return& each) { return each.give_up_at > return_again_at_; });
    }
    end_if_quiet();
  });
}

void Worker::extend(const std::vector<HeldClaim>& claims) {
  std::vector<Extension> extensions;
  for (const HeldClaim& held : claims) extensions.push_back({held->task.token, options_.lease, place_.name_space});
  place_.engine->heartbeat(std::move(extensions), [this, claims](Answer<std::vector<ExtendOutcome>> answer) {
    std::vector<ExtendOutcome> outcomes;
    try {
      outcomes = std::move(answer).get();
    } catch (const std::exception&) {
      // The next round tries again; a lease that ends before fences this worker off.
    }
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      const HeldClaim& held = claims[i];
      if (!outcomes[i].ok) {
        if (take_from_program(held->number, held->line)) lose(held);
      } else if (outcomes[i].cancel_requested && !held->task.cancel_requested.exchange(true)) {
        // The code of a workflow is told by its history.
        if (held->task.execution.kind == Kind::task) tell(HAPAX_CANCEL_REQUESTED, held->number);
      }
    }
    answered();
  });
}

}  // namespace hapax::capi
