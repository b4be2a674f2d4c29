#include "client/remote_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <ranges>
#include <span>

#include "client/remote_activities.h"
#include "client/remote_claims.h"
#include "client/remote_server.h"
#include "client/wire_lane.h"
#include "core/canonical_json.h"
#include "core/name.h"
#include "engine/begin_step.h"
#include "engine/check_request.h"
#include "wire/event.h"
#include "wire/header.h"
#include "wire/read_answer.h"
#include "wire/worker.h"
#include "wire/write_request.h"

namespace hapax {

namespace {

using namespace std::chrono_literals;

constexpr auto kTimeout = 30s;              // of an exchange that does not wait
constexpr std::size_t kRequestsAtOnce = 2;  // of one verb
constexpr LaneLimits kWireLimits{.timeout = kTimeout};
constexpr auto kAllowedFor = 1s;  // steps within turns go on after their queue was paused or got a limit, that long

using Steady = std::chrono::steady_clock;

// Nothing: the server says that there is no such thing.
template <class Read>
auto read_found(const Exchanged& exchanged, Read read) -> std::optional<decltype(read(exchanged.body))> {
  if (exchanged.not_found()) return {};
  exchanged.require();
  return read(exchanged.body);
}

struct WaitingCall : Waiting {
  explicit WaitingCall(std::shared_ptr<HttpClient::Call> c) : call(std::move(c)) {}
  void cancel() override { call->cancel(); }
  const std::shared_ptr<HttpClient::Call> call;
};

class RemoteEngine final : public Engine {
 public:
  explicit RemoteEngine(const RemoteOptions& options)
      : name_space_(options.name_space), server_(options), activities_(server_, options.name_space) {}
  ~RemoteEngine() override { server_.http().stop(); }

  void submit(const std::string& name_space, std::vector<SubmitRequest> requests,
              Reply<std::vector<SubmitResult>> reply) override;
  std::shared_ptr<Waiting> claim(ClaimCall call, Reply<std::vector<Claimed>> reply) override;
  void heartbeat(std::vector<Extension> extensions, Reply<std::vector<ExtendOutcome>> reply) override;
  void finish(std::vector<Report> reports, Reply<std::vector<FinishOutcome>> reply) override;
  void control(ControlRequest request, Reply<ControlOutcome> reply) override;
  void commit_turns(std::vector<TurnRequest> turns, Reply<std::vector<TurnOutcome>> reply) override;
  std::optional<Execution> begin_within_turn(const Execution& run, const TurnWorker& worker,
                                             TurnRequest::Command& command) override;
  std::optional<Execution> find_workflow(const std::string& name_space, const std::string& workflow_id) override;
  std::vector<Event> history(const std::string& name_space, const ExecutionId& run, std::int64_t after,
                             std::int32_t limit) override;
  std::optional<Values> values(const std::string& name_space, const std::string& workflow_id) override;
  std::shared_ptr<Waiting> wait_workflow(const std::string& name_space, const std::string& workflow_id, Duration wait,
                                         Reply<std::optional<Execution>> reply) override;
  std::shared_ptr<Waiting> update(UpdateRequest request, Duration wait, Reply<UpdateOutcome> reply) override;
  std::shared_ptr<Waiting> wait_closed(const std::string& name_space, const ExecutionId& id, Duration wait,
                                       Reply<std::optional<Execution>> reply) override;

  std::optional<Execution> find(const std::string& name_space, const ExecutionId& id) override;
  std::vector<WorkerInfo> workers(const std::string& name_space) override;
  std::optional<Why> why(const std::string& name_space, const ExecutionId& id) override;
  std::optional<Why> why_workflow(const std::string& name_space, const std::string& workflow_id) override;
  Page list(const ListFilter& filter) override;
  std::optional<FoundIdentity> find_identity(const std::string& name_space, const std::string& type,
                                             const std::optional<Scope>& scope, const std::optional<std::string>& queue,
                                             const std::string& key) override;
  bool release_identity(const std::string& name_space, const IdentityHash& hash) override;

