#include "cli/top_frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/table.h"
#include "cli/unclaimed_report.h"

namespace hapax {

namespace {

double seconds_between(const TopSample& before, const TopSample& now) {
  return std::max(0.001, static_cast<double>((now.at - before.at).count()) / 1000);
}

std::string signed_rate(std::int64_t change, double seconds) {
  const double rate = static_cast<double>(change) / seconds;
  return change == 0 ? "·" : fmt::format("{:+.0f}", rate);
}

const QueueView* find(const TopSample& sample, const std::string& name) {
  const auto found =
      std::find_if(sample.queues.begin(), sample.queues.end(), [&](const QueueView& q) { return q.name == name; });
  return found == sample.queues.end() ? nullptr : &*found;
}

std::string head(const TopFrame& frame, const TopSample& now, const std::optional<TopSample>& before,
                 const Paint& paint) {
  std::int64_t pending = 0, running = 0;
  for (const QueueView& queue : now.queues) {
    pending += queue.count.pending;
    running += queue.count.running;
  }
  constexpr std::string_view kName = "hapax top";
  const std::string where = fmt::format("  {}  namespace {}  {}", frame.url, frame.name_space, format_time(now.at));
  std::string text = fmt::format("{} pending, {} running", pending, running);
  if (now.counters && before && before->counters) {
    const double seconds = seconds_between(*before, now);
    const auto rate = [&](std::int64_t EngineCounters::* counter) {
      return static_cast<double>((*now.counters).*counter - (*before->counters).*counter) / seconds;
    };
    text += fmt::format("; per second: {:.0f} submitted, {:.0f} deduplicated, {:.0f} completed, {:.0f} failed attempts",
                        rate(&EngineCounters::submitted), rate(&EngineCounters::deduplicated),
                        rate(&EngineCounters::completed), rate(&EngineCounters::failed_attempts));
  }
  if (now.counters) text += fmt::format("; {} workers wait", now.counters->waiting_claims);
  return fmt::format("{}{}\n{}\n\n", paint(Colour::bold, kName),
                     shorten(where, frame.width - std::min(frame.width, kName.size())), shorten(text, frame.width));
}

std::string queues(const TopFrame& frame, const TopSample& now, const std::optional<TopSample>& before,
                   const Paint& paint, std::size_t most) {
  Table table({"queue", ">pending", ">change/s", ">running", ">oldest waits", "state"});
  std::vector<const QueueView*> shown;
  for (const QueueView& queue : now.queues) shown.push_back(&queue);
  const auto open = [](const QueueView* q) { return q->count.pending + q->count.running; };
  std::sort(shown.begin(), shown.end(),
            [&](const auto* a, const auto* b) { return open(a) != open(b) ? open(a) > open(b) : a->name < b->name; });
  const std::size_t left_out = shown.size() > most ? shown.size() - most : 0;
  shown.resize(shown.size() - left_out);
  for (const QueueView* queue : shown) {
    const QueueView* earlier = before ? find(*before, queue->name) : nullptr;
    const auto& oldest = queue->count.oldest_run_at;
    const bool paused = queue->settings.paused.value_or(false);
    table.add({queue->name, std::to_string(queue->count.pending),
               earlier ? signed_rate(queue->count.pending - earlier->count.pending, seconds_between(*before, now)) : "",
               std::to_string(queue->count.running), oldest && *oldest < now.at ? format_age(now.at - *oldest) : "",
               Cell(paused ? "paused" : "", Colour::yellow)});
  }
  std::string text = table.render(paint, frame.width);
  if (left_out > 0) text += fmt::format("and {} more\n", left_out);
  return text;
}

std::string running(const TopFrame& frame, const TopSample& now, const Paint& paint, std::size_t most) {
  if (now.running.empty()) return {};
  Table table({"running", "type", "queue", ">for", ">attempt", "worker"});
  for (std::size_t i = 0; i < std::min(most, now.running.size()); ++i) {
    const Execution& task = now.running[i];
    table.add({task.id.to_string(), task.type, task.queue, task.started_at ? format_age(now.at - *task.started_at) : "",
               fmt::format("{}/{}", task.attempt, task.attempt_limit), task.worker});
  }
  return "\n" + table.render(paint, frame.width);
}

std::string failures(const TopFrame& frame, const TopSample& now, const Paint& paint, std::size_t most) {
  if (now.failures.empty()) return "\nno failures\n";
  Table table({"failed", "type", ">ago", ">attempts", "error"});
  for (std::size_t i = 0; i < std::min(most, now.failures.size()); ++i) {
    const Execution& task = now.failures[i];
    table.add({task.id.to_string(), task.type, task.finished_at ? format_age(now.at - *task.finished_at) : "",
               std::to_string(task.attempt),
               Cell(task.error ? fmt::format("{}: {}", task.error->type, task.error->message) : "", Colour::red)});
  }
  return "\n" + table.render(paint, frame.width);
}

std::string unclaimed(const TopFrame& frame, const TopSample& now, const Paint& paint, std::size_t most) {
  if (now.unclaimed.empty()) return {};
  const std::span shown = std::span(now.unclaimed).first(std::min(most, now.unclaimed.size()));
  std::string text = "\n" + unclaimed_table(shown, now.at).render(paint, frame.width);
  if (now.unclaimed.size() > most) text += fmt::format("and {} more\n", now.unclaimed.size() - most);
  return text;
}

}  // namespace

std::string draw_top(const TopFrame& frame, const TopSample& now, const std::optional<TopSample>& before,
                     const Paint& paint) {
  constexpr std::size_t kFixedLines = 10;  // the head, headings and blank lines
  constexpr std::size_t kMostUnclaimed = 5;
  const std::size_t named = std::min(now.unclaimed.size(), kMostUnclaimed);
  const std::size_t fixed = kFixedLines + (named > 0 ? named + 3 : 0);
  const std::size_t room = frame.height > fixed + 3 ? frame.height - fixed : 3;
  const std::size_t for_queues =
      std::min(std::max<std::size_t>(now.queues.size(), 1), std::max<std::size_t>(1, room / 2));
  const std::size_t rest = room - std::min(room - 2, for_queues);
  return head(frame, now, before, paint) + queues(frame, now, before, paint, for_queues) +
         unclaimed(frame, now, paint, kMostUnclaimed) + running(frame, now, paint, std::max<std::size_t>(1, rest / 2)) +
         failures(frame, now, paint, std::max<std::size_t>(1, rest - rest / 2));
}

}  // namespace hapax
