// The remote engine against a real server, verb by verb, compared with the local engine behind that server.
#include "client/remote_engine.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <future>

#include "core/field.h"
#include "engine/local_engine.h"
#include "http/server.h"
#include "store/memory/memory_store.h"
#include "support/cutting_proxy.h"
#include "support/describe.h"
#include "wire/read_request.h"
#include "wire/write_answer.h"
#include "wire/write_request.h"

namespace hapax {
namespace {

using namespace std::chrono_literals;

const SystemClock kClock;
const std::string kSpace = "default";

ServerOptions any_port(std::vector<AccessToken> tokens = {}) {
  ServerOptions options;
  options.port = 0;
  options.tokens = std::move(tokens);
  return options;
}

std::string url_of(std::uint16_t port) { return "http://127.0.0.1:" + std::to_string(port); }

struct Remote : testing::Test {
  std::unique_ptr<LocalEngine> local = start_engine(open_memory_store(kClock), {});
  std::unique_ptr<Server> server = start_server(*local, any_port());
  std::unique_ptr<Engine> remote = connect_engine({.url = url_of(server->port()), .token = "", .name_space = kSpace});

  void await_waiting_claims(std::int64_t count) const {
    while (local->counters().waiting_claims != count) std::this_thread::yield();
  }
};

ListFilter everything() {
  ListFilter filter;
  filter.name_space = kSpace;
  return filter;
}

SubmitRequest request(std::string type, std::optional<std::string> key = {}, const char* input = "7") {
  SubmitRequest request;
  request.type = std::move(type);
  request.input = parse_json(input);
  request.idempotency_key = std::move(key);
  return request;
}

std::vector<SubmitResult> submit(Engine& engine, std::vector<SubmitRequest> requests) {
  return await<std::vector<SubmitResult>>(
      [&](auto reply) { engine.submit(kSpace, std::move(requests), std::move(reply)); });
}

SubmitResult submit(Engine& engine, SubmitRequest one) {
  std::vector<SubmitRequest> requests;
  requests.push_back(std::move(one));
  return submit(engine, std::move(requests)).at(0);
}

ExecutionId create(Engine& engine, SubmitRequest one) {
  return std::get<Receipt>(submit(engine, std::move(one))).execution.id;
}

ClaimCall call_for(std::int32_t limit, Duration wait = {}) {
  ClaimCall call;
  call.name_space = kSpace;
  call.queues = {"default"};
  call.limit = limit;
  call.worker = "w";
  call.wait = wait;
  return call;
}

std::vector<Execution> claim(Engine& engine, std::int32_t limit, Duration wait = {}) {
  std::vector<Execution> executions;
  for (Claimed& each :
       await<std::vector<Claimed>>([&](auto reply) { engine.claim(call_for(limit, wait), std::move(reply)); })) {
    executions.push_back(std::move(each.execution));
  }
  return executions;
}

std::vector<ExtendOutcome> heartbeat(Engine& engine, std::vector<Extension> extensions) {
  return await<std::vector<ExtendOutcome>>(
      [&](auto reply) { engine.heartbeat(std::move(extensions), std::move(reply)); });
}

std::vector<FinishOutcome> finish(Engine& engine, std::vector<Report> reports) {
  return await<std::vector<FinishOutcome>>([&](auto reply) { engine.finish(std::move(reports), std::move(reply)); });
}

ControlOutcome control(Engine& engine, ControlRequest::Action action, const ExecutionId& id, std::string key) {
  ControlRequest request;
  request.name_space = kSpace;
  request.action = action;
  request.target = id;
  request.request_key = std::move(key);
  return await<ControlOutcome>([&](auto reply) { engine.control(std::move(request), std::move(reply)); });
}

std::optional<Execution> wait_closed(Engine& engine, const ExecutionId& id, Duration wait) {
  return await<std::optional<Execution>>([&](auto reply) { engine.wait_closed(kSpace, id, wait, std::move(reply)); });
}

LeaseToken token_of(const Execution& claimed) {
  return {claimed.id, claimed.attempt, claimed.lease_secret.value_or(LeaseSecret{})};
}

Report completed(const Execution& claimed, std::optional<std::string> result = {}) {
  return {token_of(claimed), Report::Completed{std::move(result)}};
}

Report failed(const Execution& claimed) { return {token_of(claimed), Report::Failed{{"Declined", "no funds"}, false}}; }

// The execution without what a server does not tell.
Execution told(Execution execution) {
  const bool running = execution.status == Status::running;
  execution.identity.reset();
  if (execution.cancel_requested_at) execution.cancel_requested_at = execution.created_at;
  execution.cancel_by.reset();
  execution.lease_secret.reset();
  execution.attempt_ends_by.reset();
  if (!running) execution.worker.clear();
  if (!running) execution.lease_expires_at.reset();
  for (AttemptRecord& record : execution.failed_attempts) {
    record.secret = {};
    record.reported = false;
  }
  return execution;
}

std::vector<Execution> told(std::vector<Execution> executions) {
  for (Execution& execution : executions) execution = told(std::move(execution));
  return executions;
}

std::string json_of(const SubmitResult& result) {
  JsonWriter out;
  wire::write_submit_result(out, result);
  return out.take();
}

template <class Call>
Failure failure_of(Call call) {
  try {
    call();
  } catch (const Failure& failure) {
    return failure;
  }
  return {Failure::Code::stopped, "nothing was thrown"};
}

// ---- submit

TEST_F(Remote, ASubmissionGetsTheSameAnswerAsFromTheLocalEngine) {
  const auto created = std::get<Receipt>(submit(*remote, request("charge", "order-1")));
  EXPECT_TRUE(created.created);
  EXPECT_EQ(created.execution.input, "7");
  SubmitRequest again = request("charge", "order-1"), other_input = request("charge", "order-1", "8"), error = again,
                unique = request("greet"), keyless = again;
  error.on_duplicate = OnDuplicate::error;
  unique.dry_run = true;
  keyless.idempotency_key.reset();
  keyless.identity = Strategy::caller_provided;
  for (const SubmitRequest& one : {again, other_input, error, keyless}) {
    EXPECT_EQ(json_of(submit(*remote, one)), json_of(submit(*local, one)));
  }
  EXPECT_TRUE(std::get<Receipt>(submit(*remote, unique)).dry_run);
  EXPECT_EQ(local->list(everything()).size(), 1U);
}

TEST_F(Remote, ARefusalKeepsTheEnginesMessage) {
  create(*remote, request("charge", "payment-123"));
  SubmitRequest error = request("charge", "payment-123");
  error.on_duplicate = OnDuplicate::error;
  EXPECT_EQ(std::get<Refusal>(submit(*remote, error)).message,
            "Task with key 'payment-123' already exists and is pending");
  finish(*remote, {completed(claim(*remote, 1).at(0))});
  EXPECT_EQ(std::get<Refusal>(submit(*remote, error)).message,
            "Task with key 'payment-123' already completed successfully");
}

TEST_F(Remote, ABatchIsAnsweredItemByItemWithPointersIntoTheItem) {
  SubmitRequest keyless = request("charge"), bad_name = request("");
  keyless.identity = Strategy::caller_provided;
  const auto results =
      submit(*remote, {request("charge", "a"), request("charge", "a"), keyless, bad_name, request("greet")});
  ASSERT_EQ(results.size(), 5U);
  EXPECT_TRUE(std::get<Receipt>(results[0]).created);
  EXPECT_FALSE(std::get<Receipt>(results[1]).created);
  EXPECT_EQ(std::get<Refusal>(results[2]).code, Refusal::Code::idempotency_key_required);
  EXPECT_EQ(std::get<Refusal>(results[3]).pointer, "/type");
  EXPECT_TRUE(std::get<Receipt>(results[4]).created);
  EXPECT_TRUE(submit(*remote, std::vector<SubmitRequest>()).empty());
}

TEST(WriteSubmit, EveryOptionArrives) {
  SubmitRequest full = request("charge", "k", R"({"order_id":1})");
  full.queue = "payments";
  full.scope = Scope::parse("shop");
  full.identity = Strategy::contextual;
  full.identity_fields = {{"/order_id"}};
  full.reuse = Reuse::reject;
  full.on_duplicate = OnDuplicate::error;
  full.idempotency_ttl = 24h;
  full.priority = -5;
  full.delay = 1500ms;
  full.max_attempts = 7;
  full.retry.initial = 250ms;
  full.retry.factor = 1.5;
  full.retry.max = 1h;
  full.timeout = 30s;
  full.deadline = Duration(2h);
  full.concurrency_key = "c";
  full.dry_run = true;
  SubmitRequest at_instants = request("charge");
  at_instants.run_at = from_ms(1'769'515'200'123);
  at_instants.deadline = from_ms(1'769'515'200'456);
  for (const SubmitRequest& one : {full, at_instants}) {
    const std::string text = wire::write_submit(one);
    EXPECT_EQ(wire::write_submit(wire::read_submit(parse_json(text))), text);
  }
}

// ---- claim, heartbeat, finish, control

TEST_F(Remote, AClaimedTaskEqualsThatOfTheLocalEngine) {
  const ExecutionId id = create(*remote, request("charge", "order-1"));
  for (const Duration wait : {Duration(0), Duration(30s)}) {
    const auto claimed = claim(*remote, 5, wait);
    ASSERT_EQ(claimed.size(), 1U);
    EXPECT_EQ(claimed[0].id, id);
    EXPECT_EQ(claimed[0].lease_secret, local->find(kSpace, id)->lease_secret);
    EXPECT_EQ(told(claimed[0]), told(*local->find(kSpace, id)));
    EXPECT_TRUE(finish(*remote, {{token_of(claimed[0]), Report::Failed{{"E", "m"}, false}}}).at(0).accepted);
    EXPECT_TRUE(control(*remote, ControlRequest::Action::retry, id, "again" + std::to_string(wait.count())).changed);
  }
}

TEST_F(Remote, HeartbeatsExtendEachLeaseByItsLength) {
  create(*remote, request("a"));
  create(*remote, request("b"));
  const auto claimed = claim(*remote, 2);
  ASSERT_EQ(claimed.size(), 2U);
  LeaseToken stale = token_of(claimed[0]);
  stale.attempt = 9;
  control(*remote, ControlRequest::Action::cancel, claimed[1].id, "stop");
  const auto outcomes = heartbeat(*remote, {{token_of(claimed[0]), 1h}, {stale, 1h}, {token_of(claimed[1]), 2h}});
  ASSERT_EQ(outcomes.size(), 3U);
  EXPECT_TRUE(outcomes[0].ok);
  EXPECT_FALSE(outcomes[1].ok);
  EXPECT_TRUE(outcomes[2].cancel_requested);
  EXPECT_EQ(outcomes[0].lease_expires_at, local->find(kSpace, claimed[0].id)->lease_expires_at);
  EXPECT_GT(*outcomes[0].lease_expires_at, *claimed[0].lease_expires_at + 30min);
  EXPECT_TRUE(heartbeat(*remote, {}).empty());
}

TEST_F(Remote, ReportsAreAcceptedOrTheLeaseIsLost) {
  for (const char* type : {"a", "b", "c"}) create(*remote, request(type));
  const auto claimed = claim(*remote, 3);
  ASSERT_EQ(claimed.size(), 3U);
  Execution stranger = claimed[2];
  stranger.attempt = 9;
  const auto outcomes = finish(*remote, {completed(claimed[0], R"({"n":1})"), failed(claimed[1]), completed(stranger)});
  ASSERT_EQ(outcomes.size(), 3U);
  EXPECT_TRUE(outcomes[0].accepted);
  EXPECT_TRUE(outcomes[1].accepted);
  EXPECT_FALSE(outcomes[2].accepted);
  EXPECT_FALSE(finish(*remote, {completed(stranger)}).at(0).accepted);
  EXPECT_EQ(local->find(kSpace, claimed[0].id)->result, R"({"n":1})");
  EXPECT_EQ(local->find(kSpace, claimed[1].id)->error->message, "no funds");
  EXPECT_EQ(finish(*remote, {completed(claimed[2])}).at(0).accepted, true);
  EXPECT_EQ(local->find(kSpace, claimed[2].id)->result, std::nullopt);
}

TEST_F(Remote, ControlOperationsAnswerLikeTheLocalEngine) {
  const ExecutionId id = create(*remote, request("a"));
  const auto done = control(*remote, ControlRequest::Action::cancel, id, "k");
  EXPECT_TRUE(done.changed);
  EXPECT_EQ(done.status, Status::cancelled);
  ExecutionId unknown = id;
  unknown.bytes[15] ^= 1;
  const auto expect_alike = [&](ControlRequest::Action action, const ExecutionId& target, const std::string& key) {
    control(*local, action, target, key);  // from here on both repeat
    ControlOutcome here = control(*local, action, target, key), there = control(*remote, action, target, key);
    here.effects = {};
    if (here.kind != ControlOutcome::Kind::done) {
      here.execution.reset();
      here.status = there.status;
    }
    EXPECT_EQ(there, here) << key;
  };
  expect_alike(ControlRequest::Action::cancel, id, "k");
  expect_alike(ControlRequest::Action::retry, id, "k");
  expect_alike(ControlRequest::Action::cancel, unknown, "other");
  expect_alike(ControlRequest::Action::retry, id, "schl\u00fcssel mit Platz");
}

TEST_F(Remote, ARequestKeyThatDoesNotFitAHeaderIsRefusedUnsent) {
  const ExecutionId id = create(*remote, request("a"));
  try {
    control(*remote, ControlRequest::Action::cancel, id, "k\r\nHapax-Namespace: other");
    FAIL();
  } catch (const InvalidField& refusal) {
    EXPECT_EQ(refusal.code(), "InvalidIdempotencyKey");
  }
  EXPECT_EQ(local->find(kSpace, id)->status, Status::pending);
  EXPECT_EQ(failure_of([] { connect_engine({.url = "http://x", .token = "a\nb", .name_space = "default"}); }).code(),
            Failure::Code::misuse);
}

TEST_F(Remote, WaitingForAResultEndsWhenTheTaskCloses) {
  const ExecutionId id = create(*remote, request("a"));
  EXPECT_EQ(wait_closed(*remote, id, 0ms)->status, Status::pending);
  auto result = std::async(std::launch::async, [&] { return wait_closed(*remote, id, 30s); });
  finish(*remote, {completed(claim(*remote, 1).at(0), "5")});
  EXPECT_EQ(told(*result.get()), told(*local->find(kSpace, id)));
  ExecutionId unknown = id;
  unknown.bytes[15] ^= 1;
  EXPECT_EQ(wait_closed(*remote, unknown, 0ms), std::nullopt);
}

// ---- read, settings

TEST_F(Remote, ReadsGiveWhatTheLocalEngineGives) {
  for (int i = 0; i < 5; ++i) create(*remote, request("t" + std::to_string(i % 2), "key " + std::to_string(i)));
  const auto claimed = claim(*remote, 2);
  finish(*remote, {failed(claimed[0])});
  const ExecutionId id = claimed[0].id;
  EXPECT_EQ(*remote->find(kSpace, id), told(*local->find(kSpace, id)));
  ExecutionId unknown = id;
  unknown.bytes[15] ^= 1;
  EXPECT_EQ(remote->find(kSpace, unknown), std::nullopt);

  std::vector<ListFilter> filters(6, everything());
  filters[1].type = "t1";
  filters[2].status = Status::failed;
  filters[3].limit = 2;
  filters[4].before = id;
  filters[5].idempotency_key = "key 3";
  for (const ListFilter& filter : filters) EXPECT_EQ(remote->list(filter), told(local->list(filter)));

  const auto there = remote->find_identity(kSpace, "t0", {}, {}, "key 0");
  auto here = local->find_identity(kSpace, "t0", {}, {}, "key 0");
  ASSERT_TRUE(there && here);
  here->owner = told(*here->owner);
  EXPECT_EQ(*there, *here);
  EXPECT_EQ(remote->find_identity(kSpace, "t0", {}, {}, "nobody's"), std::nullopt);
  EXPECT_TRUE(remote->release_identity(kSpace, here->entry.identity.hash));
  EXPECT_FALSE(remote->release_identity(kSpace, here->entry.identity.hash));
  EXPECT_EQ(remote->queue_counts(), local->queue_counts());
  remote->check_ready();
}

void expect_same(const QueueView& there, const QueueView& here) {
  EXPECT_EQ(there.name, here.name);
  EXPECT_EQ(there.settings.to_json(), here.settings.to_json());
  EXPECT_EQ(there.from_file, here.from_file);
  EXPECT_EQ(there.known, here.known);
  EXPECT_EQ(there.count.pending, here.count.pending);
}

TEST_F(Remote, SettingsGiveWhatTheLocalEngineGives) {
  const auto queue_settings = QueueSettings::parse(parse_json(R"({"retention":"30d","rate_limit":"5/min"})"));
  for (const std::string name : {"payments", "..", "a/b \u00fc?#%"}) {
    expect_same(remote->queue(kSpace, name), local->queue(kSpace, name));
    const QueueView after_put = remote->put_queue(kSpace, name, queue_settings);
    expect_same(after_put, local->queue(kSpace, name));
    EXPECT_EQ(remote->set_paused(kSpace, name, true).settings.paused, true);
    const QueueView unpaused = remote->set_paused(kSpace, name, false);
    expect_same(unpaused, local->queue(kSpace, name));
  }
  const auto there = remote->queues(kSpace);
  const auto here = local->queues(kSpace);
  ASSERT_EQ(there.size(), here.size());
  for (std::size_t i = 0; i < here.size(); ++i) expect_same(there[i], here[i]);

  const auto type_settings = TypeSettings::parse(parse_json(R"({"identity":"strict","max_attempts":9})"));
  EXPECT_FALSE(remote->type(kSpace, "charge").declared);
  EXPECT_EQ(remote->put_type(kSpace, "charge", type_settings).settings.to_json(), type_settings.to_json());
  ASSERT_EQ(remote->types(kSpace).size(), 1U);
  EXPECT_TRUE(remote->types(kSpace)[0].declared);

  const TypeView tuned = remote->patch_type(kSpace, "tick", parse_json(R"({"max_attempts":7,"retry":{"max":"9s"}})"));
  EXPECT_FALSE(tuned.declared);
  EXPECT_EQ(tuned.identity, (TypeIdentity{Strategy::always_unique, TypeIdentity::Source::undeclared}));
  const TypeView stated =
      remote->patch_type(kSpace, "tick", parse_json(R"({"identity":"strict","max_attempts":null})"));
  EXPECT_EQ(stated.settings.to_json(), R"({"identity":"strict","retry":{"max":"9s"}})");
  EXPECT_EQ(stated.identity, (TypeIdentity{Strategy::strict, TypeIdentity::Source::api}));
  EXPECT_THROW(remote->patch_type(kSpace, "tick", parse_json(R"({"max_attempts":0})")), InvalidField);
  EXPECT_EQ(remote->type(kSpace, "tick").settings, stated.settings);
}

TEST_F(Remote, ListHasTheMaximumAttempts) {
  SubmitRequest patient = request("patient");
  patient.max_attempts = 9;
  const ExecutionId id = create(*remote, std::move(patient));
  EXPECT_EQ(remote->list(everything()).at(0).attempt_limit, 9);
  finish(*remote, {failed(claim(*remote, 1, 0ms)[0])});
  control(*remote, ControlRequest::Action::retry, id, "again");
  EXPECT_EQ(remote->find(kSpace, id)->attempt_limit, 10);
}

TEST_F(Remote, TheNamespaceIsThatOfTheConnection) {
  const auto other = connect_engine({.url = url_of(server->port()), .token = "", .name_space = "other"});
  create(*remote, request("a"));
  EXPECT_TRUE(other->list(everything()).empty());
  EXPECT_EQ(std::get<Receipt>(submit(*other, request("a"))).execution.name_space, "other");
}

// ---- claims that wait

TEST_F(Remote, AWaitingClaimIsAnsweredWhenWorkArrives) {
  auto claimed = std::async(std::launch::async, [&] { return claim(*remote, 1, 30s); });
  await_waiting_claims(1);
  const ExecutionId id = create(*remote, request("a"));
  EXPECT_EQ(claimed.get().at(0).id, id);
}

TEST_F(Remote, AWaitingClaimIsCancelledAtOnceAndTheServerNotices) {
  std::promise<std::vector<Claimed>> answered;
  const auto waiting = remote->claim(
      call_for(1, 60s), [&](Answer<std::vector<Claimed>> answer) { answered.set_value(std::move(answer).get()); });
  await_waiting_claims(1);
  const auto start = std::chrono::steady_clock::now();
  waiting->cancel();
  EXPECT_TRUE(answered.get_future().get().empty());
  EXPECT_LT(std::chrono::steady_clock::now() - start, 10s);
  await_waiting_claims(0);
  waiting->cancel();
  create(*remote, request("a"));
  EXPECT_EQ(claim(*remote, 1).at(0).attempt, 1);
}

TEST_F(Remote, WaitingClaimsShareOneThreadAndEndWithTheEngine) {
  const auto threads = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator());
  };
  const auto before = threads();
  std::vector<std::promise<std::size_t>> answers(50);
  for (auto& promise : answers) {
    remote->claim(call_for(1, 60s), [&promise](Answer<std::vector<Claimed>> answer) {
      promise.set_value(std::move(answer).get().size());
    });
  }
  await_waiting_claims(50);
  EXPECT_EQ(threads(), before + 1);
  remote.reset();
  for (auto& promise : answers) EXPECT_EQ(promise.get_future().get(), 0U);
}