  QueueView queue(const std::string& name_space, const std::string& name) override;
  std::vector<QueueView> queues(const std::string& name_space) override;
  QueueView put_queue(const std::string& name_space, const std::string& name, const QueueSettings& settings) override;
  QueueView set_paused(const std::string& name_space, const std::string& name, bool paused) override;
  TypeView type(const std::string& name_space, const std::string& name) override;
  std::vector<TypeView> types(const std::string& name_space) override;
  TypeView put_type(const std::string& name_space, const std::string& name, const TypeSettings& settings) override;
  TypeView declare_type(const std::string& name_space, const std::string& name, const TypeSettings& settings) override;
  TypeView patch_type(const std::string& name_space, const std::string& name, const Json& patch) override;

  Activities& activities() override { return activities_; }

  void check_ready() override;
  EngineCounters counters() override { return {}; }  // the server's counters are at /metrics
  std::vector<QueueCount> queue_counts() override;

 private:
  std::vector<Claimed> read_claims(const Exchanged& answer);
  // Each is one request, and waits for its answer.
  SubmitResult submit_one(const Written<SubmitRequest>& request);
  std::vector<SubmitResult> submit_all(std::span<const Written<SubmitRequest>> requests);
  std::vector<ExtendOutcome> extend(std::span<const Written<Extension>> extensions);
  std::vector<FinishOutcome> send_reports(std::span<const Written<Report>> reports);
  std::vector<TurnOutcome> send_turns(std::span<const Written<TurnRequest>> turns);
  std::shared_ptr<Waiting> wait_for(const std::string& path, Duration wait, Reply<std::optional<Execution>> reply);
  QueueView read_queue(const Exchanged& exchanged) const;

  // The verbs that many callers use at once.
  struct Lanes {
    explicit Lanes(RemoteEngine& engine);
    WireLane<SubmitRequest, SubmitResult> submit;
    WireLane<Extension, ExtendOutcome> extend;
    WireLane<Report, FinishOutcome> finish;
    WireLane<TurnRequest, TurnOutcome> turns;
  };
  Lanes& lanes() {
    std::call_once(lanes_once_, [this] { lanes_.emplace(*this); });
    return *lanes_;
  }

  const std::string name_space_;
  RemoteServer server_;
  RemoteActivities activities_;
  RemoteClaims claims_{server_, [this](const Exchanged& answer) { return read_claims(answer); }};
  IdGenerator ids_;

  // What came with the latest claim of a turn.
  std::mutex allowed_mutex_;
  StepsWithinTurns allowed_;
  Steady::time_point allowed_until_ = {};
  Duration ahead_{0};  // of this machine's clock: the server's

