#include "model/generator.h"

#include <algorithm>
#include <array>

#include "core/claim_secret.h"
#include "model/oracle/oracle.h"
#include "support/manual_clock.h"
#include "support/task.h"

namespace hapax::model {

namespace {

using namespace std::chrono_literals;

const std::vector<std::string> kNameSpaces{"default", "tenant"};
const std::vector<std::string> kQueues{"a", "b", "c"};
const std::vector<std::string> kTypes{"x", "y"};
const std::vector<std::string> kKeys{"k0", "k1", "k2"};
const Scope kShared{Scope::Tag::global, ""};  // of all types
const std::vector<std::string> kWorkflows{"w0", "w1"};
const std::vector<std::string> kSignals{"go", "stop"};
const std::vector<Duration> kJumps{1ms, 300ms, 1s, 5s, 30s, 60s, 10min, 1h, 24h, 24h * 8};
const std::vector<Duration> kPeriods{1s, 10s, 1h, 24h};  // of rate limits
const std::vector<Duration> kSpans{0ms, 1ms, 1s, 10s, 1h, 24h};

class Generator {
 public:
  // Sequences differ in what they are mostly about.
  Generator(std::uint64_t seed, bool with_waiters)
      : random_(seed), with_waiters_(with_waiters), queues_(kQueues.begin(), kQueues.end() - below(3)) {
    workflows_ = any<std::size_t>({10, 25, 70});
    rates_ = any<std::size_t>({10, 30, 90});
  }

  Sequence run(std::size_t steps) {
    Sequence sequence;
    while (sequence.size() < steps) sequence.push_back(done(next_step()));
    sequence.push_back(done(everything()));
    return sequence;
  }

 private:
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
  bool chance(std::size_t percent) { return below(100) < percent; }
  template <class Item>
  const Item& any(const std::vector<Item>& items) {
    return items[below(items.size())];
  }
  std::string name_space() { return chance(85) ? kNameSpaces[0] : kNameSpaces[1]; }
  std::size_t batch_size() { return chance(70) ? 1 : 1 + below(5); }

  template <class Make>
  auto batch(Make make) {
    std::vector<decltype(make())> items;
    for (std::size_t n = batch_size(); n > 0; --n) items.push_back(make());
    return items;
  }

  // Also asks the oracle, to learn which tokens there are.
  Step done(Step step) {
    if (const auto* advance = std::get_if<Advance>(&step)) clock_.advance(advance->by);
    const Answer answer = oracle_.perform(step, clock_.now());
    if (const auto* outcomes = std::get_if<std::vector<SubmitOutcome>>(&answer)) {
      for (const SubmitOutcome& outcome : *outcomes) {
        if (outcome.claimed) tokens_.push_back(token_of(outcome.execution));
      }
    }
    if (const auto* outcomes = std::get_if<std::vector<ClaimOutcome>>(&answer)) {
      for (const ClaimOutcome& outcome : *outcomes) {
        for (const Execution& execution : outcome.executions) {
          tokens_.push_back(token_of(execution));
          if (execution.kind == Kind::workflow) turns_.push_back(execution);
          if (execution.kind == Kind::task && execution.parent) steps_.push_back(execution);
        }
      }
    }
    return step;
  }

  Step next_step() {
    if (with_waiters_ && chance(30)) return HandOut{item(), batch([&] { return waiting_claim(); })};
    if (!turns_.empty() && chance(workflows_ / 5)) return batch([&] { return turn(); });
    const std::size_t dice = below(100);
    if (dice < 24) return batch([&] { return submission(); });
    if (dice < 39) return batch([&] { return claim(); });
    if (dice < 47 && !turns_.empty()) return batch([&] { return turn(); });
    if (dice < 49) return batch([&] { return extension(any(kSpans)); });
    if (dice < 51) return batch([&] { return extension(Duration(0)); });  // given back
    if (dice < 64) return batch([&] { return report(); });
    if (dice < 72) return batch([&] { return control(); });
    if (dice < 85) return Advance{any(kJumps)};
    if (dice < 89) return Sweep{limit()};
    if (dice < 92) return Purge{limit()};
    if (dice < 93) return Release{name_space(), hash()};
    if (dice < 97) return policies();
    if (dice < 99) return List{filter()};
    return everything();
  }