// ---- failures

TEST_F(Remote, AServerThatIsGoneIsUnavailable) {
  server->stop();
  server.reset();
  EXPECT_EQ(failure_of([&] { submit(*remote, request("a", "k")); }).code(), Failure::Code::unavailable);
  EXPECT_EQ(failure_of([&] { claim(*remote, 1, 30s); }).code(), Failure::Code::unavailable);
  EXPECT_EQ(failure_of([&] { remote->queues(kSpace); }).code(), Failure::Code::unavailable);
}

TEST_F(Remote, AStoppedEngineIsReportedAsStopped) {
  local->stop();
  EXPECT_EQ(failure_of([&] { submit(*remote, request("a", "k")); }).code(), Failure::Code::stopped);
}

TEST_F(Remote, AfterALostAnswerASubmissionWithAKeyIsRepeated) {
  CuttingProxy proxy(server->port());
  const auto through = connect_engine({.url = url_of(proxy.port()), .token = "", .name_space = kSpace});
  proxy.drop_answers(2);
  const auto receipt = std::get<Receipt>(submit(*through, request("charge", "order-1")));
  EXPECT_EQ(proxy.connections(), 3);
  const auto stored = local->list(everything());
  ASSERT_EQ(stored.size(), 1U);
  EXPECT_EQ(receipt.execution.id, stored[0].id);

  proxy.drop_answers(1);
  const auto claimed = claim(*local, 1);
  EXPECT_TRUE(finish(*through, {completed(claimed.at(0))}).at(0).accepted);
}

