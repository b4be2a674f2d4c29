#include "cli/timeline.h"

#include <gtest/gtest.h>

namespace hapax {
namespace {

using namespace std::chrono_literals;

const Time kNoon = from_ms(1'769'515'200'000);

Execution run(Status status = Status::suspended) {
  Execution run;
  run.kind = Kind::workflow;
  run.type = "process_order";
  run.idempotency_key = "order-456";
  run.input = R"({"order":456})";
  run.created_at = kNoon;
  run.status = status;
  run.run.steps = 3;
  return run;
}

Event event(std::int64_t no, Event::Kind kind, Duration after, std::int32_t step = 0, std::string name = "") {
  Event event;
  event.no = no;
  event.at = kNoon + after;
  event.kind = kind;
  event.step = step;
  event.name = std::move(name);
  return event;
}

Event closed(std::int64_t no, Duration after, std::int32_t step, Status status) {
  Event closed = event(no, Event::Kind::closed, after, step);
  closed.status = status;
  if (status == Status::completed) closed.value = "\"ch_1\"";
  if (status == Status::failed) closed.error = AttemptError{"Declined", "no funds"};
  return closed;
}

std::string lines(const Execution& run, const std::vector<Event>& events) {
  return render_timeline(run, events, {}, kNoon + 5min, Paint(false));
}

TEST(Timeline, AStepAndWhatCameOfItAreOneLine) {
  EXPECT_EQ(lines(run(), {event(1, Event::Kind::task, 20ms, 1, "charge"), closed(2, 380ms, 1, Status::completed),
                          event(3, Event::Kind::wait_signal, 400ms, 2, "approve")}),
            "order-456  process_order  suspended  since 5m, 3 steps, 3 events\n"
            "run 00000000-0000-0000-0000-000000000000\n"
            "\n"
            "step  time          what                     outcome     took  detail\n"
            "      12:00:00.000  workflow process_order   started           {\"order\":456}\n"
            "   1  12:00:00.020  task charge              completed  360ms  \"ch_1\"\n"
            "   2  12:00:00.400  wait for signal approve  waiting       4m\n");
}

TEST(Timeline, AStepSaysWhatItsTaskHasTried) {
  Execution task;
  task.attempt = 2;
  task.status = Status::pending;
  task.failed_attempts.push_back({});
  task.failed_attempts.back().error = {"Timeout", "no answer"};
  const std::string text =
      render_timeline(run(), {event(1, Event::Kind::task, 20ms, 1, "charge")}, {{1, task}}, kNoon + 5min, Paint(false));
  EXPECT_NE(text.find("pending, attempt 2 of 3, last error Timeout: no answer"), std::string::npos) << text;
}

TEST(Timeline, AStepForWhichATaskOfBeforeStandsSaysSo) {
  Event shared = event(1, Event::Kind::task, 20ms, 1, "charge");
  shared.execution = ExecutionId();
  shared.status = Status::completed;
  EXPECT_NE(lines(run(), {shared}).find("task charge, shared with an earlier one (completed, 00000000-"),
            std::string::npos);
}

TEST(Timeline, EveryKindOfEventHasItsWords) {
  std::vector<Event> events{event(1, Event::Kind::side_effect, 1ms, 1, "uuid"),
                            event(2, Event::Kind::version, 1ms, 2, "tax"),
                            event(3, Event::Kind::sleep, 1ms, 3),
                            event(4, Event::Kind::fired, 1s, 3),
                            event(5, Event::Kind::wait_signal, 1s, 4, "go"),
                            event(6, Event::Kind::signal, 2s, 4, "go"),
                            event(7, Event::Kind::wait_signal, 2s, 5, "late"),
                            event(8, Event::Kind::fired, 3s, 5),
                            event(9, Event::Kind::child, 3s, 6, "ship"),
                            closed(10, 4s, 6, Status::failed),
                            event(11, Event::Kind::signal, 4s, 0, "early"),
                            event(12, Event::Kind::stuck, 4s),
                            event(13, Event::Kind::resumed, 4s),
                            event(14, Event::Kind::forked, 4s, 2),
                            event(15, Event::Kind::continued, 4s)};
  events[0].value = "7";
  events[2].until = kNoon + 1s;
  events[8].key = "parcel-1";
  const std::string text = lines(run(Status::completed), events);
  for (const char* words :
       {"side effect uuid", "recorded", "version of tax", "sleep until 2026-01-27T12:00:01.000Z", "over", "received",
        "timed out", "child ship parcel-1", "Declined: no funds", "signal early kept", "stuck: the code does not match",
        "resumed", "forked at step 2", "continued as new"}) {
    EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << text;
  }
}

TEST(Timeline, AClosedRunSaysHowItEndedAndWhatWasLeftOpen) {
  Execution failed = run(Status::failed);
  failed.finished_at = kNoon + 26h;
  failed.error = AttemptError{"Boom", "it broke"};
  const std::string text = lines(failed, {event(1, Event::Kind::task, 20ms, 1, "charge")});
  EXPECT_NE(text.find("failed  took 26h"), std::string::npos) << text;
  EXPECT_NE(text.find("2026-01-27 12:00:00.020  task charge             open"), std::string::npos) << text;
  EXPECT_NE(text.find("2026-01-28 14:00:00.000  workflow failed"), std::string::npos) << text;
  EXPECT_NE(text.find("Boom: it broke"), std::string::npos) << text;
}

}  // namespace
}  // namespace hapax
