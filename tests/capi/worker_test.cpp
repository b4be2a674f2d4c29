// The worker of the C ABI: tasks, and what happens to their claims.
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <set>
#include <thread>

#include "capi/capi_app.h"
#include "capi/remote_place.h"

namespace hapax::capi_testing {

namespace {

std::string submit(CapiApp& app, const std::string& body) {
  const Answer receipt = app.call_wait("POST", "/v1/tasks", body);
  EXPECT_EQ(receipt.status, 201) << receipt.body;
  return receipt.text("/execution/id");
}

Answer task(CapiApp& app, const std::string& id) { return app.call_wait("GET", "/v1/tasks/" + id); }

Answer closed(CapiApp& app, const std::string& id) {
  return app.call_wait("GET", "/v1/tasks/" + id + "/result?wait=60s");
}

void finish(hapax_worker* worker, const Answer& claim, const std::string& outcome) {
  hapax_worker_finish(worker, claim.token, outcome.data(), outcome.size());
}

// The rest of the worker's completions; it must end.
std::vector<Answer> until_ended(CapiApp& app) {
  std::vector<Answer> all;
  do all.push_back(app.next());
  while (all.back().kind != HAPAX_WORKER_ENDED);
  return all;
}

// In this process, and against a server.
class CapiWorker : public ::testing::TestWithParam<bool> {
 protected:
  std::string url() const { return GetParam() ? remote_.url() : "memory:"; }

