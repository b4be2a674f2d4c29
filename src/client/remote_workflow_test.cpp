// Workflows through the remote engine, verb by verb, compared with the local engine behind the server.
#include <gtest/gtest.h>

#include <future>

#include "client/remote_engine.h"
#include "core/workflow.h"
#include "engine/local_engine.h"
#include "http/server.h"
#include "store/memory/memory_store.h"
#include "support/cutting_proxy.h"
#include "support/describe.h"
#include "wire/event.h"
#include "wire/write_answer.h"

namespace hapax {
namespace {

using namespace std::chrono_literals;

const SystemClock kClock;
const std::string kSpace = "default";
const std::string kId = "order/456 \u00fc?#%";

ServerOptions any_port() {
  ServerOptions options;
  options.port = 0;
  return options;
}

struct RemoteWorkflow : testing::Test {
  std::unique_ptr<LocalEngine> local = start_engine(open_memory_store(kClock), {});
  std::unique_ptr<Server> server = start_server(*local, any_port());
  std::unique_ptr<Engine> remote = connect(server->port());

  static std::unique_ptr<Engine> connect(std::uint16_t port) {
    return connect_engine({.url = "http://127.0.0.1:" + std::to_string(port), .token = "", .name_space = kSpace});
  }
};

SubmitResult start(Engine& engine, const std::string& workflow_id, const char* input = "7") {
  SubmitRequest request;
  request.kind = Kind::workflow;
  request.type = "process_order";
  request.input = parse_json(input);
  request.idempotency_key = workflow_id;
  std::vector<SubmitRequest> requests{request};
  return await<std::vector<SubmitResult>>(
             [&](auto reply) { engine.submit(kSpace, std::move(requests), std::move(reply)); })
      .at(0);
}

ExecutionId begin(Engine& engine, const std::string& workflow_id) {
  return std::get<Receipt>(start(engine, workflow_id)).execution.id;
}

std::vector<Claimed> claim(Engine& engine) {
  ClaimCall call;
  call.name_space = kSpace;
  call.queues = {"default"};
  call.tasks = false;
  call.workflows = true;
  call.limit = 10;
  call.worker = "w";
  return await<std::vector<Claimed>>([&](auto reply) { engine.claim(call, std::move(reply)); });
}

TurnRequest turn_of(const Claimed& claimed) {
  const Execution& execution = claimed.execution;
  TurnRequest turn;
  turn.token = {execution.id, execution.attempt, *execution.lease_secret};
  turn.name_space = kSpace;
  turn.seen = execution.run.events;
  return turn;
}

TurnOutcome commit(Engine& engine, const TurnRequest& turn) {
  return await<std::vector<TurnOutcome>>([&](auto reply) { engine.commit_turns({turn}, std::move(reply)); }).at(0);
}

TurnRequest::Command wait_for(std::int32_t step, std::string signal) {
  TurnRequest::Command command;
  command.event.kind = Event::Kind::wait_signal;
  command.event.step = step;
  command.event.name = std::move(signal);
  return command;
}

TurnRequest::Command run_task(std::int32_t step, std::string type) {
  TurnRequest::Command command;
  command.event.kind = Event::Kind::task;
  command.event.step = step;
  command.event.name = type;
  command.start.emplace();
  command.start->type = std::move(type);
  return command;
}

ControlRequest control_of(ControlRequest::Action action, std::string key) {
  ControlRequest request;
  request.name_space = kSpace;
  request.action = action;
  request.workflow_id = kId;
  request.request_key = std::move(key);
  return request;
}

ControlOutcome control(Engine& engine, ControlRequest request) {
  return await<ControlOutcome>([&](auto reply) { engine.control(std::move(request), std::move(reply)); });
}

std::string json_of(const Execution& execution) {
  JsonWriter out;
  wire::write_execution(out, execution);
  return out.take();
}

std::string json_of(const std::vector<Event>& events) {
  JsonWriter out;
  out.begin_array();
  for (const Event& event : events) wire::write_event(out, event);
  return out.end_array().take();
}

TEST_F(RemoteWorkflow, IsStartedOnceAndFoundByItsId) {
  const ExecutionId id = begin(*remote, kId);
  EXPECT_EQ(begin(*remote, kId), id);
  EXPECT_EQ(json_of(*remote->find_workflow(kSpace, kId)), json_of(*local->find_workflow(kSpace, kId)));
  EXPECT_EQ(remote->find_workflow(kSpace, "nobody"), std::nullopt);
  EXPECT_EQ(std::get<Refusal>(start(*remote, kId, "8")).code, Refusal::Code::idempotency_conflict);

  ListFilter filter;
  filter.name_space = kSpace;
  EXPECT_TRUE(remote->list(filter).empty());
  filter.kind = Kind::workflow;
  filter.idempotency_key = kId;
  ASSERT_EQ(remote->list(filter).size(), 1U);
  EXPECT_EQ(remote->list(filter)[0].id, id);
}

TEST_F(RemoteWorkflow, ItsTurnsAreClaimedWithEventsAndCommitted) {
  const ExecutionId id = begin(*remote, kId);
  auto claimed = claim(*remote);
  ASSERT_EQ(claimed.size(), 1U);
  EXPECT_EQ(claimed[0].execution.id, id);
  EXPECT_TRUE(claimed[0].events.empty());
  TurnRequest turn = turn_of(claimed[0]);
  turn.commands = {run_task(1, "charge"), wait_for(2, "approve")};
  EXPECT_EQ(commit(*remote, turn).status, Status::suspended);
  EXPECT_TRUE(commit(*remote, turn).accepted);  // a lost reply

  ControlRequest signal = control_of(ControlRequest::Action::signal, "s1");
  signal.signal = "approve";
  signal.payload = R"({"by":"ada"})";
  EXPECT_TRUE(control(*remote, signal).changed);
  claimed = claim(*remote);
  ASSERT_EQ(claimed.size(), 1U);
  RunState known = local->find(kSpace, id)->run;
  known.committed.clear();  // for the store alone
  EXPECT_EQ(claimed[0].execution.run, known);
  EXPECT_EQ(json_of(claimed[0].events), json_of(local->history(kSpace, id, claimed[0].execution.run.seen, 100)));
  TurnRequest last = turn_of(claimed[0]);
  last.end = Turn::Completed{"\"done\""};
  EXPECT_EQ(commit(*remote, last).status, Status::completed);
  turn.token.attempt = 9;
  EXPECT_FALSE(commit(*remote, turn).accepted);
}

TEST_F(RemoteWorkflow, ItsHistoryIsReadOverManyPages) {
  const ExecutionId id = begin(*remote, kId);
  TurnRequest turn = turn_of(claim(*remote).at(0));
  for (std::int32_t step = 1; step <= 2500; ++step) turn.commands.push_back(wait_for(step, "s"));
  ASSERT_TRUE(commit(*remote, turn).accepted);
  EXPECT_EQ(remote->history(kSpace, id, 0, 10'000).size(), 2500U);
  for (const auto& [after, limit] :
       {std::pair(0, 3), std::pair(1200, 1100), std::pair(2400, 1000), std::pair(9999, 10)}) {
    EXPECT_EQ(json_of(remote->history(kSpace, id, after, limit)), json_of(local->history(kSpace, id, after, limit)));
  }
  ExecutionId unknown = id;
  unknown.bytes[15] ^= 1;
  EXPECT_TRUE(remote->history(kSpace, unknown, 0, 10).empty());
}

TEST_F(RemoteWorkflow, WaitingForItsResultWorks) {
  begin(*remote, kId);
  const auto wait = [&](Duration longest) {
    return await<std::optional<Execution>>(
        [&](auto reply) { remote->wait_workflow(kSpace, kId, longest, std::move(reply)); });
  };
  EXPECT_EQ(wait(0ms)->status, Status::pending);
  auto result = std::async(std::launch::async, [&] { return wait(30s); });
  TurnRequest turn = turn_of(claim(*remote).at(0));
  turn.end = Turn::Completed{"5"};
  commit(*remote, turn);
  EXPECT_EQ(result.get()->result, "5");
  EXPECT_EQ(await<std::optional<Execution>>(
                [&](auto reply) { remote->wait_workflow(kSpace, "nobody", 0ms, std::move(reply)); }),
            std::nullopt);
}

// The outcome without what a server does not tell.
ControlOutcome told(ControlOutcome outcome) {
  outcome.effects = {};
  if (outcome.kind != ControlOutcome::Kind::done) outcome.execution.reset();
  if (outcome.kind != ControlOutcome::Kind::done) outcome.status = ControlOutcome().status;
  if (outcome.kind != ControlOutcome::Kind::no_such_step) outcome.steps = 0;
  return outcome;
}

TEST_F(RemoteWorkflow, ControlOperationsAnswerLikeTheLocalEngine) {
  using Action = ControlRequest::Action;
  begin(*remote, kId);
  const auto expect_alike = [&](const ControlRequest& request) {
    control(*remote, request);  // from here on both repeat
    EXPECT_EQ(control(*remote, request), told(control(*local, request))) << request.request_key;
  };
  ControlRequest signal = control_of(Action::signal, "signal");
  signal.signal = "a/b \u00fc";
  expect_alike(signal);
  signal.payload = "null";
  expect_alike(signal);  // other parameters
  ControlRequest fork = control_of(Action::fork, "fork");
  expect_alike(fork);
  fork.request_key = "fork 2";
  fork.fork_workflow_id = "forked";
  expect_alike(fork);
  fork.from_step = 99;
  expect_alike(fork);
  fork.request_key = "fork 3";
  expect_alike(fork);
  EXPECT_EQ(control(*remote, control_of(Action::cancel, "fork")).kind, ControlOutcome::Kind::key_conflict);
  expect_alike(control_of(Action::cancel, "cancel"));
  expect_alike(control_of(Action::cancel, "cancel again"));
  signal.request_key = "late";
  expect_alike(signal);
  expect_alike(control_of(Action::resume, "resume"));
  ControlRequest unknown = control_of(Action::cancel, "unknown");
  unknown.workflow_id = "nobody";
  expect_alike(unknown);
}

TEST_F(RemoteWorkflow, ATurnWhoseAnswerIsLostIsSentAgainAndCommittedOnce) {
  CuttingProxy proxy(server->port());
  const auto through = connect(proxy.port());
  const ExecutionId id = begin(*remote, kId);
  TurnRequest turn = turn_of(claim(*remote).at(0));
  turn.commands = {run_task(1, "charge")};
  proxy.drop_answers(2);
  EXPECT_TRUE(commit(*through, turn).accepted);
  EXPECT_EQ(local->history(kSpace, id, 0, 100).size(), 1U);
}

// A claim for tasks that waits: then nothing waits before a step in its queue.
std::shared_ptr<Waiting> idle_worker(Engine& engine) {
  ClaimCall call;
  call.name_space = kSpace;
  call.queues = {"default"};
  call.worker = "idle";
  call.wait = 30s;
  return engine.claim(call, [](Answer<std::vector<Claimed>>) {});
}

const std::vector<std::string> kQueues{"default"};
const TurnWorker kWorker{.name_space = kSpace, .queues = kQueues, .worker = "w"};

TurnRequest::Command quick_step(std::int32_t step) {
  TurnRequest::Command command = run_task(step, "tick");
  command.start->queue = "default";
  return command;
}

struct StepsWithinRemoteTurns : RemoteWorkflow {
  std::shared_ptr<Waiting> idle = idle_worker(*local);

  Claimed claimed_turn() {
    while (local->counters().waiting_claims == 0) std::this_thread::yield();
    begin(*remote, kId);
    return claim(*remote).at(0);
  }
  ~StepsWithinRemoteTurns() override { idle->cancel(); }
};

TEST_F(StepsWithinRemoteTurns, AreCommittedWithTheTurnWhichGoesOn) {
  const Claimed claimed = claimed_turn();
  TurnRequest turn = turn_of(claimed);
  turn.commands = {quick_step(1)};
  const auto step = remote->begin_within_turn(claimed.execution, kWorker, turn.commands[0]);
  ASSERT_TRUE(step);
  turn.commands[0].within_turn->begun.completed = Report::Completed{"8"};
  turn.end = Turn::Unfinished{};
  EXPECT_EQ(commit(*remote, turn).status, Status::running);

  const auto stored = local->find(kSpace, step->id);
  ASSERT_TRUE(stored);
  EXPECT_EQ(stored->status, Status::completed);
  EXPECT_EQ(stored->result, "8");
  EXPECT_EQ(stored->worker, "w");
  EXPECT_EQ(stored->attempt, 1);

  turn.commands = {quick_step(2)};
  ASSERT_TRUE(remote->begin_within_turn(claimed.execution, kWorker, turn.commands[0]));
  turn.seen = 2;  // the task and its end
  turn.end = Turn::Suspended{};
  EXPECT_EQ(commit(*remote, turn).status, Status::suspended);
  EXPECT_EQ(local->find(kSpace, step_id(claimed.execution.id, "tick", 2))->status, Status::running);
}

TEST_F(StepsWithinRemoteTurns, DoNotBeginForATypeWithAnIdentity) {
  TypeSettings strict;
  strict.identity = Strategy::strict;
  local->put_type(kSpace, "tick", strict);
  Claimed claimed = claimed_turn();
  TurnRequest::Command command = quick_step(1);
  EXPECT_FALSE(remote->begin_within_turn(claimed.execution, kWorker, command));
  command.start->type = command.event.name = "tock";
  EXPECT_TRUE(remote->begin_within_turn(claimed.execution, kWorker, command));
}

TEST_F(StepsWithinRemoteTurns, DoNotBeginInAQueueWithALimit) {
  QueueSettings limited;
  limited.max_running = 1;
  local->put_queue(kSpace, "default", limited);
  const Claimed claimed = claimed_turn();
  TurnRequest::Command command = quick_step(1);
  EXPECT_FALSE(remote->begin_within_turn(claimed.execution, kWorker, command));
}

TEST_F(StepsWithinRemoteTurns, ATypeThatGotAnIdentityMeanwhileIsNotAccepted) {
  const Claimed claimed = claimed_turn();
  TurnRequest turn = turn_of(claimed);
  turn.commands = {quick_step(1)};
  ASSERT_TRUE(remote->begin_within_turn(claimed.execution, kWorker, turn.commands[0]));
  TypeSettings strict;
  strict.identity = Strategy::strict;
  local->put_type(kSpace, "tick", strict);
  EXPECT_FALSE(commit(*remote, turn).accepted);
  EXPECT_FALSE(local->find(kSpace, step_id(claimed.execution.id, "tick", 1)));
  turn.commands[0].within_turn.reset();
  EXPECT_TRUE(commit(*remote, turn).accepted);
}

}  // namespace
}  // namespace hapax
