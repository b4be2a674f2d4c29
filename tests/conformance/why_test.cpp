// Why an execution does not run: every code of the spec, each in the situation that it stands for.
#include "conformance/workflow_test.h"
#include "core/json.h"

namespace hapax {
namespace {

class WhyTest : public WorkflowTest {
 protected:
  WhyTest() { announce("anybody", {"work", "flows"}); }

  void announce(const std::string& name, std::vector<std::string> queues, std::vector<std::string> types = {},
                bool tasks = true, bool workflows = true) {
    const WorkerInfo worker{.name_space = "default",
                            .name = name,
                            .queues = std::move(queues),
                            .types = std::move(types),
                            .tasks = tasks,
                            .workflows = workflows,
                            .last_seen_at = now()};
    store().announce({&worker, 1});
  }

  Why why(const ExecutionId& id) {
    const auto why = store().why("default", id);
    EXPECT_TRUE(why.has_value());
    EXPECT_EQ(why->sentences.size(), std::max<std::size_t>(why->because.size(), 1));
    return *why;
  }
  static std::vector<std::string> codes(const Why& why) {
    std::vector<std::string> codes;
    for (const std::string& because : why.because) codes.push_back(parse_json(because).find("code")->text);
    return codes;
  }
  std::vector<std::string> codes(const ExecutionId& id) { return codes(why(id)); }
  // A member of the first reason.
  std::string member(const ExecutionId& id, std::string_view name) {
    const Json because = parse_json(why(id).because.at(0));
    const Json* member = because.find(name);
    return member ? member->text : "absent";
  }

