// Workflows through the worker of the C ABI: turns, and quick steps within them.
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "capi/capi_app.h"
#include "capi/remote_place.h"

namespace hapax::capi_testing {

namespace {

constexpr int kSteps = 3;

// A program with one workflow, "chain": so many tasks "step" one after the other, each of which gets the result of the
// one before. It keeps its runs.
class Program {
 public:
  explicit Program(const std::string& url, const char* options = nullptr) : app(url) {
    worker = hapax_worker_new(app.get(), app.queue(), options);
    hapax_worker_credit(worker, 4, 4);
  }

  void start(const std::string& workflow_id) {
    const std::string body = R"({"type":"chain","workflow_id":")" + workflow_id + R"("})";
    EXPECT_EQ(app.call_wait("POST", "/v1/workflows", body).status, 201);
  }

  Answer result(const std::string& workflow_id) {
    return app.call_wait("GET", "/v1/workflows/" + workflow_id + "/result?wait=60s");
  }

  // Runs tasks and turns until a completion satisfies `stop`, which is not handled.
  template <class Stop>
  Answer run_until(Stop stop) {
    for (;;) {
      Answer next = app.next();
      if (stop(next)) return next;
      if (next.kind == HAPAX_TASK) run_task(next);
      if (next.kind == HAPAX_TURN) run_turn(next);
      if (next.kind == HAPAX_LEASE_LOST) ++lost;
    }
  }

  void run_until_closed(const std::string& workflow_id) {
    constexpr std::uint64_t kToken = 77;
    app.call(kToken, "GET", "/v1/workflows/" + workflow_id + "/result?wait=60s");
    run_until([](const Answer& next) { return next.kind == HAPAX_ANSWER && next.token == kToken; });
  }

  void run_task(const Answer& claim) {
    ++tasks;
    const auto number = claim.json().at("/execution/input")->as_int().value_or(-100);
    report(claim, R"({"result":)" + std::to_string(number + 1) + "}");
  }

  void report(const Answer& claim, const std::string& outcome) {
    hapax_worker_credit(worker, 1, 0);  // of a step within its turn it is one too many, which does no harm here
    hapax_worker_finish(worker, claim.token, outcome.data(), outcome.size());
  }

  // What the code asks for at this point: the history is the results so far.
  std::string turn_of(const Answer& claim) {
    const Json document = claim.json();
    const std::string run = claim.text("/execution/id");
    const auto seen = document.at("/run/seen")->as_int().value();
    if (seen == 0) results[run].clear();
    std::int64_t known = seen;
    for (const Json& event : document.find("events")->items) {
      known = event.find("no")->as_int().value();
      if (event.find("kind")->text == "closed") results[run].push_back(event.find("value")->text);
    }
    const std::size_t done = results[run].size();
    const std::string last = done == 0 ? "0" : results[run].back();
    std::string turn = R"({"seen":)" + std::to_string(known);
    if (done == kSteps) return turn + R"(,"end":{"kind":"completed","result":)" + last + "}}";
    const std::string step = std::to_string(done + 1);
    turn += R"(,"commands":[{"step":)" + step + R"(,"kind":"task","start":{"type":"step","input":)" + last + "}}]";
    if (waits) turn += R"(,"waits_for":)" + step;
    return turn + R"(,"end":{"kind":"suspended"}})";
  }

  void run_turn(const Answer& claim) {
    const Json document = claim.json();
    const bool again = document.find("continues") != nullptr;
    continued += again ? 1 : 0;
    if (!again) hapax_worker_credit(worker, 0, 1);
    const std::string turn = turn_of(claim);
    hapax_worker_turn(worker, claim.token, turn.data(), turn.size());
  }

  // The kinds of the events of a workflow's history.
  std::vector<std::string> history(const std::string& workflow_id) {
    std::vector<std::string> kinds;
    const Answer events = app.call_wait("GET", "/v1/workflows/" + workflow_id + "/history");
    const Json document = events.json();
    for (const Json& event : document.find("events")->items) kinds.push_back(event.find("kind")->text);
    return kinds;
  }

