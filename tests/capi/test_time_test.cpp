// The clock of tests: time passes when it is told to.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "capi/capi_app.h"

namespace hapax::capi_testing {

namespace {

constexpr std::int64_t kDayMs = 24LL * 3600 * 1000;

struct TestProgram {
  explicit TestProgram(const char* options = nullptr) {
    char* error = nullptr;
    app = hapax_test_open(options, &error);
    EXPECT_NE(app, nullptr) << (error == nullptr ? "" : error);
    queue = hapax_queue_new(app);
  }
  ~TestProgram() {
    hapax_close(app);
    hapax_queue_free(queue);
  }
  TestProgram(const TestProgram&) = delete;
  TestProgram& operator=(const TestProgram&) = delete;

  Answer call(const std::string& method, const std::string& target, const std::string& body = {}) const {
    hapax_completion completion;
    hapax_call_wait(app, method.c_str(), target.c_str(), nullptr, body.data(), body.size(), -1, &completion);
    return take(completion);
  }

  hapax_app* app = nullptr;
  hapax_queue* queue = nullptr;
};

// Works on another thread: a task returns its creation, a workflow "year" sleeps a month twelve times.
class Working {
 public:
  explicit Working(const TestProgram& program)
      : queue_(program.queue), worker_(hapax_worker_new(program.app, program.queue, nullptr)) {
    hapax_worker_credit(worker_, 10, 10);
    thread_ = std::thread([this] { run(); });
  }
  ~Working() {
    hapax_worker_drain(worker_);
    thread_.join();
  }
  Working(const Working&) = delete;
  Working& operator=(const Working&) = delete;

  std::atomic<int> tasks = 0, turns = 0;

 private:
  void run() {
    for (;;) {
      if (!is_readable(hapax_queue_fd(queue_), 60'000)) return;
      hapax_completion completion;
      if (hapax_queue_drain(queue_, &completion, 1) != 1) continue;
      const Answer next = take(completion);
      if (next.kind == HAPAX_WORKER_ENDED) return;
      if (next.kind == HAPAX_TASK) {
        ++tasks;
        hapax_worker_credit(worker_, 1, 0);
        hapax_worker_finish(worker_, next.token, "{}", 2);
      }
      if (next.kind == HAPAX_TURN) turn(next);
    }
  }

  void turn(const Answer& claim) {
    ++turns;
    const Json document = claim.json();
    const Json& events = *document.find("events");
    const auto steps = document.at("/run/steps")->as_int().value();
    const std::string seen =
        events.items.empty() ? document.at("/run/seen")->text : events.items.back().find("no")->text;
    std::string turn = R"({"seen":)" + seen + R"(,"end":{"kind":"completed","result":)" + std::to_string(steps) + "}}";
    if (steps < 12) {
      const std::string month = (steps < 9 ? "0" : "") + std::to_string(steps + 1);
      turn = R"({"seen":)" + seen + R"(,"commands":[{"step":)" + std::to_string(steps + 1) +
             R"(,"kind":"sleep","until":"2026-)" + month + R"(-28T00:00:00Z"}],"end":{"kind":"suspended"}})";
    }
    hapax_worker_credit(worker_, 0, 1);
    hapax_worker_turn(worker_, claim.token, turn.data(), turn.size());
  }

  hapax_queue* queue_;
  hapax_worker* worker_;
  std::thread thread_;
};

TEST(CapiTestTime, AYearOfAWorkflowPassesAtOnce) {
  const TestProgram program;
  EXPECT_EQ(program.call("POST", "/v1/workflows", R"({"type":"year","workflow_id":"w"})").status, 201);
  const Working working(program);
  hapax_test_advance(program.app, 0);
  EXPECT_EQ(working.turns, 1);
  hapax_test_advance(program.app, 45 * kDayMs);
  EXPECT_EQ(working.turns, 2);
  EXPECT_EQ(program.call("GET", "/v1/workflows/w").text("/status"), "suspended");
  hapax_test_advance(program.app, 365 * kDayMs);
  const Answer end = program.call("GET", "/v1/workflows/w/result");
  EXPECT_EQ(end.status, 200) << end.body;
  EXPECT_EQ(end.text("/result"), "12");
  EXPECT_EQ(working.turns, 13);
}

TEST(CapiTestTime, DelaysAndSchedulesComeAtTheirTime) {
  const TestProgram program(R"({"starts_at":"2030-05-01T00:00:00Z"})");
  const Answer created = program.call("POST", "/v1/tasks", R"({"type":"t","delay":"3d"})");
  EXPECT_EQ(created.text("/execution/created_at").substr(0, 10), "2030-05-01");
  EXPECT_EQ(program
                .call("PUT", "/v1/activities/daily",
                      R"({"tasks":[{"type":"report"}],"trigger":{"cron":{"expression":"0 9 * * *"}}})")
                .status,
            201);
  const Working working(program);
  hapax_test_advance(program.app, 2 * kDayMs);
  EXPECT_EQ(working.tasks, 2);  // two reports
  hapax_test_advance(program.app, 2 * kDayMs);
  EXPECT_EQ(working.tasks, 5);
  const Answer task = program.call("GET", "/v1/tasks/" + created.text("/execution/id"));
  EXPECT_EQ(task.text("/status"), "completed");
  EXPECT_EQ(task.text("/completed_at").substr(0, 10), "2030-05-04");
}

TEST(CapiTestTime, WithoutAWorkerTimePassesAllTheSame) {
  const TestProgram program;
  program.call("POST", "/v1/tasks", R"({"type":"t"})");
  hapax_test_advance(program.app, kDayMs);
  EXPECT_EQ(program.call("POST", "/v1/tasks", R"({"type":"t"})").text("/execution/created_at").substr(0, 10),
            "2026-01-02");
  hapax_test_advance(program.app, -5);
}

TEST(CapiTestTime, WrongHandlesAndOptionsAreAnswered) {
  char* error = nullptr;
  EXPECT_EQ(hapax_test_open(R"({"starts_at":"soon"})", &error), nullptr);
  EXPECT_NE(std::string(error).find("/starts_at"), std::string::npos);
  EXPECT_EQ(hapax_open("memory:", R"({"starts_at":"2026-01-01T00:00:00Z"})", nullptr), nullptr);
  hapax_test_advance(nullptr, 1);
  const CapiApp ordinary;
  hapax_test_advance(ordinary.get(), 1);
}

}  // namespace

}  // namespace hapax::capi_testing
