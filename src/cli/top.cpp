#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <ostream>

#include "cli/command.h"
#include "cli/live_screen.h"
#include "cli/metrics_page.h"
#include "cli/table.h"
#include "cli/target.h"
#include "cli/top_frame.h"
#include "wire/write_answer.h"

namespace hapax {

namespace {

struct TopFlags {
  TargetFlags target;
  bool once = false;
  std::string every = "1s";
};

std::vector<Execution> latest(const Target& target, Status status, std::int32_t limit) {
  ListFilter filter;
  filter.name_space = target.name_space;
  filter.status = status;
  filter.limit = limit;
  return target.engine->list(filter);
}

TopSample look(const Target& target) {
  constexpr std::int32_t kMost = 20;
  TopSample sample;
  sample.queues = target.engine->queues(target.name_space);
  sample.running = latest(target, Status::running, kMost);
  sample.failures = latest(target, Status::failed, kMost);
  for (Execution& task : latest(target, Status::timed_out, kMost)) sample.failures.push_back(std::move(task));
  std::sort(sample.failures.begin(), sample.failures.end(),
            [](const Execution& a, const Execution& b) { return a.finished_at > b.finished_at; });
  sample.counters = fetch_counters(target);
  sample.at = SystemClock().now();
  sample.unclaimed = find_unclaimed(*target.engine, target.name_space, sample.queues, sample.at);
  return sample;
}

void print_json(std::ostream& out, const TopSample& sample) {
  JsonWriter json;
  json.begin_object().key("at").string(format_time(sample.at)).key("queues").begin_array();
  for (const QueueView& queue : sample.queues) wire::write_queue(json, queue);
  json.end_array().key("running").begin_array();
  for (const Execution& task : sample.running) wire::write_execution(json, task);
  json.end_array().key("failures").begin_array();
  for (const Execution& task : sample.failures) wire::write_execution(json, task);
  json.end_array().key("unclaimed").begin_array();
  for (const Unclaimed& each : sample.unclaimed) {
    json.begin_object().key("queue").string(each.queue).key("type").string(each.type);
    json.key("kind").string(each.kind == Kind::workflow ? "workflow" : "task");
    json.key("example").string(each.example.to_string()).key("run_at").string(format_time(each.run_at)).end_object();
  }
  out << json.end_array().end_object().text() << std::endl;
}

// Errors do not end the view: a restarted server comes back.
void run_live(const Target& target, Duration every, const Paint& paint) {
  LiveScreen screen;
  std::optional<TopSample> before;
  do {
    TopFrame frame{target.shown, target.name_space, terminal_width().value_or(100), terminal_height().value_or(40)};
    try {
      TopSample now = look(target);
      screen.show(draw_top(frame, now, before, paint));
      before = std::move(now);
    } catch (const Failure& failure) {
      screen.show(fmt::format("{}  {}\n\n{}\n", paint(Colour::bold, "hapax top"), target.shown,
                              paint(Colour::red, printable(failure.what()))));
    }
  } while (screen.wait(every));
}

int top(const Program& program, const TopFlags& flags) {
  const auto every = parse_duration(flags.every);
  if (!every || *every < Duration(100)) {
    throw CommandError(kUsage, fmt::format("--every must be a duration of at least 100ms, not \"{}\"", flags.every));
  }
  const Target target = flags.target.open(program);
  const Paint paint = Paint::of(program);
  if (flags.target.json()) {
    print_json(program.out, look(target));
  } else if (flags.once || !program.terminal) {
    const TopFrame frame{target.shown, target.name_space, program.terminal ? terminal_width().value_or(120) : 160, 60};
    program.out << draw_top(frame, look(target), {}, paint) << std::flush;
  } else {
    look(target);  // report a wrong address or token before taking the screen
    run_live(target, *every, paint);
  }
  return kOk;
}

}  // namespace

void add_top(CLI::App& app, const Program& program, Action& action) {
  auto* command = app.add_subcommand("top", "Watch queues, rates, running tasks and failures; q ends it");
  auto flags = std::make_shared<TopFlags>();
  command->add_flag("--once", flags->once, "Print one frame as plain text");
  command->add_option("--every", flags->every, "Refresh interval (default: 1s)")->type_name("DURATION");
  flags->target.add(*command);
  command->callback([&program, &action, flags] { action = [&program, flags] { return top(program, *flags); }; });
}

}  // namespace hapax