  CapiApp app;
  hapax_worker* worker = nullptr;
  bool waits = true;  // says which step the code waits for alone
  int tasks = 0, continued = 0, lost = 0;
  std::map<std::string, std::vector<std::string>> results;
};

const std::vector<std::string> kHistory{"task", "closed", "task", "closed", "task", "closed", "completed"};

TEST(CapiTurn, AWorkflowRunsStepByStep) {
  Program program("memory:");
  program.waits = false;
  program.start("w");
  program.run_until_closed("w");
  EXPECT_EQ(program.result("w").text("/result"), "3");
  EXPECT_EQ(program.history("w"), kHistory);
  EXPECT_EQ(program.tasks, kSteps);
  EXPECT_EQ(program.continued, 0);
}

TEST(CapiTurn, AServersWorkflowRuns) {
  const RemotePlace place;
  Program program(place.url());
  program.start("w");
  program.run_until_closed("w");
  EXPECT_EQ(program.result("w").text("/result"), "3");
  EXPECT_EQ(program.history("w"), kHistory);
}

TEST(CapiTurn, QuickStepsRunWithinTheTurn) {
  Program program("memory:");
  for (int i = 0; i < 20; ++i) {
    const std::string id = "w" + std::to_string(i);
    program.start(id);
    program.run_until_closed(id);
    EXPECT_EQ(program.result(id).text("/result"), "3");
    EXPECT_EQ(program.history(id), kHistory);
  }
  EXPECT_EQ(program.tasks, 20 * kSteps);
  EXPECT_EQ(program.continued, 20 * kSteps);
  EXPECT_EQ(program.lost, 0);
  const Answer steps = program.app.call_wait("GET", "/v1/tasks?type=step&status=completed&limit=1000");
  EXPECT_EQ(steps.json().find("executions")->items.size(), std::size_t{20 * kSteps});
}

TEST(CapiTurn, AStepThatTakesLongerIsATaskLikeAnyOther) {
  Program program("memory:");
  program.start("w");
  const Answer slow = program.run_until([](const Answer& next) { return next.kind == HAPAX_TASK; });
  const std::string id = slow.text("/execution/id");
  while (program.app.call_wait("GET", "/v1/tasks/" + id).status == 404) {}  // until it is committed as running
  EXPECT_EQ(program.app.call_wait("GET", "/v1/tasks/" + id).text("/status"), "running");
  EXPECT_EQ(program.app.call_wait("GET", "/v1/workflows/w").text("/status"), "suspended");
  program.run_task(slow);
  program.run_until_closed("w");
  EXPECT_EQ(program.result("w").text("/result"), "3");
  EXPECT_EQ(program.history("w"), kHistory);
  EXPECT_EQ(program.continued, kSteps - 1);
}

TEST(CapiTurn, AStepThatFailsIsTriedAgain) {
  Program program("memory:");
  EXPECT_EQ(
      program.app
          .call_wait("PUT", "/v1/types/step", R"({"identity":"always_unique","retry":{"initial":"1ms","max":"1ms"}})")
          .status,
      200);
  program.start("w");
  const Answer first = program.run_until([](const Answer& next) { return next.kind == HAPAX_TASK; });
  program.report(first, R"({"error":{"message":"not now"}})");
  program.run_until_closed("w");
  EXPECT_EQ(program.result("w").text("/result"), "3");
  EXPECT_EQ(program.history("w"), kHistory);
  const Answer step = program.app.call_wait("GET", "/v1/tasks/" + first.text("/execution/id"));
  EXPECT_EQ(step.json().find("attempt")->as_int(), 2);
}

TEST(CapiTurn, AStepThatIsGivenBackGoesTheOrdinaryWay) {
  Program program("memory:");
  program.start("w");
  const Answer first = program.run_until([](const Answer& next) { return next.kind == HAPAX_TASK; });
  hapax_worker_finish(program.worker, first.token, nullptr, 0);
  program.run_until_closed("w");
  EXPECT_EQ(program.result("w").text("/result"), "3");
  EXPECT_EQ(program.history("w"), kHistory);
}

TEST(CapiTurn, AProgramThatHasNotKeptTheRunGivesTheTurnBack) {
  Program program("memory:");
  program.start("w");
  const Answer again = program.run_until(
      [](const Answer& next) { return next.kind == HAPAX_TURN && next.json().find("continues") != nullptr; });
  hapax_worker_turn(program.worker, again.token, nullptr, 0);
  const Answer claim = program.run_until([](const Answer& next) { return next.kind == HAPAX_TURN; });
  EXPECT_EQ(claim.json().find("continues"), nullptr);
  EXPECT_EQ(program.history("w"), (std::vector<std::string>{"task", "closed"}));  // the step is not lost
  program.results[claim.text("/execution/id")] = {"1"};                           // as a replay would find it
  program.run_turn(claim);
  program.run_until_closed("w");
  EXPECT_EQ(program.result("w").text("/result"), "3");
  EXPECT_EQ(program.tasks, kSteps);
}

TEST(CapiTurn, AWorkflowThatIsCancelledInItsTurnIsLost) {
  Program program("memory:");
  program.start("w");
  const Answer step = program.run_until([](const Answer& next) { return next.kind == HAPAX_TASK; });
  EXPECT_EQ(program.app.call_wait("POST", "/v1/workflows/w/cancel", "", R"({"Idempotency-Key":"c"})").status, 200);
  program.run_task(step);
  program.run_until([](const Answer& next) { return next.kind == HAPAX_LEASE_LOST; });
  EXPECT_EQ(program.result("w").text("/status"), "cancelled");
  hapax_worker_drain(program.worker);
  program.run_until([](const Answer& next) { return next.kind == HAPAX_WORKER_ENDED; });
}

TEST(CapiTurn, ABadTurnIsRefusedWithItsPlace) {
  Program program("memory:");
  program.start("w");
  const Answer claim = program.run_until([](const Answer& next) { return next.kind == HAPAX_TURN; });
  const std::map<std::string, std::string> wrong{
      {R"({"seen":0,"end":{"kind":"over"}})", "/end/kind"},
      {R"({"seen":0,"commands":[{"step":1,"kind":"sleep"}],"end":{"kind":"suspended"}})", "/commands/0/until"},
      {R"({"seen":0,"waits_for":"1","end":{"kind":"suspended"}})", "/waits_for"},
      {R"({"end":{"kind":"suspended"}})", "/seen"}};
  for (const auto& [turn, pointer] : wrong) {
    hapax_worker_turn(program.worker, claim.token, turn.data(), turn.size());
    const Answer refused = program.app.next();
    EXPECT_EQ(refused.kind, HAPAX_REFUSED);
    EXPECT_EQ(refused.status, 400);
    EXPECT_EQ(refused.text("/pointer"), pointer) << refused.body;
  }
  program.run_turn(claim);
  program.run_until_closed("w");
  EXPECT_EQ(program.result("w").text("/result"), "3");
}

TEST(CapiTurn, ClosingInTheMiddleOfATurnLosesNothing) {
  const RemotePlace place;  // outlives the program
  {
    Program program(place.url());
    program.start("w");
    program.run_until([](const Answer& next) { return next.kind == HAPAX_TASK; });
  }
  CapiApp other(place.url());
  EXPECT_EQ(other.call_wait("GET", "/v1/tasks?type=step").text("/executions/0/status"), "running");
}

TEST(CapiTurn, ClosingWithAStepWithinItsTurnEndsQuietly) {
  Program program("memory:");
  program.start("w");
  program.run_until([](const Answer& next) { return next.kind == HAPAX_TASK; });
}

}  // namespace

}  // namespace hapax::capi_testing