  RemotePlace remote_;
};

INSTANTIATE_TEST_SUITE_P(Places, CapiWorker, ::testing::Values(false, true),
                         [](const auto& place) { return place.param ? "Remote" : "Local"; });

TEST_P(CapiWorker, RunsTasksWithinItsCredit) {
  CapiApp app(url());
  constexpr int kTasks = 50;
  for (int i = 0; i < kTasks; ++i) submit(app, R"({"type":"t","input":)" + std::to_string(i) + "}");
  hapax_worker* worker = hapax_worker_new(app.get(), app.queue(), nullptr);
  ASSERT_NE(worker, nullptr);
  EXPECT_FALSE(is_readable(hapax_queue_fd(app.queue()), 30));  // no credit, no claim
  hapax_worker_credit(worker, 8, 0);
  std::set<std::string> seen;
  std::vector<Answer> held;
  for (int i = 0; i < kTasks; ++i) {
    const Answer claim = app.next();
    ASSERT_EQ(claim.kind, HAPAX_TASK) << claim.body;
    EXPECT_EQ(claim.worker, worker);
    EXPECT_TRUE(seen.insert(claim.text("/execution/input")).second);
    held.push_back(claim);
    if (held.size() < 8 && i + 1 < kTasks) continue;
    EXPECT_FALSE(is_readable(hapax_queue_fd(app.queue()), 10));  // the credit is used up
    for (const Answer& each : held) {
      finish(worker, each, R"({"result":{"of":)" + each.text("/execution/input") + "}}");
      hapax_worker_credit(worker, 1, 0);
    }
    held.clear();
  }
  hapax_worker_drain(worker);
  EXPECT_EQ(until_ended(app).back().status, 200);
  const Answer all = app.call_wait("GET", "/v1/tasks?status=completed&limit=100");
  EXPECT_EQ(all.json().find("executions")->items.size(), std::size_t{kTasks});
  hapax_worker_credit(worker, 1, 1);  // after its end
  EXPECT_EQ(app.drain().size(), 0U);
}

TEST_P(CapiWorker, ReportsErrorsAndGivesBack) {
  CapiApp app(url());
  const std::string id = submit(app, R"({"type":"t","retry":{"initial":"1ms","max":"1ms"}})");
  hapax_worker* worker = hapax_worker_new(app.get(), app.queue(), nullptr);
  hapax_worker_credit(worker, 10, 0);
  Answer claim = app.next();
  EXPECT_EQ(claim.json().find("attempt")->as_int(), 1);
  hapax_worker_finish(worker, claim.token, nullptr, 0);  // unstarted: costs no attempt
  claim = app.next();
  EXPECT_EQ(claim.text("/execution/id"), id);
  finish(worker, claim, R"({"error":{"type":"Boom","message":"again"}})");
  claim = app.next();
  EXPECT_EQ(claim.text("/execution/id"), id);
  finish(worker, claim, R"({"error":{"type":"Boom","message":"never","retryable":false}})");
  const Answer end = closed(app, id);
  EXPECT_EQ(end.text("/status"), "failed");
  EXPECT_EQ(end.text("/error/message"), "never");
  EXPECT_EQ(task(app, id).json().find("attempt")->as_int(), 2);
}

TEST_P(CapiWorker, ABadReportIsRefusedAndTheClaimStays) {
  CapiApp app(url());
  const std::string id = submit(app, R"({"type":"t"})");
  hapax_worker* worker = hapax_worker_new(app.get(), app.queue(), nullptr);
  hapax_worker_credit(worker, 1, 0);
  const Answer claim = app.next();
  for (const char* wrong : {"{", "[]", R"({"outcome":1})", R"({"result":1,"error":{"message":"m"}})"}) {
    finish(worker, claim, wrong);
    const Answer refused = app.next();
    EXPECT_EQ(refused.kind, HAPAX_REFUSED);
    EXPECT_EQ(refused.token, claim.token);
    EXPECT_EQ(refused.status, 400) << refused.body;
  }
  hapax_worker_turn(worker, claim.token, "{}", 2);  // it is no turn
  EXPECT_EQ(app.next().kind, HAPAX_REFUSED);
  finish(worker, claim, "{}");
  EXPECT_EQ(closed(app, id).text("/status"), "completed");
  finish(worker, claim, "{}");  // it is gone
  hapax_worker_finish(worker, 999'999'999, "{}", 2);
  hapax_worker_drain(worker);
  EXPECT_EQ(until_ended(app).size(), 1U);
}

TEST_P(CapiWorker, LeavesACancelThatAWorkflowIsAskedForToItsHistory) {
  CapiApp app(url());
  hapax_worker* worker = hapax_worker_new(app.get(), app.queue(), R"({"lease":"1s"})");
  hapax_worker_credit(worker, 1, 1);
  EXPECT_EQ(app.call_wait("POST", "/v1/workflows", R"({"type":"flow","workflow_id":"w"})").status, 201);
  const Answer turn = app.next();
  EXPECT_EQ(turn.kind, HAPAX_TURN);
  const std::string ask = R"({"mode":"request","reason":"enough"})";
  EXPECT_EQ(app.call_wait("POST", "/v1/workflows/w/cancel", ask, R"({"Idempotency-Key":"w"})").status, 200);

  const std::string id = submit(app, R"({"type":"task"})");
  const Answer task = app.next();
  EXPECT_EQ(app.call_wait("POST", "/v1/tasks/" + id + "/cancel", "", R"({"Idempotency-Key":"c"})").status, 200);
  const Answer notice = app.next();  // of a heartbeat that both were in
  EXPECT_EQ(notice.kind, HAPAX_CANCEL_REQUESTED);
  EXPECT_EQ(notice.token, task.token);
  finish(worker, task, R"({"error":{"type":"Cancelled","message":"stopped"}})");

  const std::string waits =
      R"({"seen":0,"commands":[{"step":1,"kind":"wait_signal","name":"go"}],"end":{"kind":"suspended"}})";
  hapax_worker_turn(worker, turn.token, waits.data(), waits.size());
  hapax_worker_credit(worker, 0, 1);
  const Answer next = app.next();
  EXPECT_EQ(next.kind, HAPAX_TURN);
  EXPECT_EQ(next.json().find("events")->items.at(0).find("kind")->text, "cancel_requested") << next.body;
  hapax_worker_drain(worker);
  const std::string given_up =
      R"({"seen":2,"end":{"kind":"failed","error":{"type":"CancelRequested","message":"enough"}}})";
  hapax_worker_turn(worker, next.token, given_up.data(), given_up.size());
  until_ended(app);
  EXPECT_EQ(app.call_wait("GET", "/v1/workflows/w").text("/status"), "cancelled");
}

TEST_P(CapiWorker, TellsOfCancelRequestsLostLeasesAndTheEndOfTime) {
  CapiApp app(url());
  hapax_worker* worker = hapax_worker_new(app.get(), app.queue(), R"({"lease":"1s"})");
  hapax_worker_credit(worker, 3, 0);
  const std::string cancelled = submit(app, R"({"type":"cancelled"})");
  const Answer first = app.next();
  EXPECT_EQ(app.call_wait("POST", "/v1/tasks/" + cancelled + "/cancel", "", R"({"Idempotency-Key":"c"})").status, 200);
  const Answer notice = app.next();
  EXPECT_EQ(notice.kind, HAPAX_CANCEL_REQUESTED);
  EXPECT_EQ(notice.token, first.token);
  finish(worker, first, R"({"error":{"type":"Cancelled","message":"stopped"}})");
  EXPECT_EQ(closed(app, cancelled).text("/status"), "cancelled");

  const std::string late = submit(app, R"({"type":"late","timeout":"50ms","max_attempts":1})");
  const Answer second = app.next();
  const Answer over = app.next();
  EXPECT_EQ(over.kind, HAPAX_TIME_OVER);
  EXPECT_EQ(over.token, second.token);
  finish(worker, second, R"({"error":{"type":"Cancelled","message":"too late"}})");
  EXPECT_EQ(closed(app, late).text("/status"), "timed_out");

  const std::string lost = submit(app, R"({"type":"lost"})");
  const Answer third = app.next();
  const std::string lease = third.text("/lease");
  EXPECT_EQ(app.call_wait("POST", "/v1/claims/finish", R"({"outcomes":[{"lease":")" + lease + R"("}]})").status, 200);
  const Answer gone = app.next();
  EXPECT_EQ(gone.kind, HAPAX_LEASE_LOST);
  EXPECT_EQ(gone.token, third.token);
}

TEST_P(CapiWorker, KeepsItsLeases) {
  CapiApp app(url());
  const std::string id = submit(app, R"({"type":"t"})");
  hapax_worker* worker = hapax_worker_new(app.get(), app.queue(), R"({"lease":"3s"})");
  hapax_worker_credit(worker, 1, 0);
  const Answer claim = app.next();
  EXPECT_FALSE(is_readable(hapax_queue_fd(app.queue()), 3500));  // longer than the lease
  finish(worker, claim, "{}");
  EXPECT_EQ(closed(app, id).text("/status"), "completed");
  EXPECT_EQ(task(app, id).json().find("attempt")->as_int(), 1);
}

TEST_P(CapiWorker, IsNotHandedWhatItDoesNotKnow) {
  CapiApp app(url());
  const std::string other = submit(app, R"({"type":"other"})"), known = submit(app, R"({"type":"known"})");
  hapax_worker* worker = hapax_worker_new(app.get(), app.queue(), R"({"types":["known"]})");
  hapax_worker_credit(worker, 4, 0);
  const Answer claim = app.next();
  EXPECT_EQ(claim.text("/execution/id"), known);
  finish(worker, claim, "{}");
  EXPECT_EQ(closed(app, known).text("/status"), "completed");
  hapax_worker_drain(worker);
  EXPECT_EQ(until_ended(app).size(), 1U);
  // A server may have handed it out again to a claim that was just cancelled: then its lease ends by itself.
  if (!GetParam()) {
    EXPECT_EQ(task(app, other).text("/status"), "pending");
  }
}

TEST_P(CapiWorker, ClosingGivesBackWhatTheProgramHasNotSeen) {
  const std::string place = remote_.url();
  CapiApp other(place);
  std::string id;
  {
    CapiApp app(place);
    id = submit(app, R"({"type":"t"})");
    hapax_worker* worker = hapax_worker_new(app.get(), app.queue(), nullptr);
    hapax_worker_credit(worker, 1, 0);
    ASSERT_TRUE(is_readable(hapax_queue_fd(app.queue()), 60'000));
    EXPECT_EQ(task(other, id).text("/status"), "running");
  }
  EXPECT_EQ(task(other, id).text("/status"), "pending");
}

TEST_P(CapiWorker, GivesBackWhatIsNotDrainedForALease) {
  CapiApp app(url());
  const std::string id = submit(app, R"({"type":"t"})");
  hapax_worker* worker = hapax_worker_new(app.get(), app.queue(), R"({"lease":"1s"})");
  hapax_worker_credit(worker, 1, 0);
  ASSERT_TRUE(is_readable(hapax_queue_fd(app.queue()), 60'000));
  const Answer other =
      app.call_wait("POST", "/v1/claims", R"({"worker":"other","queues":["default"],"wait":"30s","lease":"60s"})");
  EXPECT_EQ(other.text("/claims/0/execution/id"), id) << other.body;
  EXPECT_EQ(task(app, id).json().find("attempt")->as_int(), 1);
  const Answer late = app.next(), lost = app.next();
  EXPECT_EQ(late.kind, HAPAX_TASK);
  EXPECT_EQ(lost.kind, HAPAX_LEASE_LOST);
  EXPECT_EQ(lost.token, late.token);
  finish(worker, late, "{}");  // too late
  EXPECT_EQ(task(app, id).text("/status"), "running");
}

TEST_P(CapiWorker, CreditHasNoBounds) {
  constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
  CapiApp app(url());
  const std::string id = submit(app, R"({"type":"t"})");
  hapax_worker* worker = hapax_worker_new(app.get(), app.queue(), nullptr);
  for (int i = 0; i < 3; ++i) hapax_worker_credit(worker, -kMost, -kMost);
  for (int i = 0; i < 3; ++i) hapax_worker_credit(worker, kMost, kMost);
  const Answer claim = app.next();
  finish(worker, claim, "{}");
  EXPECT_EQ(closed(app, id).text("/status"), "completed");
}

TEST_P(CapiWorker, ClosingAmidClaimsEndsTheWorkerOnce) {
  for (int round = 0; round < 30; ++round) {
    CapiApp app(url());
    hapax_worker* worker = hapax_worker_new(app.get(), app.queue(), nullptr);
    hapax_worker_credit(worker, 16, 16);
    for (std::uint64_t token = 1; token <= 8; ++token) app.call(token, "POST", "/v1/tasks", R"({"type":"t"})");
    hapax_close(app.get());
    std::map<std::int32_t, int> kinds;
    for (const Answer& answer : app.drain()) ++kinds[answer.kind];
    EXPECT_EQ(kinds[HAPAX_WORKER_ENDED], 1) << round;
    EXPECT_EQ(kinds[HAPAX_ANSWER], 8) << round;
  }
}

TEST_P(CapiWorker, WrongOptionsAndHandlesAreAnswered) {
  CapiApp app(url());
  for (const char* wrong :
       {"{", "[]", R"({"queues":[]})", R"({"queues":"q"})", R"({"lease":"1ms"})", R"({"colour":1})"}) {
    EXPECT_EQ(hapax_worker_new(app.get(), app.queue(), wrong), nullptr);
    const Answer why = app.next();
    EXPECT_EQ(why.kind, HAPAX_WORKER_ENDED);
    EXPECT_NE(why.status, 200) << wrong;
    EXPECT_NE(why.error(), "");
  }
  EXPECT_EQ(hapax_worker_new(app.get(), nullptr, nullptr), nullptr);
  EXPECT_EQ(hapax_worker_new(nullptr, app.queue(), nullptr), nullptr);
  EXPECT_EQ(app.next().error(), "InvalidHandle");
  hapax_worker_credit(nullptr, 1, 1);
  hapax_worker_finish(nullptr, 1, "{}", 2);
  hapax_worker_turn(nullptr, 1, "{}", 2);
  hapax_worker_drain(nullptr);
  auto* app_as_worker = reinterpret_cast<hapax_worker*>(app.get());
  hapax_worker_drain(app_as_worker);
}

TEST(CapiWorkerRefused, AWrongTokenEndsIt) {
  const RemotePlace place("secret");
  CapiApp app(place.url(), R"({"token":"wrong"})");
  hapax_worker* worker = hapax_worker_new(app.get(), app.queue(), nullptr);
  hapax_worker_credit(worker, 1, 0);
  const Answer why = app.next();
  EXPECT_EQ(why.kind, HAPAX_WORKER_ENDED);
  EXPECT_EQ(why.error(), "Unauthorized");
}

TEST(CapiWorkerRefused, AServerThatIsAwayIsWaitedFor) {
  auto place = std::make_unique<RemotePlace>();
  CapiApp app(place->url());
  hapax_worker* worker = hapax_worker_new(app.get(), app.queue(), nullptr);
  place->restart([&] { hapax_worker_credit(worker, 1, 0); });
  const std::string id = submit(app, R"({"type":"t"})");
  const Answer claim = app.next();
  EXPECT_EQ(claim.kind, HAPAX_TASK);
  finish(worker, claim, "{}");
  EXPECT_EQ(closed(app, id).text("/status"), "completed");
}

}  // namespace

}  // namespace hapax::capi_testing
