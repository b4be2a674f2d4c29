#include "client/remote_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>

#include "client/remote_activities.h"
#include "client/remote_server.h"
#include "core/canonical_json.h"
#include "core/name.h"
#include "engine/check_request.h"
#include "wire/event.h"
#include "wire/header.h"
#include "wire/read_answer.h"
#include "wire/write_request.h"

namespace hapax {

namespace {

using namespace std::chrono_literals;

constexpr auto kTimeout = 30s;  // of an exchange that does not wait
constexpr std::size_t kMaxItems = Engine::kMaxBatch;

struct WaitingCall : Waiting {
  explicit WaitingCall(std::shared_ptr<HttpClient::Call> c) : call(std::move(c)) {}
  void cancel() override { call->cancel(); }
  const std::shared_ptr<HttpClient::Call> call;
};

class RemoteEngine final : public Engine {
 public:
  explicit RemoteEngine(const RemoteOptions& options)
      : name_space_(options.name_space), server_(options), activities_(server_, options.name_space) {}

  void submit(const std::string& name_space, std::vector<SubmitRequest> requests,
              Reply<std::vector<SubmitResult>> reply) override;
  std::shared_ptr<Waiting> claim(ClaimCall call, Reply<std::vector<Claimed>> reply) override;
  void heartbeat(std::vector<Extension> extensions, Reply<std::vector<ExtendOutcome>> reply) override;
  void finish(std::vector<Report> reports, Reply<std::vector<FinishOutcome>> reply) override;
  void control(ControlRequest request, Reply<ControlOutcome> reply) override;
  void commit_turns(std::vector<TurnRequest> turns, Reply<std::vector<TurnOutcome>> reply) override;
  std::optional<Execution> find_workflow(const std::string& name_space, const std::string& workflow_id) override;
  std::vector<Event> history(const std::string& name_space, const ExecutionId& run, std::int64_t after,
                             std::int32_t limit) override;
  std::shared_ptr<Waiting> wait_workflow(const std::string& name_space, const std::string& workflow_id, Duration wait,
                                         Reply<std::optional<Execution>> reply) override;
  std::shared_ptr<Waiting> wait_closed(const std::string& name_space, const ExecutionId& id, Duration wait,
                                       Reply<std::optional<Execution>> reply) override;

  std::optional<Execution> find(const std::string& name_space, const ExecutionId& id) override;
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
  std::vector<Claimed> read_claims(const HttpAnswer& answer) const;
  void send(const std::vector<SubmitRequest>& requests, Reply<std::vector<SubmitResult>> reply);
  std::vector<SubmitResult> submit_now(const std::vector<SubmitRequest>& requests);
  SubmitResult submit_one(const SubmitRequest& request);
  QueueView read_queue(const Exchanged& exchanged) const;