  std::once_flag lanes_once_;
  std::optional<Lanes> lanes_;  // from the first use on; ends first
};

RemoteEngine::Lanes::Lanes(RemoteEngine& engine)
    : submit({.write = [](const SubmitRequest& request) { return wire::write_submit(request); },
              .send = [&engine](auto requests) { return engine.submit_all(requests); },
              .go_together = [](const SubmitRequest& a, const SubmitRequest& b) { return a.kind == b.kind; }},
             kRequestsAtOnce, kWireLimits),
      extend({.write = [](const Extension& extension) { return wire::write_lease(extension); },
              .send = [&engine](auto extensions) { return engine.extend(extensions); },
              .go_together = [](const Extension& a, const Extension& b) { return a.lease == b.lease; }},
             1, kWireLimits),
      finish({.write = [](const Report& report) { return wire::write_report(report); },
              .send = [&engine](auto reports) { return engine.send_reports(reports); }},
             kRequestsAtOnce, kWireLimits),
      turns({.write = [](const TurnRequest& turn) { return wire::write_turn(turn); },
             .send = [&engine](auto turns) { return engine.send_turns(turns); }},
            kRequestsAtOnce, kWireLimits) {}

template <class Item>
auto texts_of(std::span<const Written<Item>> items) {
  return items | std::views::transform(&Written<Item>::text);
}

// ---- submit

// In a batch the server's pointers start at the batch; the caller's start at the submission.
void make_relative(SubmitResult& result, std::string_view items, std::size_t index) {
  auto* refusal = std::get_if<Refusal>(&result);
  if (!refusal || refusal->pointer.empty()) return;
  const std::string prefix = fmt::format("/{}/{}", items, index);
  if (refusal->pointer == prefix || refusal->pointer.starts_with(prefix + "/")) {
    refusal->pointer.erase(0, prefix.size());
  }
}

bool is_omitted(const SubmitResult& result) {
  return std::visit([](const auto& answer) { return answer.result_omitted; }, result);
}

std::string_view submit_path(const SubmitRequest& request) {
  return request.kind == Kind::workflow ? "/v1/workflows" : "/v1/tasks";
}

SubmitResult read_submitted(const Exchanged& exchanged) {
  const int status = exchanged.status;
  const bool refused = status == 409 || (status == 400 && exchanged.body.find("pointer"));
  if (status >= 400 && !refused) exchanged.throw_error();
  return wire::read_submit_result(exchanged.body);
}

// Those that break a rule, by their positions.
using Refused = std::map<std::size_t, Refusal>;

// Takes them out of the requests: some could not even be written as JSON.
Refused take_refused(std::vector<SubmitRequest>& requests) {
  Refused refused;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    try {
      check(requests[i]);
    } catch (const InvalidField& error) {
      refused.emplace(i, to_refusal(error));
    }
  }
  for (auto each = refused.rbegin(); each != refused.rend(); ++each) {
    requests.erase(requests.begin() + static_cast<std::ptrdiff_t>(each->first));
  }
  return refused;
}

std::vector<SubmitResult> merge(std::vector<SubmitResult> results, const Refused& refused) {
  for (const auto& [position, refusal] : refused) {
    results.insert(results.begin() + static_cast<std::ptrdiff_t>(position), refusal);
  }
  return results;
}

// Each has an id before it is sent, so sent again after a lost answer it is the same submission.
void RemoteEngine::submit(const std::string&, std::vector<SubmitRequest> requests,
                          Reply<std::vector<SubmitResult>> reply) {
  if (is_refused(reply, [&] { check_batch(requests.size()); })) return;
  for (SubmitRequest& request : requests) {
    if (!request.id) request.id = ids_.next(SystemClock().now());
  }
  Refused refused = take_refused(requests);
  if (refused.empty()) return lanes().submit.put(std::move(requests), std::move(reply));
  lanes().submit.put(std::move(requests), [refused = std::move(refused),
                                           reply = std::move(reply)](Answer<std::vector<SubmitResult>> answer) {
    hapax::answer(reply, [&] { return merge(std::move(answer).get(), refused); });
  });
}

SubmitResult RemoteEngine::submit_one(const Written<SubmitRequest>& request) {
  return read_submitted(server_.post(std::string(submit_path(request.item)), request.text));
}

std::vector<SubmitResult> RemoteEngine::submit_all(std::span<const Written<SubmitRequest>> requests) {
  if (requests.size() == 1) return {submit_one(requests.front())};
  const bool are_workflows = requests.front().item.kind == Kind::workflow;
  const std::string_view name = are_workflows ? "workflows" : "tasks";
  const Exchanged exchanged = server_.post(are_workflows ? "/v1/batch/workflows" : "/v1/tasks/batch",
                                           wire::array_body(name, texts_of(requests)));
  exchanged.require();
  auto results = wire::read_all(exchanged.body, "receipts", wire::read_submit_result);
  require_count(results.size(), requests.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    make_relative(results[i], name, i);
    // The answer to many is bounded: what a caller of one is owed comes in an answer of its own.
    if (is_omitted(results[i]) && !requests[i].item.brief) results[i] = submit_one(requests[i]);
  }
  return results;
}

// ---- claim, heartbeat, finish, control

std::vector<Claimed> RemoteEngine::read_claims(const Exchanged& exchanged) {
  exchanged.require();
  auto claimed = wire::read_all(exchanged.body, "claims", wire::read_claim);
  if (wire::present(exchanged.body, "within_turn")) {
    const std::lock_guard lock(allowed_mutex_);
    allowed_ = wire::read_member(exchanged.body, "within_turn", wire::read_steps_within_turns);
    allowed_until_ = Steady::now() + kAllowedFor;
    // The server's clock, by which turns tell the time.
    if (!claimed.empty() && claimed.back().execution.started_at) {
      ahead_ = *claimed.back().execution.started_at - SystemClock().now();
    }
  }
  return claimed;
}

std::shared_ptr<Waiting> RemoteEngine::claim(ClaimCall call, Reply<std::vector<Claimed>> reply) {
  if (is_refused(reply, [&] { check(call); })) return nullptr;
  return claims_.start(std::move(call), kTimeout, std::move(reply));
}

void RemoteEngine::heartbeat(std::vector<Extension> extensions, Reply<std::vector<ExtendOutcome>> reply) {
  if (is_refused(reply, [&] { check(extensions); })) return;
  lanes().extend.put(std::move(extensions), std::move(reply));
}

std::vector<ExtendOutcome> RemoteEngine::extend(std::span<const Written<Extension>> extensions) {
  const Duration lease = extensions.front().item.lease;
  const auto leases = texts_of(extensions);
  const Exchanged exchanged = lease <= Duration(0)
                                  ? server_.post("/v1/claims/return", wire::array_body("leases", leases))
                                  : server_.post("/v1/claims/heartbeat", wire::write_heartbeat(leases, lease));
  exchanged.require();
  return wire::read_all(exchanged.body, "leases", wire::read_extend_outcome);
}

void RemoteEngine::finish(std::vector<Report> reports, Reply<std::vector<FinishOutcome>> reply) {
  if (is_refused(reply, [&] { check(reports); })) return;
  lanes().finish.put(std::move(reports), std::move(reply));
}

std::vector<FinishOutcome> RemoteEngine::send_reports(std::span<const Written<Report>> reports) {
  const Exchanged exchanged = server_.post("/v1/claims/finish", wire::array_body("outcomes", texts_of(reports)));
  if (exchanged.status != 409) exchanged.require();  // 409: every lease is lost, and each outcome says so
  return wire::read_all(exchanged.body, "outcomes", wire::read_finish_outcome);
}

std::string_view word_of(ControlRequest::Action action) {
  switch (action) {
    case ControlRequest::Action::cancel: return "cancel";
    case ControlRequest::Action::retry: return "retry";
    case ControlRequest::Action::resume: return "resume";
    case ControlRequest::Action::fork: return "fork";
    case ControlRequest::Action::signal: return "signals";
  }
  return {};
}

HttpRequest control_exchange(const ControlRequest& request) {
  HttpRequest http{
      .method = "POST", .path = "", .headers = {"Idempotency-Key: " + wire::write_key_header(request.request_key)}};
  if (!request.workflow_id) {
    http.path = fmt::format("/v1/tasks/{}/{}", request.target.to_string(), word_of(request.action));
    return http;
  }
  http.path = fmt::format("/v1/workflows/{}/{}", wire::percent_encode(*request.workflow_id), word_of(request.action));
  if (request.action == ControlRequest::Action::signal) http.path += "/" + wire::percent_encode(request.signal);
  http.body = wire::write_control_request(request);
  return http;
}

void RemoteEngine::control(ControlRequest request, Reply<ControlOutcome> reply) {
  if (is_refused(reply, [&] { check(request); })) return;
  server_.start(control_exchange(request), Repeat::yes, [reply = std::move(reply)](Answer<Exchanged> answered) {
    answer(reply, [&] {
      const Exchanged exchanged = std::move(answered).get();
      if (!exchanged.body.find("idempotency_replayed")) exchanged.throw_error();
      return wire::read_control_outcome(exchanged.body);
    });
  });
}

namespace {

// Answered with the execution once it is closed or the wait is over.
HttpRequest wait_request(const std::string& path, Duration wait) {
  return {.method = "GET",
          .path = fmt::format("{}/result?wait={}", path, format_duration(wait)),
          .timeout = kTimeout + wait};
}

std::optional<Execution> read_waited(const Exchanged& exchanged) {
  if (exchanged.not_found()) return {};
  if (exchanged.status != 202) exchanged.require();
  return wire::read_member(exchanged.body, "execution", wire::read_execution);
}

}  // namespace

std::shared_ptr<Waiting> RemoteEngine::wait_for(const std::string& path, Duration wait,
                                                Reply<std::optional<Execution>> reply) {
  auto call = server_.start(wait_request(path, wait), Repeat::yes, [reply = std::move(reply)](Answer<Exchanged> told) {
    answer(reply, [&] { return read_waited(std::move(told).get()); });
  });
  return std::make_shared<WaitingCall>(std::move(call));
}

std::shared_ptr<Waiting> RemoteEngine::wait_closed(const std::string&, const ExecutionId& id, Duration wait,
                                                   Reply<std::optional<Execution>> reply) {
  return wait_for("/v1/tasks/" + id.to_string(), wait, std::move(reply));
}

// ---- workflows

std::shared_ptr<Waiting> RemoteEngine::update(UpdateRequest request, Duration wait, Reply<UpdateOutcome> reply) {
  if (is_refused(reply, [&] { check(request); })) return nullptr;
  HttpRequest http{.method = "POST",
                   .path = fmt::format("/v1/workflows/{}/updates/{}?wait={}", wire::percent_encode(request.workflow_id),
                                       wire::percent_encode(request.name), format_duration(wait)),
                   .headers = {"Idempotency-Key: " + wire::write_key_header(request.request_key)},
                   .timeout = kTimeout + wait};
  if (request.payload) http.body = "{\"payload\":" + *request.payload + "}";
  auto call = server_.start(std::move(http), Repeat::yes, [reply = std::move(reply)](Answer<Exchanged> answered) {
    answer(reply, [&] {
      const Exchanged exchanged = std::move(answered).get();
      if (!exchanged.body.find("idempotency_replayed")) exchanged.throw_error();
      return wire::read_update_outcome(exchanged.body);
    });
  });
  return std::make_shared<WaitingCall>(std::move(call));
}

void RemoteEngine::commit_turns(std::vector<TurnRequest> turns, Reply<std::vector<TurnOutcome>> reply) {
  if (is_refused(reply, [&] { check(turns); })) return;
  lanes().turns.put(std::move(turns), std::move(reply));
}

std::vector<TurnOutcome> RemoteEngine::send_turns(std::span<const Written<TurnRequest>> turns) {
  const Exchanged exchanged = server_.post("/v1/claims/turns", wire::array_body("turns", texts_of(turns)));
  if (exchanged.status != 409) exchanged.require();  // 409: every lease is lost
  return wire::read_all(exchanged.body, "turns", wire::read_turn_outcome);
}

std::optional<Execution> RemoteEngine::begin_within_turn(const Execution& run, const TurnWorker& worker,
                                                         TurnRequest::Command& command) {
  const std::lock_guard lock(allowed_mutex_);
  if (Steady::now() >= allowed_until_) return std::nullopt;
  return begin_as_allowed(run, worker, command, allowed_, SystemClock().now() + ahead_);
}

std::optional<Execution> RemoteEngine::find_workflow(const std::string&, const std::string& workflow_id) {
  if (check_idempotency_key(workflow_id)) return {};  // no workflow can be called so
  return read_found(server_.get("/v1/workflows/" + wire::percent_encode(workflow_id)), wire::read_execution);
}

std::vector<Event> RemoteEngine::history(const std::string&, const ExecutionId& run, std::int64_t after,
                                         std::int32_t limit) {
  constexpr std::int32_t kPage = 1000;  // the server's limit
  std::vector<Event> events;
  while (limit > 0) {
    const std::string id = run.to_string();
    const Exchanged exchanged = server_.get(
        fmt::format("/v1/workflows/{}/history?run={}&after={}&limit={}", id, id, after, std::min(kPage, limit)));
    if (exchanged.not_found()) return events;
    exchanged.require();
    const auto page = wire::read_all(exchanged.body, "events", wire::read_event);
    events.insert(events.end(), page.begin(), page.end());
    if (!wire::present(exchanged.body, "next_after")) break;
    after = events.back().no;
    limit -= static_cast<std::int32_t>(page.size());
  }
  return events;
}

std::optional<WorkflowVerbs::Values> RemoteEngine::values(const std::string&, const std::string& workflow_id) {
  if (check_idempotency_key(workflow_id)) return {};  // no workflow can be called so
  const Exchanged exchanged = server_.get("/v1/workflows/" + wire::percent_encode(workflow_id) + "/values");
  if (exchanged.not_found()) return {};
  exchanged.require();
  Values values;
  const Json* members = exchanged.body.find("values");
  if (!members || !members->is(Json::Kind::object)) wire::malformed("values");
  for (const auto& [name, value] : members->members) values.emplace(name, canonical_json(value));
  return values;
}

std::shared_ptr<Waiting> RemoteEngine::wait_workflow(const std::string&, const std::string& workflow_id, Duration wait,
                                                     Reply<std::optional<Execution>> reply) {
  return wait_for("/v1/workflows/" + wire::percent_encode(workflow_id), wait, std::move(reply));
}

// ---- read

std::optional<Execution> RemoteEngine::find(const std::string&, const ExecutionId& id) {
  return read_found(server_.get("/v1/tasks/" + id.to_string()), wire::read_execution);
}

std::vector<WorkerInfo> RemoteEngine::workers(const std::string& name_space) {
  const Exchanged exchanged = server_.get("/v1/workers");
  exchanged.require();
  return wire::read_workers(exchanged.body, name_space);
}

std::optional<Why> RemoteEngine::why(const std::string&, const ExecutionId& id) {
  return read_found(server_.get("/v1/tasks/" + id.to_string() + "/why"), wire::read_why);
}

std::optional<Why> RemoteEngine::why_workflow(const std::string&, const std::string& workflow_id) {
  if (check_idempotency_key(workflow_id)) return {};  // no workflow can be called so
  return read_found(server_.get("/v1/workflows/" + wire::percent_encode(workflow_id) + "/why"), wire::read_why);
}

Page RemoteEngine::list(const ListFilter& filter) {
  check(filter);
  const auto id_text = [](const std::optional<ExecutionId>& id) {
    return id ? std::optional(id->to_string()) : std::nullopt;
  };
  QueryText query;
  const bool workflows = filter.kind == Kind::workflow;
  query.add("queue", filter.queue).add("type", filter.type);
  query.add(workflows ? "workflow_id" : "idempotency_key", filter.idempotency_key);
  if (filter.status) query.add("status", std::string(to_string(*filter.status)));
  query.add("parent", id_text(filter.parent)).add("cursor", id_text(filter.before));
  query.add("limit", std::to_string(filter.limit));
  const Exchanged exchanged = server_.get((workflows ? "/v1/workflows" : "/v1/tasks") + query.text());
  exchanged.require();
  return wire::read_page(exchanged.body);
}

std::optional<FoundIdentity> RemoteEngine::find_identity(const std::string&, const std::string& type,
                                                         const std::optional<Scope>& scope,
                                                         const std::optional<std::string>& queue,
                                                         const std::string& key) {
  check_identity_query(type, scope, queue, key);
  QueryText query;
  if (!type.empty()) query.add("type", type);
  query.add("queue", queue).add("key", key);
  if (scope) query.add("scope", scope->to_string());
  return read_found(server_.get("/v1/identities" + query.text()), wire::read_identity);
}

// Not repeated: a second one would find nothing to release and report that.
bool RemoteEngine::release_identity(const std::string&, const IdentityHash& hash) {
  const Exchanged exchanged =
      server_.exchange({.method = "DELETE", .path = "/v1/identities/" + hash.to_string()}, Repeat::no);
  exchanged.require();
  const Json* released = exchanged.body.find("released");
  return released && released->boolean;
}

// ---- settings

QueueView RemoteEngine::read_queue(const Exchanged& exchanged) const {
  exchanged.require();
  QueueView view = wire::read_queue(exchanged.body);
  view.count.name_space = name_space_;
  return view;
}

QueueView RemoteEngine::queue(const std::string&, const std::string& name) {
  check_setting_name(name);
  return read_queue(server_.get("/v1/queues/" + wire::percent_encode(name)));
}

std::vector<QueueView> RemoteEngine::queues(const std::string&) {
  const Exchanged exchanged = server_.get("/v1/queues");
  exchanged.require();
  auto views = wire::read_all(exchanged.body, "queues", wire::read_queue);
  for (QueueView& view : views) view.count.name_space = name_space_;
  return views;
}

QueueView RemoteEngine::put_queue(const std::string&, const std::string& name, const QueueSettings& settings) {
  check_setting_name(name);
  check(settings);
  return read_queue(server_.put("/v1/queues/" + wire::percent_encode(name), settings.to_json()));
}

QueueView RemoteEngine::set_paused(const std::string&, const std::string& name, bool paused) {
  check_setting_name(name);
  return read_queue(
      server_.post(fmt::format("/v1/queues/{}/{}", wire::percent_encode(name), paused ? "pause" : "unpause"), ""));
}

TypeView RemoteEngine::type(const std::string&, const std::string& name) {
  check_setting_name(name);
  const Exchanged exchanged = server_.get("/v1/types/" + wire::percent_encode(name));
  exchanged.require();
  return wire::read_type(exchanged.body);
}

std::vector<TypeView> RemoteEngine::types(const std::string&) {
  const Exchanged exchanged = server_.get("/v1/types");
  exchanged.require();
  return wire::read_all(exchanged.body, "types", wire::read_type);
}

TypeView RemoteEngine::put_type(const std::string&, const std::string& name, const TypeSettings& settings) {
  check_setting_name(name);
  check(settings);
  const Exchanged exchanged = server_.put("/v1/types/" + wire::percent_encode(name), settings.to_json());
  exchanged.require();
  return wire::read_type(exchanged.body);
}

TypeView RemoteEngine::declare_type(const std::string&, const std::string& name, const TypeSettings& settings) {
  check_setting_name(name);
  check(settings);
  const Exchanged exchanged = server_.put("/v1/types/" + wire::percent_encode(name) + "/code", settings.to_json());
  exchanged.require();
  return wire::read_type(exchanged.body);
}

TypeView RemoteEngine::patch_type(const std::string&, const std::string& name, const Json& patch) {
  check_setting_name(name);
  const Exchanged exchanged = server_.patch("/v1/types/" + wire::percent_encode(name), canonical_json(patch));
  exchanged.require();
  return wire::read_type(exchanged.body);
}

// ---- operations

void RemoteEngine::check_ready() { server_.get("/ready").require(); }

std::vector<QueueCount> RemoteEngine::queue_counts() {
  std::vector<QueueCount> counts;
  for (QueueView& view : queues("")) counts.push_back(std::move(view.count));
  return counts;
}

}  // namespace

std::unique_ptr<Engine> connect_engine(RemoteOptions options) { return std::make_unique<RemoteEngine>(options); }

}  // namespace hapax