TEST_F(Remote, AfterALostAnswerASubmissionWithoutAKeyIsRepeatedUnderItsId) {
  CuttingProxy proxy(server->port());
  const auto through = connect_engine({.url = url_of(proxy.port()), .token = "", .name_space = kSpace});
  std::size_t sent = 0;
  for (const bool kept_connection : {false, true}) {
    if (kept_connection) through->check_ready();
    proxy.drop_answers(1);
    const Receipt receipt = std::get<Receipt>(submit(*through, request("greet")));
    EXPECT_TRUE(receipt.created);
    EXPECT_EQ(local->list(everything()).size(), ++sent);
    EXPECT_TRUE(local->find(kSpace, receipt.execution.id).has_value());
  }
}

TEST_F(Remote, RepeatingEndsWhenAnswersKeepGettingLost) {
  CuttingProxy proxy(server->port());
  const auto through = connect_engine({.url = url_of(proxy.port()), .token = "", .name_space = kSpace});
  proxy.drop_answers(1000);
  EXPECT_EQ(failure_of([&] { submit(*through, request("charge", "k")); }).code(), Failure::Code::outcome_unknown);
  EXPECT_EQ(local->list(everything()).size(), 1U);
}

TEST(RemoteToken, AWrongTokenIsARefusalInEveryVerb) {
  const auto local = start_engine(open_memory_store(kClock), {});
  const auto server = start_server(*local, any_port({{"right", std::nullopt}}));
  const auto wrong = connect_engine({.url = url_of(server->port()), .token = "wrong", .name_space = kSpace});
  const auto word_of = [](auto call) -> std::string {
    try {
      call();
    } catch (const RemoteRefusal& refusal) {
      EXPECT_FALSE(refusal.safe_to_retry());
      return refusal.word();
    }
    return "";
  };
  EXPECT_EQ(word_of([&] { submit(*wrong, request("a")); }), "Unauthorized");
  EXPECT_EQ(word_of([&] { claim(*wrong, 1, 30s); }), "Unauthorized");
  EXPECT_EQ(word_of([&] { wrong->queues(kSpace); }), "Unauthorized");
  const auto right = connect_engine({.url = url_of(server->port()) + "/", .token = "right", .name_space = kSpace});
  create(*right, request("a"));
  EXPECT_THROW(right->queue(kSpace, "bad\nname"), InvalidField);
}