  const std::string name_space_;
  RemoteServer server_;
  RemoteActivities activities_;
  IdGenerator ids_;
};

// ---- submit

// In a batch the server's pointers start at the batch; the caller's start at the submission.
void make_relative(SubmitResult& result, std::size_t index) {
  auto* refusal = std::get_if<Refusal>(&result);
  const std::string prefix = fmt::format("/tasks/{}", index);
  if (refusal && (refusal->pointer == prefix || refusal->pointer.starts_with(prefix + "/"))) {
    refusal->pointer.erase(0, prefix.size());
  }
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
  if (refused.empty()) return send(requests, std::move(reply));
  send(requests, [refused = std::move(refused), reply = std::move(reply)](Answer<std::vector<SubmitResult>> answer) {
    hapax::answer(reply, [&] { return merge(std::move(answer).get(), refused); });
  });
}

// A single submission is sent without waiting, because the caller may have many in flight; several are one exchange,
// which is worth a thread.
void RemoteEngine::send(const std::vector<SubmitRequest>& requests, Reply<std::vector<SubmitResult>> reply) {
  if (requests.size() != 1) {
    return answer(reply, [&] { return requests.empty() ? std::vector<SubmitResult>() : submit_now(requests); });
  }
  const SubmitRequest& request = requests.front();
  server_.start({.method = "POST", .path = std::string(submit_path(request)), .body = wire::write_submit(request)},
                Repeat::yes, [reply = std::move(reply)](Answer<Exchanged> exchanged) {
                  answer(reply, [&] { return std::vector{read_submitted(std::move(exchanged).get())}; });
                });
}

SubmitResult RemoteEngine::submit_one(const SubmitRequest& request) {
  return read_submitted(server_.post(std::string(submit_path(request)), wire::write_submit(request), Repeat::yes));
}

std::vector<SubmitResult> RemoteEngine::submit_now(const std::vector<SubmitRequest>& requests) {
  std::vector<SubmitResult> results;
  const auto is_workflow = [](const SubmitRequest& request) { return request.kind == Kind::workflow; };
  if (std::any_of(requests.begin(), requests.end(), is_workflow)) {
    for (const SubmitRequest& request : requests) results.push_back(submit_one(request));
    return results;
  }
  const Exchanged exchanged = server_.post("/v1/tasks/batch", wire::write_batch(requests), Repeat::yes);
  exchanged.require();
  results = wire::read_all(exchanged.body, "receipts", wire::read_submit_result);
  require_count(results.size(), requests.size());
  for (std::size_t i = 0; i < results.size(); ++i) make_relative(results[i], i);
  return results;
}

// ---- claim, heartbeat, finish, control

std::vector<Claimed> RemoteEngine::read_claims(const HttpAnswer& http) const {
  const Exchanged exchanged = server_.parse(http);
  exchanged.require();
  return wire::read_all(exchanged.body, "claims", wire::read_claim);
}

std::shared_ptr<Waiting> RemoteEngine::claim(ClaimCall call, Reply<std::vector<Claimed>> reply) {
  if (is_refused(reply, [&] { check(call); })) return nullptr;
  HttpRequest request{.method = "POST", .path = "/v1/claims", .body = wire::write_claim_call(call)};
  if (call.wait <= Duration(0)) {
    answer(reply, [&] { return read_claims(server_.http().send(request)); });
    return nullptr;
  }
  request.timeout = kTimeout + call.wait;
  auto done = [this, reply = std::move(reply)](HttpClient::Outcome outcome) {
    answer(reply, [&]() -> std::vector<Claimed> {
      if (const auto* http = std::get_if<HttpAnswer>(&outcome)) return read_claims(*http);
      const auto& failure = std::get<Failure>(outcome);
      if (failure.code() == Failure::Code::stopped) return {};  // cancelled
      throw failure;
    });
  };
  return std::make_shared<WaitingCall>(server_.http().start(std::move(request), std::move(done)));
}

// The length of the first run of equal leases, which fit into one request.
std::size_t run_length(std::span<const Extension> extensions) {
  const auto end = std::find_if(extensions.begin(), extensions.end(), [&](const Extension& extension) {
    return extension.lease != extensions.front().lease;
  });
  return std::min(kMaxItems, static_cast<std::size_t>(end - extensions.begin()));
}

void RemoteEngine::heartbeat(std::vector<Extension> extensions, Reply<std::vector<ExtendOutcome>> reply) {
  answer(reply, [&] {
    check(extensions);
    std::vector<ExtendOutcome> outcomes;
    for (std::span<const Extension> rest(extensions); !rest.empty();) {
      const auto part = rest.first(run_length(rest));
      rest = rest.subspan(part.size());
      const bool gives_back = part.front().lease <= Duration(0);
      const Exchanged exchanged =
          gives_back ? server_.post("/v1/claims/return", wire::write_return(part))
                     : server_.post("/v1/claims/heartbeat", wire::write_heartbeat(part, part.front().lease));
      exchanged.require();
      const auto answered = wire::read_all(exchanged.body, "leases", wire::read_extend_outcome);
      require_count(answered.size(), part.size());
      outcomes.insert(outcomes.end(), answered.begin(), answered.end());
    }
    return outcomes;
  });
}

void RemoteEngine::finish(std::vector<Report> reports, Reply<std::vector<FinishOutcome>> reply) {
  answer(reply, [&] {
    check(reports);
    std::vector<FinishOutcome> outcomes;
    for (std::span<const Report> rest(reports); !rest.empty();) {
      const auto part = rest.first(std::min(kMaxItems, rest.size()));
      rest = rest.subspan(part.size());
      const Exchanged exchanged = server_.post("/v1/claims/finish", wire::write_finish(part));
      if (exchanged.status != 409) exchanged.require();  // 409: every lease is lost, and each outcome says so
      const auto answered = wire::read_all(exchanged.body, "outcomes", wire::read_finish_outcome);
      require_count(answered.size(), part.size());
      outcomes.insert(outcomes.end(), answered.begin(), answered.end());
    }
    return outcomes;
  });
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
  answer(reply, [&] {
    check(request);
    const Exchanged exchanged = server_.exchange(control_exchange(request));
    if (!exchanged.body.find("idempotency_replayed")) exchanged.throw_error();
    return wire::read_control_outcome(exchanged.body);
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

std::shared_ptr<Waiting> RemoteEngine::wait_closed(const std::string&, const ExecutionId& id, Duration wait,
                                                   Reply<std::optional<Execution>> reply) {
  answer(reply, [&] { return read_waited(server_.exchange(wait_request("/v1/tasks/" + id.to_string(), wait))); });
  return nullptr;
}

// ---- workflows

void RemoteEngine::commit_turns(std::vector<TurnRequest> turns, Reply<std::vector<TurnOutcome>> reply) {
  answer(reply, [&] {
    check(turns);
    const Exchanged exchanged = server_.post("/v1/claims/turns", wire::write_turns(turns));
    if (exchanged.status != 409) exchanged.require();  // 409: every lease is lost
    auto answered = wire::read_all(exchanged.body, "turns", wire::read_turn_outcome);
    require_count(answered.size(), turns.size());
    return answered;
  });
}

std::optional<Execution> RemoteEngine::find_workflow(const std::string&, const std::string& workflow_id) {
  if (check_idempotency_key(workflow_id)) return {};  // no workflow can be called so
  const Exchanged exchanged = server_.get("/v1/workflows/" + wire::percent_encode(workflow_id));
  if (exchanged.not_found()) return {};
  exchanged.require();
  return wire::read_execution(exchanged.body);
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

std::shared_ptr<Waiting> RemoteEngine::wait_workflow(const std::string&, const std::string& workflow_id, Duration wait,
                                                     Reply<std::optional<Execution>> reply) {
  auto call = server_.start(wait_request("/v1/workflows/" + wire::percent_encode(workflow_id), wait), Repeat::yes,
                            [reply = std::move(reply)](Answer<Exchanged> exchanged) {
                              answer(reply, [&] { return read_waited(std::move(exchanged).get()); });
                            });
  return std::make_shared<WaitingCall>(std::move(call));
}

// ---- read

std::optional<Execution> RemoteEngine::find(const std::string&, const ExecutionId& id) {
  const Exchanged exchanged = server_.get("/v1/tasks/" + id.to_string());
  if (exchanged.not_found()) return {};
  exchanged.require();
  return wire::read_execution(exchanged.body);
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
  const Exchanged exchanged = server_.get("/v1/identities" + query.text());
  if (exchanged.not_found()) return {};
  exchanged.require();
  return wire::read_identity(exchanged.body);
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
