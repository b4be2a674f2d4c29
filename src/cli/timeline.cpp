#include "cli/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/table.h"

namespace hapax {

namespace {

// The time of day, with the date if the run lasts longer than a day.
std::string clock_time(Time at, bool with_date) {
  const std::string text = format_time(at);  // 2026-01-27T12:00:00.000Z
  return with_date ? text.substr(0, 10) + " " + text.substr(11, 12) : text.substr(11, 12);
}

// By an identity that they share: then this step ran nothing of its own.
std::string describe_before(const Event& event) {
  if (!is_deduplicated(event)) return "";
  return fmt::format(", shared with an earlier one ({}, {})", to_string(*event.status),
                     event.execution ? event.execution->to_string() : "");
}

std::string describe_command(const Event& event) {
  switch (event.kind) {
    case Event::Kind::task: return "task " + event.name + describe_before(event);
    case Event::Kind::sleep: return "sleep until " + format_time(event.until.value_or(event.at));
    case Event::Kind::wait_signal: return "wait for signal " + event.name;
    case Event::Kind::child:
      return fmt::format("child {} {}{}", event.name, event.key.value_or(""), describe_before(event));
    case Event::Kind::side_effect: return "side effect " + event.name;
    case Event::Kind::version: return "version of " + event.name;
    case Event::Kind::cancel_step: return fmt::format("cancel step {}", cancelled_step(event));
    case Event::Kind::publish: return "publish " + event.name;
    case Event::Kind::send_signal: return fmt::format("signal {} to {}", event.name, event.key.value_or(""));
    default: return std::string(to_string(event.kind));
  }
}

std::string describe_error(const AttemptError& error) { return fmt::format("{}: {}", error.type, error.message); }

std::string detail_of(const Event& event) {
  if (event.error) return describe_error(*event.error);
  return event.value.value_or("");
}

// The outcome of a step: a word with its colour.
Cell describe_outcome(const Event& command, const Event& outcome) {
  if (outcome.kind == Event::Kind::closed) {
    const Status status = outcome.status.value_or(Status::completed);
    return Cell(std::string(to_string(status)), colour_of(status));
  }
  if (outcome.kind == Event::Kind::signal) return Cell("received", Colour::green);
  return command.kind == Event::Kind::wait_signal ? Cell("timed out", Colour::red) : Cell("over", Colour::green);
}

// A change of the run itself, on its own line.
Cell describe_run_event(const Event& event) {
  switch (event.kind) {
    case Event::Kind::completed: return Cell("workflow completed", Colour::green);
    case Event::Kind::failed: return Cell("workflow failed", Colour::red);
    case Event::Kind::cancelled: return Cell("workflow cancelled", Colour::yellow);
    case Event::Kind::timed_out: return Cell("workflow timed out", Colour::red);
    case Event::Kind::stuck:
      return event.error && event.error->type == kWorkerLost ? Cell("stuck: its workers died", Colour::red)
                                                             : Cell("stuck: the code does not match", Colour::red);
    case Event::Kind::cancel_requested: return Cell("cancel requested", Colour::yellow);
    case Event::Kind::resumed: return Cell("resumed", Colour::blue);
    case Event::Kind::forked: return Cell(fmt::format("forked at step {}", event.step), Colour::blue);
    case Event::Kind::continued: return Cell("continued as new", Colour::blue);
    case Event::Kind::signal: return Cell("signal " + event.name + " kept");
    default: return Cell(std::string(to_string(event.kind)));
  }
}

std::string run_event_detail(const Event& event) {
  if (event.kind == Event::Kind::forked && event.execution) return "from " + event.execution->to_string();
  if (event.kind == Event::Kind::continued && event.execution) return "as " + event.execution->to_string();
  return detail_of(event);
}

// Whether the history itself says how the run ended.
bool ends_run(const std::vector<Event>& events) {
  if (events.empty()) return false;
  const Event::Kind kind = events.back().kind;
  return kind == Event::Kind::continued || kind == Event::Kind::completed || kind == Event::Kind::failed ||
         kind == Event::Kind::cancelled || kind == Event::Kind::timed_out;
}

using Outcomes = std::map<std::int32_t, const Event*>;

// The latest outcome of each step: a resumed run has tried some of them again.
Outcomes outcomes_of(const std::vector<Event>& events) {
  Outcomes outcomes;
  for (const Event& event : events) {
    if (is_outcome(event)) outcomes[event.step] = &event;
  }
  return outcomes;
}

// Which task it is, how many attempts it took, and why the last of them failed.
std::string describe_attempts(const StepExecutions& steps, std::int32_t step, bool is_open) {
  const auto found = steps.find(step);
  if (found == steps.end()) return "";
  const Execution& task = found->second;
  const bool has_failed = !task.failed_attempts.empty();
  if (task.kind == Kind::workflow || (!is_open && !has_failed)) return "";
  std::string text = fmt::format("{}, {}, attempt {} of {}", task.id.to_string(), to_string(task.status), task.attempt,
                                 std::max(task.max_attempts, task.attempt_limit));
  if (has_failed) text += ", last error " + describe_error(task.failed_attempts.back().error);
  return text;
}

// Both, if there are both.
std::string joined(std::string text, const std::string& more) {
  return text.empty() || more.empty() ? text + more : text + " (" + more + ")";
}

std::string summary(const Execution& run, std::size_t events, Time now, const Paint& paint) {
  const Time end = run.finished_at.value_or(now);
  return fmt::format("{}  {}  {}  {} {}, {} steps, {} events\nrun {}\n\n",
                     paint(Colour::bold, printable(run.idempotency_key.value_or(""))), run.type,
                     paint(colour_of(run.status), to_string(run.status)), run.finished_at ? "took" : "since",
                     format_age(end - run.created_at), run.run.steps, events, run.id.to_string());
}

}  // namespace

std::string render_timeline(const Execution& run, const std::vector<Event>& events, const StepExecutions& steps,
                            Time now, const Paint& paint, std::optional<std::size_t> width) {
  const Outcomes outcomes = outcomes_of(events);
  const Time last = run.finished_at.value_or(events.empty() ? now : events.back().at);
  const bool with_date = format_time(run.created_at).substr(0, 10) != format_time(last).substr(0, 10);
  Table table({">step", "time", "what", "outcome", ">took", "detail"});
  table.add({"", clock_time(run.created_at, with_date), Cell("workflow " + run.type), "started", "", run.input});
  for (const Event& event : events) {
    const std::string at = clock_time(event.at, with_date);
    if (is_outcome(event)) continue;
    if (!is_command(event.kind)) {
      table.add({"", at, describe_run_event(event), "", "", run_event_detail(event)});
      continue;
    }
    const std::string step = std::to_string(event.step), what = describe_command(event);
    const auto found = outcomes.find(event.step);
    if (found != outcomes.end()) {
      table.add({step, at, what, describe_outcome(event, *found->second), format_age(found->second->at - event.at),
                 joined(detail_of(*found->second), describe_attempts(steps, event.step, false))});
    } else if (event.kind == Event::Kind::side_effect || event.kind == Event::Kind::version ||
               event.kind == Event::Kind::publish || event.kind == Event::Kind::cancel_step) {
      table.add({step, at, what, "recorded", "", detail_of(event)});
    } else if (is_closed(run.status)) {
      table.add({step, at, what, "open", "", ""});
    } else {
      table.add({step, at, what, Cell("waiting", Colour::blue), format_age(now - event.at),
                 describe_attempts(steps, event.step, true)});
    }
  }
  if (is_closed(run.status) && run.finished_at && !ends_run(events)) {
    table.add({"", clock_time(*run.finished_at, with_date),
               Cell(fmt::format("workflow {}", to_string(run.status)), colour_of(run.status)), "", "",
               run.error ? describe_error(*run.error) : run.result.value_or("")});
  }
  return summary(run, events.size(), now, paint) + table.render(paint, width);
}

}  // namespace hapax