  // One alone: among several, a store may serve those first that it has first.
  std::variant<std::vector<Submission>, std::vector<Report>, std::vector<Turn>> item() {
    const std::size_t dice = below(4);  // only a turn makes several claimable
    if (dice > 1 && !turns_.empty()) return std::vector{turn()};
    if (dice == 1) return std::vector{report()};
    return std::vector{new_submission()};
  }

  std::int32_t limit() { return chance(50) ? 100 : static_cast<std::int32_t>(1 + below(3)); }

  // Mostly of a workflow that has had a turn.
  ExecutionId run_id() { return turns_.empty() || chance(20) ? id() : any(turns_).id; }
  ExecutionId id() { return ids_.empty() || chance(3) ? test_id(999'999) : any(ids_); }

  LeaseToken token() {
    if (tokens_.empty()) return {id(), 1, test_secret(1)};
    const std::size_t recent = std::min<std::size_t>(tokens_.size(), 4);
    LeaseToken token = chance(70) ? tokens_[tokens_.size() - 1 - below(recent)] : any(tokens_);
    if (chance(4)) ++token.attempt;
    if (chance(4)) token.secret = test_secret(888'888);
    return token;
  }

  // Mostly whoever holds the lease, now and then somebody of another namespace.
  std::string caller() { return chance(80) ? "" : name_space(); }

  Submission submission() { return !submissions_.empty() && chance(8) ? sent_again() : new_submission(); }

  // Mostly the same, as after a lost answer, be it long ago; now and then its id was drawn for something else.
  Submission sent_again() {
    Submission again = any(submissions_);
    for (int tries = 0; tries < 3 && oracle_.find(again.execution.id); ++tries) again = any(submissions_);
    Execution& execution = again.execution;
    if (chance(10)) execution.input_hash = hash_input("another");
    if (!execution.identity && chance(30)) {
      execution.name_space = name_space();
      execution.type = any(kTypes);
    }
    if (execution.kind == Kind::task && chance(10)) {  // without its key
      execution.idempotency_key.reset();
      execution.identity.reset();
    }
    if (chance(10)) again.reuse = static_cast<Reuse>(below(4));
    return again;
  }

  Submission new_submission() {
    Task task(chance(85) ? kTypes[0] : kTypes[1]);
    task.id(test_id(++last_id_)).name_space(name_space()).queue(any(queues_));
    task.input(chance(80) ? "1" : "2").reuse(static_cast<Reuse>(below(4)));
    give_identity(task);
    give_times(task);
    if (chance(30)) task.priority(static_cast<std::int32_t>(below(3)) - 1);
    if (chance(30)) task.concurrency_key(chance(50) ? "left" : "right");
    if (chance(50)) task.max_attempts(static_cast<std::int32_t>(1 + below(3)));
    if (chance(20)) task.retry({any(kSpans), 2, 1h});
    if (chance(10)) task.dry_run();
    if (chance(8)) task.parent(test_id(999'999));  // a run that is gone; steps of others are submitted by their turns
    Submission submission = task;
    submission.brief = chance(10);
    if (chance(workflows_)) make_workflow(submission);
    const bool is_plain = submission.execution.kind == Kind::task && !submission.execution.parent;
    if (is_plain && chance(20)) submission.run_here = {"here", any(kJumps), test_secret(++last_secret_)};
    ids_.push_back(submission.execution.id);
    submissions_.push_back(submission);
    return submission;
  }

  void make_workflow(Submission& submission) {
    Execution& execution = submission.execution;
    execution.kind = Kind::workflow;
    execution.concurrency_key.reset();
    execution.idempotency_key = any(kWorkflows);
    execution.identity = workflow_identity(execution.name_space, *execution.idempotency_key);
  }

  // A new one, or now and then one that was sent before, be it long ago.
  Turn turn() {
    if (!sent_.empty() && chance(15)) return chance(60) ? sent_.back() : any(sent_);
    return sent_.emplace_back(new_turn());
  }

  // What the code of a workflow might have asked for next.
  Turn new_turn() {
    if (!steps_.empty() && chance(40)) return following_turn();
    const Execution& run = claimed_turn();
    // Of one that is kept unfinished, what it has kept since is known to its worker.
    const Execution* stored = chance(80) ? oracle_.find(run.id) : nullptr;
    const Execution& known = stored ? *stored : run;
    Turn turn;
    turn.token = token_of(run);
    turn.name_space = caller();
    if (chance(80)) turn.claimed = std::make_shared<const Execution>(run);
    turn.seen = known.run.events;
    if (chance(15) && ask_again(turn, known)) return turn;
    ask_on(turn, known);
    return turn;
  }

  // Mostly one that is still running; then now and then one that other workflows wait for.
  const Execution& claimed_turn() {
    std::vector<const Execution*> running, awaited;
    for (const Execution& turn : turns_) {
      const Execution* run = oracle_.find(turn.id);
      if (!run || run->status != Status::running || run->attempt != turn.attempt) continue;
      running.push_back(&turn);
      if (run->awaited) awaited.push_back(&turn);
    }
    if (!awaited.empty() && chance(30)) return *any(awaited);
    if (!running.empty() && chance(70)) return *any(running);
    return any(turns_);
  }

  // Of a workflow that goes on where a step ends: mostly of whoever took its last turn, who knows all but that end.
  Turn following_turn() {
    const std::size_t recent = std::min<std::size_t>(steps_.size(), 3);
    const Execution& step = steps_[steps_.size() - 1 - below(recent)];
    const Execution* found = oracle_.find(*step.parent);
    const Execution run = found ? *found : step;
    Turn turn;
    turn.token = {run.id, std::max(run.attempt, 1), run.lease_secret.value_or(test_secret(777'777))};
    if (chance(5) && turn.token.attempt > 1) --turn.token.attempt;
    turn.name_space = caller();
    turn.step = report();
    if (chance(95)) turn.step->token = token_of(step);
    turn.seen = run.run.events + (chance(90) ? 1 : 0);
    ask_on(turn, run);
    return turn;
  }

  // What another turn asked for at that step: the code of a workflow asks for the same again.
  bool ask_again(Turn& turn, const Execution& run) {
    for (const Turn& before : sent_) {
      const bool is_there = before.token.execution == run.id && !before.events.empty();
      if (!is_there || before.events.front().step != run.run.steps + 1) continue;
      turn.events = before.events;
      turn.starts = before.starts;
      return true;
    }
    return false;
  }

  void ask_on(Turn& turn, const Execution& run) {
    std::int32_t step = run.run.steps;
    for (std::size_t n = below(4); n > 0; --n) add_command(turn, ++step);
    if (chance(3) && !turn.events.empty()) ++turn.events.back().step;
    const std::size_t dice = below(100);
    if (dice >= 70 && dice < 80)
      turn.end = Turn::Completed{chance(50) ? std::optional<std::string>("7") : std::nullopt};
    if (dice >= 80 && dice < 88) turn.end = Turn::Failed{{chance(25) ? "E" : "StepFailed", "m"}};
    if (run.cancel_requested_at && chance(30)) turn.end = Turn::Failed{{"CancelRequested", "m"}};
    if (dice >= 88 && dice < 94) turn.end = Turn::Stuck{{"NonDeterminism", "m"}};
    if (dice >= 94) turn.end = Turn::Continued{fresh_id(), "3", hash_input("3")};
    if (dice < 25 && !turn.events.empty()) turn.end = Turn::Unfinished{};
    if (run.run.stuck > 0 && chance(45)) turn.end = Turn::Stuck{{"NonDeterminism", "m"}};
    if (run.awaited && chance(40)) turn.end = Turn::Completed{"8"};
    if (run.awaited && chance(40)) turn.end = Turn::Continued{fresh_id(), "3", hash_input("3")};
    if (oracle_.has_failed_step(run.id) && chance(30)) turn.end = Turn::Failed{{"StepFailed", "m"}};
  }

  void add_command(Turn& turn, std::int32_t step) {
    Event event;
    event.step = step;
    event.kind = static_cast<Event::Kind>(below(6));
    if (chance(20)) {
      event.kind = any<Event::Kind>({Event::Kind::cancel_step, Event::Kind::publish, Event::Kind::send_signal});
    }
    if (event.kind == Event::Kind::cancel_step) {
      event.value = std::to_string(1 + below(static_cast<std::size_t>(step)));
      if (chance(60)) event.name = any(kTypes);
    }
    if (event.kind == Event::Kind::publish) event.name = "n", event.value = "1";
    if (event.kind == Event::Kind::send_signal) {
      event.name = any(kSignals);
      event.key = any(kWorkflows);
      event.value = "5";
    }
    if (event.kind == Event::Kind::sleep) event.until = clock_.now() + any(kSpans);
    if (event.kind == Event::Kind::wait_signal) {
      event.name = any(kSignals);
      if (chance(50)) event.until = clock_.now() + any(kSpans);
    }
    if (event.kind == Event::Kind::side_effect || event.kind == Event::Kind::version) event.value = "1";
    if (event.kind == Event::Kind::task || event.kind == Event::Kind::child) {
      Submission start = new_submission();
      start.dry_run = start.brief = false;
      start.execution.kind = Kind::task;
      start.execution.parent.reset();
      if (event.kind == Event::Kind::child) make_workflow(start);
      event.name = start.execution.type;
      const bool is_begun = event.kind == Event::Kind::task && chance(40);
      if (is_begun) start = Task(start.execution.type).id(start.execution.id).queue(start.execution.queue);
      ids_.push_back(step_id(turn.token.execution, start.execution.type, step));
      turn.starts.push_back({step, start});
      if (is_begun) begin(turn.starts.back());
    }
    turn.events.push_back(event);
  }

  // Within the turn, by its worker.
  void begin(Turn::Start& start) {
    Turn::Begun& begun =
        start.begun.emplace(Turn::Begun{test_secret(++last_secret_), "w" + std::to_string(below(3)), any(kJumps)});
    if (chance(70)) begun.completed = Report::Completed{chance(80) ? std::optional<std::string>("42") : std::nullopt};
  }

  ExecutionId fresh_id() {
    const ExecutionId id = test_id(++last_id_);
    ids_.push_back(id);
    return id;
  }

  void give_identity(Task& task) {
    const std::size_t dice = below(100);
    if (dice < 60) task.key(any(kKeys));
    if (dice >= 60 && dice < 70) task.identity(Strategy::strict, "1");
    if (dice >= 70 && dice < 80) task.identity(Strategy::contextual, any(kKeys));
    if (dice < 80 && chance(40)) task.scope(kShared);
    if (chance(45)) task.ttl(any(kSpans));
  }

  void give_times(Task& task) {
    if (chance(15)) task.delay(any(kSpans));
    if (chance(10)) task.run_at(clock_.now() - 1h + any(kSpans));
    if (chance(20)) task.timeout(1ms + any(kSpans));
    if (chance(15)) task.deadline(any(kSpans));
    if (chance(5)) task.deadline_at(clock_.now() + any(kSpans));
  }

  ClaimRequest claim() {
    ClaimRequest request;
    request.name_space = name_space();
    request.queues = queues_;
    std::shuffle(request.queues.begin(), request.queues.end(), random_);
    request.queues.resize(1 + below(queues_.size()));
    request.limit = static_cast<std::int32_t>(chance(30) ? 1 : 1 + below(4));
    request.worker = "w" + std::to_string(below(3));
    request.lease = any(kJumps);
    request.repeatable = chance(40);
    if (request.repeatable) {
      const std::string claim_id = std::to_string(below(4));  // so it is often one that was said before
      request.secret = secret_of_claim("store", request.name_space, request.worker, claim_id);
    } else {
      request.secret = test_secret(++last_secret_);
    }
    request.tasks = chance(80);
    request.workflows = chance(60);
    if (chance(50)) request.types = chance(80) ? std::vector{any(kTypes)} : kTypes;
    return request;
  }

  ClaimRequest waiting_claim() {
    ClaimRequest request = claim();
    if (chance(60)) request.limit = 1;
    if (chance(50)) {  // what takes anything
      request.queues = queues_;
      request.types.clear();
    }
    return request;
  }

  Extension extension(Duration lease) {
    Extension extension{token(), lease, caller()};
    if (chance(30)) extension.progress = std::to_string(below(100));
    if (chance(20)) extension.log = {"one", "two"};
    return extension;
  }

  Report report() {
    Report report;
    report.token = token();
    if (chance(55)) {
      report.outcome = Report::Completed{chance(80) ? std::optional<std::string>("42") : std::nullopt};
    } else if (chance(15)) {
      report.outcome = Report::Snoozed{any(kSpans)};
    } else {
      Report::Failed failed{{"E", "m"}, chance(70)};
      if (chance(10)) failed.error.stack = "at f";
      if (chance(10)) failed.error.details = "{\"a\":1}";
      if (chance(10)) failed.retry_after = any(kSpans);
      if (chance(5)) failed.retry_after = clock_.now() + any(kSpans);
      report.outcome = failed;
    }
    report.name_space = caller();
    if (chance(8)) report_on_a_turn(report);
    return report;
  }

  // Which is committed and never reported on: mostly of a run that is gone.
  void report_on_a_turn(Report& report) {
    for (int tries = 0; tries < 8 && !turns_.empty(); ++tries) {
      const Execution& turn = any(turns_);
      if (oracle_.find(turn.id) && tries < 7) continue;
      report = {token_of(turn), Report::Completed{}};
      if (chance(30)) report.outcome = Report::Completed{"7"};
      return;
    }
  }

  ControlRequest control() {
    ControlRequest request;
    request.name_space = name_space();
    request.request_key = "r" + std::to_string(below(chance(50) ? 4 : 1000));
    request.action = static_cast<ControlRequest::Action>(below(5));
    if (chance(50)) {
      request.target = id();
    } else {
      request.workflow_id = any(kWorkflows);
    }
    if (chance(40)) resume_closed(request);
    if (chance(30)) request.asks = true;
    if (chance(8)) cancel_stuck(request);
    if (chance(30)) request.grace = any(kSpans);
    request.signal = any(kSignals);
    request.payload = "9";
    request.from_step = static_cast<std::int32_t>(below(5));
    request.parameters = hash_input(std::to_string(below(2)));
    request.fork_workflow_id = chance(50) ? any(kWorkflows) : "f" + std::to_string(below(1000));
    request.fork_identity = workflow_identity(request.name_space, request.fork_workflow_id);
    request.fork_id = request.action == ControlRequest::Action::fork ? fresh_id() : ExecutionId();
    if (chance(30)) request.request_ttl = any(kSpans);
    request.request_ttl +=
        Duration(++controls_);  // no two end together: which of them a purge begins with is the store's to say
    return request;
  }

  void cancel_stuck(ControlRequest& request) {
    for (int tries = 0; tries < 8; ++tries) {
      const Execution* run = oracle_.find(run_id());
      if (!run || run->run.stuck == 0 || is_closed(run->status)) continue;
      request.request_key = "r" + std::to_string(below(1000));
      request.name_space = run->name_space;
      request.action = ControlRequest::Action::cancel;
      request.target = run->id;
      request.workflow_id.reset();
      request.asks = false;
      return;
    }
  }

  void resume_closed(ControlRequest& request) {
    request.request_key = "r" + std::to_string(below(1000));
    for (int tries = 0; tries < 8; ++tries) {
      const Execution* run = oracle_.find(run_id());
      if (!run || run->kind != Kind::workflow || !is_closed(run->status)) continue;
      const bool is_telling = run->run.stuck > 0 || (run->status == Status::failed && oracle_.has_failed_step(run->id));
      if (tries < 6 && !is_telling) continue;
      request.name_space = run->name_space;
      request.action = ControlRequest::Action::resume;
      request.target = run->id;
      request.workflow_id.reset();
      return;
    }
  }

  Policies policies() {
    Policies policies;
    for (const std::string& name_space : kNameSpaces) {
      for (const std::string& queue : queues_) {
        if (chance(70)) policies.queues.emplace_back(name_space, queue, policy());
      }
    }
    return policies;
  }

  QueuePolicy policy() {
    QueuePolicy policy;
    policy.paused = chance(10);
    if (chance(rates_))
      policy.rate_limit =
          Rate{static_cast<std::int64_t>(1 + below(5)), any(kPeriods), static_cast<std::int64_t>(1 + below(4))};
    if (chance(30)) policy.max_running = static_cast<std::int32_t>(below(4));
    if (chance(30)) policy.concurrency_limit = 2;
    if (chance(30)) policy.cancel_grace = any(kSpans);
    if (chance(40)) policy.retention = any(kSpans);
    return policy;
  }

  ListFilter filter() {
    ListFilter filter;
    filter.name_space = name_space();
    if (chance(30)) filter.kind = Kind::workflow;
    if (chance(30)) filter.queue = any(queues_);
    if (chance(30)) filter.status = static_cast<Status>(below(7));
    if (chance(20)) filter.idempotency_key = any(kKeys);
    if (chance(10)) filter.type = any(kTypes);
    if (chance(10)) filter.parent = id();
    if (chance(30)) filter.before = id();
    filter.limit = limit();
    return filter;
  }

  IdentityHash hash() { return any(hashes()); }

  static const std::vector<IdentityHash>& hashes() {
    static const std::vector<IdentityHash> all = [] {
      std::vector<IdentityHash> made;
      for (const std::string& name_space : kNameSpaces) {
        for (const std::string& id : kWorkflows) made.push_back(workflow_identity(name_space, id).hash);
        std::vector<std::string> materials{"strict:1"};
        for (const std::string& key : kKeys) materials.insert(materials.end(), {key, "contextual:" + key});
        for (const std::string& material : materials) {
          for (const std::string& type : kTypes) made.push_back(key_hash(type, material, name_space));
          made.push_back(hash_key({name_space, kTypes[0], "", kShared}, material));
        }
      }
      return made;
    }();
    return all;
  }

  Step everything() { return Look{ids_, kNameSpaces, hashes()}; }

  std::mt19937_64 random_;
  const bool with_waiters_;
  const std::vector<std::string> queues_;
  std::size_t workflows_ = 0, rates_ = 0;  // in percent: submissions of workflows, queues with a rate limit
  ManualClock clock_;
  Oracle oracle_;
  std::vector<ExecutionId> ids_;
  std::vector<Submission> submissions_;
  std::int64_t controls_ = 0;
  std::vector<LeaseToken> tokens_;
  std::vector<Execution> turns_, steps_;  // as they were claimed
  std::vector<Turn> sent_;
  std::uint64_t last_id_ = 0;
  std::uint64_t last_secret_ = 0;
};

}  // namespace

Sequence generate(std::uint64_t seed, std::size_t steps) { return Generator(seed, false).run(steps); }
Sequence generate_with_waiters(std::uint64_t seed, std::size_t steps) { return Generator(seed, true).run(steps); }

}  // namespace hapax::model