TEST_F(Remote, ManyWorkflowsAndTasksInOneCallAreEachAnswered) {
  std::vector<SubmitRequest> requests;
  for (const char* id : {"w-1", "w-2", "w-1"}) {
    requests.push_back(request("order", id));
    requests.back().kind = Kind::workflow;
  }
  requests.push_back(request("mail"));
  requests.push_back(request("", {}));
  const auto results = submit(*remote, requests);
  ASSERT_EQ(results.size(), 5U);
  EXPECT_TRUE(std::get<Receipt>(results[0]).created);
  EXPECT_TRUE(std::get<Receipt>(results[1]).created);
  EXPECT_FALSE(std::get<Receipt>(results[2]).created);
  EXPECT_EQ(std::get<Receipt>(results[2]).execution.id, std::get<Receipt>(results[0]).execution.id);
  EXPECT_EQ(std::get<Receipt>(results[3]).execution.kind, Kind::task);
  EXPECT_EQ(std::get<Refusal>(results[4]).pointer, "/type");
  EXPECT_EQ(local->find_workflow(kSpace, "w-2")->id, std::get<Receipt>(results[1]).execution.id);
}

TEST_F(Remote, ATooLargeSubmissionDoesNotTakeOthersWithIt) {
  std::vector<SubmitRequest> requests;
  requests.push_back(request("a"));
  requests.push_back(request("b", {}, ("\"" + std::string(std::size_t{9} << 20, 'x') + "\"").c_str()));
  std::vector<std::future<SubmitResult>> answers;
  for (SubmitRequest& each : requests) {
    answers.push_back(std::async(std::launch::async, [&] { return submit(*remote, std::move(each)); }));
  }
  EXPECT_TRUE(std::get<Receipt>(answers[0].get()).created);
  EXPECT_THROW(answers[1].get(), RemoteRefusal);
}

TEST_F(Remote, ClosingAnswersACallerThatCallsAgain) {
  const ExecutionId id = create(*remote, request("mail"));
  std::vector<Failure::Code> codes;
  Engine* engine = remote.get();
  engine->wait_closed(kSpace, id, 30s, [&](Answer<std::optional<Execution>> first) {
    EXPECT_THROW(std::move(first).get(), Failure);
    engine->wait_closed(kSpace, id, 30s, [&](Answer<std::optional<Execution>> second) {
      try {
        std::move(second).get();
      } catch (const Failure& failure) {
        codes.push_back(failure.code());
      }
    });
  });
  remote.reset();
  EXPECT_EQ(codes, std::vector{Failure::Code::stopped});
}

}  // namespace
}  // namespace hapax