  using Codes = std::vector<std::string>;
};
HAPAX_FOR_ALL_STORES(WhyTest);

TEST_P(WhyTest, AnUnknownOneOrOneOfAnotherNamespaceHasNone) {
  EXPECT_EQ(store().why("default", test_id(77)), std::nullopt);
  const auto id = submitted(Task()).id;
  EXPECT_EQ(store().why("other", id), std::nullopt);
}

TEST_P(WhyTest, NothingHoldsBackWhatIsNext) {
  const auto id = submitted(Task()).id;
  EXPECT_EQ(why(id).state, "pending");
  EXPECT_EQ(codes(id), Codes{});
  EXPECT_NE(why(id).sentences.at(0).find("Nothing holds it back"), std::string::npos);
}

TEST_P(WhyTest, Paused) {
  const auto id = submitted(Task()).id;
  QueuePolicy policy;
  policy.paused = true;
  set_policy("work", policy);
  EXPECT_EQ(codes(id), Codes{"paused"});
  EXPECT_EQ(member(id, "queue"), "work");
}

TEST_P(WhyTest, Delayed) {
  const auto id = submitted(Task().delay(1h)).id;
  EXPECT_EQ(codes(id), Codes{"delayed"});
  EXPECT_EQ(member(id, "run_at"), format_time(now() + 1h));
}

TEST_P(WhyTest, Retrying) {
  const auto id = submitted(Task().retry({10min, 1, 10min})).id;
  fail(token_of(claim_one()));
  EXPECT_EQ(codes(id), Codes{"retrying"});
  EXPECT_EQ(member(id, "attempt"), "1");
  EXPECT_NE(why(id).sentences.at(0).find("CardDeclined: no funds"), std::string::npos);
}

TEST_P(WhyTest, RateLimited) {
  QueuePolicy policy;
  policy.rate_limit = parse_rate("1/hour");
  set_policy("work", policy);
  submitted(Task());
  claim_one();
  const auto id = submitted(Task()).id;
  EXPECT_EQ(codes(id), Codes{"rate_limited"});
  EXPECT_EQ(member(id, "rate"), "1/hour");
  EXPECT_EQ(member(id, "next_permit_at"), format_time(now() + 1h));
}

TEST_P(WhyTest, MaxRunning) {
  QueuePolicy policy;
  policy.max_running = 1;
  set_policy("work", policy);
  submitted(Task());
  claim_one();
  const auto id = submitted(Task()).id;
  EXPECT_EQ(codes(id), Codes{"max_running"});
  EXPECT_EQ(member(id, "running"), "1");
}

TEST_P(WhyTest, ConcurrencyKey) {
  const auto holder = submitted(Task().concurrency_key("tenant-1")).id;
  claim_one();
  const auto id = submitted(Task().concurrency_key("tenant-1")).id;
  EXPECT_TRUE(claim().executions.empty());
  EXPECT_EQ(codes(id), Codes{"concurrency_key"});
  EXPECT_EQ(member(id, "key"), "tenant-1");
  const Json because = parse_json(why(id).because.at(0));
  ASSERT_EQ(because.find("holders")->items.size(), 1U);
  EXPECT_EQ(because.find("holders")->items.at(0).text, holder.to_string());
}

TEST_P(WhyTest, Behind) {
  submitted(Task());
  submitted(Task().priority(5));
  submitted(Task().priority(-5));
  submitted(Task().delay(1h).priority(9));
  const auto id = submitted(Task()).id;
  EXPECT_EQ(codes(id), Codes{"behind"});
  EXPECT_EQ(member(id, "before"), "2");
  EXPECT_NE(why(id).sentences.at(0).find("none of them has moved"), std::string::npos);
  complete(token_of(claim_one()));
  EXPECT_EQ(member(id, "before"), "1");
  EXPECT_EQ(member(id, "expected_start"), format_time(now() + 1min)) << "one closed within the last minute";
}

TEST_P(WhyTest, NobodyHasClaimedItsTypeForAMinute) {
  announce("mailer", {"other", "work"}, {"mail", "sms"}, true, false);
  announce("turner", {"work"}, {}, false, true);
  announce("elsewhere", {"other"}, {"charge"});
  const auto id = submitted(Task("charge")).id;
  clock_.advance(59s);
  EXPECT_EQ(codes(id), Codes{});
  announce("mailer", {"other", "work"}, {"mail", "sms"}, true, false);
  announce("turner", {"work"}, {}, false, true);
  clock_.advance(1s);
  EXPECT_EQ(codes(id), Codes{"no_worker"});
  EXPECT_EQ(member(id, "queue"), "work");
  EXPECT_EQ(member(id, "type"), "charge");
  EXPECT_EQ(member(id, "running"), "0");
  const Json because = parse_json(why(id).because.at(0));
  ASSERT_EQ(because.find("workers")->items.size(), 1U);
  EXPECT_EQ(because.find("workers")->items.at(0).text, "mailer");
  EXPECT_EQ(why(id).sentences.at(0),
            "Nobody has claimed tasks of the type charge in the queue work for a minute; the queue is claimed without "
            "that type, by mailer.");
  announce("cashier", {"work"}, {"refund", "charge"});
  EXPECT_EQ(codes(id), Codes{});
}

TEST_P(WhyTest, NobodyClaimsTheQueueAtAll) {
  const auto id = submitted(Task("charge").queue("forgotten")).id;
  EXPECT_EQ(codes(id), Codes{"no_worker"});
  const Json because = parse_json(why(id).because.at(0));
  EXPECT_TRUE(because.find("workers")->items.empty());
  EXPECT_EQ(why(id).sentences.at(0),
            "Nobody has claimed tasks of the type charge in the queue forgotten for a minute.");
}

TEST_P(WhyTest, ABusyQueueSaysHowManyRunInIt) {
  submitted(Task("charge"));
  claim_one();
  const auto id = submitted(Task("charge")).id;
  clock_.advance(60s);
  EXPECT_EQ(codes(id), Codes{"no_worker"});
  EXPECT_EQ(member(id, "running"), "1");
}

TEST_P(WhyTest, NobodyHasClaimedWorkflowsForAMinute) {
  const Execution run = start();
  EXPECT_EQ(codes(run.id), Codes{});
  clock_.advance(60s);
  announce("tasks only", {"flows"}, {}, true, false);
  EXPECT_EQ(codes(run.id), Codes{"no_workflow_worker"});
  EXPECT_EQ(member(run.id, "type"), "flow");
  EXPECT_EQ(why(run.id).sentences.at(0),
            "Nobody has claimed workflows of the type flow in the queue flows for a minute.");
  announce("turner", {"flows"}, {"flow"}, false, true);
  EXPECT_EQ(codes(run.id), Codes{});
}

TEST_P(WhyTest, EverythingThatHoldsATaskBackInOrderOfWeight) {
  QueuePolicy policy;
  policy.paused = true;
  policy.max_running = 1;
  policy.rate_limit = parse_rate("1/hour");
  set_policy("work", {.rate_limit = parse_rate("1/hour"), .max_running = 1});
  submitted(Task().concurrency_key("tenant-1"));
  claim_one();
  submitted(Task("charge"));
  set_policy("work", policy);
  const auto id = submitted(Task("charge").concurrency_key("tenant-1")).id;
  clock_.advance(60s);
  EXPECT_EQ(codes(id), (Codes{"paused", "rate_limited", "max_running", "concurrency_key", "behind", "no_worker"}));
}

TEST_P(WhyTest, AStepSaysThatNobodyClaimsIt) {
  const Execution run = suspended_on_task(Task("charge"));
  clock_.advance(60s);
  const Json because = parse_json(why(run.id).because.at(0));
  EXPECT_EQ(because.find("code")->text, "waits_for_step");
  ASSERT_EQ(because.find("why")->items.size(), 1U);
  EXPECT_EQ(because.find("why")->items.at(0).find("code")->text, "no_worker");
}

TEST_P(WhyTest, LeasedAndCancelRequested) {
  const auto id = submitted(Task()).id;
  claim_one();
  EXPECT_EQ(codes(id), Codes{"leased"});
  EXPECT_EQ(member(id, "attempt"), "1");
  EXPECT_EQ(member(id, "lease_expires_at"), format_time(now() + 60s));
  cancel(id);
  EXPECT_EQ(codes(id), (Codes{"leased", "cancel_requested"}));
  const Json because = parse_json(why(id).because.at(1));
  EXPECT_EQ(because.find("until")->text, format_time(now() + 30s));
}

TEST_P(WhyTest, Closed) {
  const auto id = submitted(Task().max_attempts(1)).id;
  fail(token_of(claim_one()));
  EXPECT_EQ(why(id).state, "failed");
  EXPECT_EQ(codes(id), Codes{"closed"});
  EXPECT_EQ(member(id, "how"), "failed");
  EXPECT_EQ(member(id, "when"), format_time(now()));
}

TEST_P(WhyTest, AWorkflowWaitsForAStepWithThatStepsOwnWhy) {
  const Execution run = suspended_on_task(Task("charge").delay(1h));
  EXPECT_EQ(codes(run.id), Codes{"waits_for_step"});
  EXPECT_EQ(member(run.id, "step"), "1");
  EXPECT_EQ(member(run.id, "type"), "charge");
  const Json because = parse_json(why(run.id).because.at(0));
  ASSERT_EQ(because.find("why")->items.size(), 1U);
  EXPECT_EQ(because.find("why")->items.at(0).find("code")->text, "delayed");
}

TEST_P(WhyTest, AWorkflowSleepsWaitsForASignalAndForAChild) {
  const Execution run = start();
  Turn first = turn(claim_turn());
  ask_until(first, Event::Kind::sleep, now() + 1h);
  ask_until(first, Event::Kind::wait_signal, now() + 2h, "approve");
  Submission child = Task("part").kind(Kind::workflow).queue("flows");
  child.execution.idempotency_key = "child";
  child.execution.identity = workflow_identity("default", "child");
  const Event asked = command(first, Event::Kind::child, "part");
  first.starts.push_back({asked.step, child});
  commit(first);
  EXPECT_EQ(why(run.id).state, "suspended");
  EXPECT_EQ(codes(run.id), (Codes{"waits_for_child", "sleeps", "waits_for_signal"}));
  EXPECT_EQ(member(run.id, "workflow_id"), "child");
  const Json signal = parse_json(why(run.id).because.at(2));
  EXPECT_EQ(signal.find("name")->text, "approve");
  EXPECT_EQ(signal.find("until")->text, format_time(now() + 2h));
}

TEST_P(WhyTest, AStuckWorkflowSaysWhatItsCodeDidWrong) {
  const Execution run = start();
  Turn first = turn(claim_turn());
  first.end = Turn::Stuck{{"NonDeterminism", "step 1: expected task 'a', found task 'b'"}};
  commit(first);
  EXPECT_EQ(codes(run.id), Codes{"stuck"});
  EXPECT_NE(why(run.id).sentences.at(0).find("expected task 'a'"), std::string::npos);
}

TEST_P(WhyTest, AStuckTurnThatKilledThreeWorkersSaysSo) {
  const Execution run = start();
  for (int i = 0; i < 3; ++i) {
    claim_turn();
    clock_.advance(60s);
    store().sweep(100);
  }
  EXPECT_EQ(codes(run.id), Codes{"stuck"});
  EXPECT_NE(why(run.id).sentences.at(0).find("WorkerLost"), std::string::npos);
}

TEST_P(WhyTest, ATurnIsLeasedLikeATask) {
  const Execution run = start();
  claim_turn();
  EXPECT_EQ(codes(run.id), Codes{"leased"});
}

}  // namespace
}  // namespace hapax
