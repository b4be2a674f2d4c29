#include "store/rules/why.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/checksum.h"
#include "core/json_writer.h"
#include "core/transition.h"
#include "store/rules/workers.h"

namespace hapax::rules {

namespace {

constexpr std::int32_t kMostSteps = 10;     // that an answer names
constexpr std::int32_t kMostHolders = 10;   // of a concurrency key
constexpr std::int32_t kMostClaimers = 10;  // of a queue
constexpr Duration kPaceSpan = std::chrono::minutes(1);
constexpr Duration kClaimSpan = std::chrono::minutes(1);

std::string moment(Time time) { return format_time(time); }

void write_error(JsonWriter& out, const AttemptError& error) {
  out.key("error").begin_object();
  out.key("type").string(error.type).key("message").string(error.message).end_object();
}

class Explainer {
 public:
  Explainer(WhyRows& rows, const Execution& execution, bool with_steps)
      : rows_(rows), e_(execution), with_steps_(with_steps) {
    why_.state = to_string(e_.status);
  }

  Why explain() {
    if (is_closed(e_.status)) {
      closed();
    } else if (e_.status == Status::running) {
      running();
    } else if (e_.status == Status::suspended) {
      suspended();
    } else {
      pending();
    }
    return std::move(why_);
  }

 private:
  template <class Members>
  void add(std::string_view code, std::string sentence, Members members) {
    JsonWriter out;
    out.begin_object().key("code").string(code);
    members(out);
    why_.because.push_back(out.end_object().take());
    why_.sentences.push_back(std::move(sentence));
  }

  const QueuePolicy& policy() { return rows_.policies().of(e_.name_space, e_.queue); }

  // ---- closed

  void closed() {
    std::string how(to_string(e_.status));
    std::replace(how.begin(), how.end(), '_', ' ');
    const std::string when = moment(e_.finished_at.value_or(e_.created_at));
    const bool has_error = e_.error && e_.status != Status::completed;
    std::string sentence = fmt::format("It {} at {}", e_.status == Status::cancelled ? "was cancelled" : how, when);
    if (e_.run.continued_as) sentence += fmt::format(" and continues as {}", e_.run.continued_as->to_string());
    if (has_error) sentence += fmt::format(": {}: {}", e_.error->type, e_.error->message);
    add("closed", sentence + ".", [&](JsonWriter& out) {
      out.key("how").string(to_string(e_.status)).key("when").string(when);
      if (!e_.worker.empty()) out.key("by").string(e_.worker);
      if (has_error) write_error(out, *e_.error);
      if (e_.run.continued_as) out.key("continued_as").string(e_.run.continued_as->to_string());
    });
  }

  // ---- running

  void running() {
    const std::string_view what = e_.kind == Kind::workflow ? "turn" : "attempt";
    const Time since = e_.started_at.value_or(e_.run_at);
    add("leased",
        fmt::format("Worker {} has had {} {} since {}; its lease ends at {} unless it is extended.", e_.worker, what,
                    e_.attempt, moment(since), moment(e_.lease_expires_at.value_or(since))),
        [&](JsonWriter& out) {
          out.key("worker").string(e_.worker).key("attempt").integer(e_.attempt);
          out.key("since").string(moment(since));
          if (e_.lease_expires_at) out.key("lease_expires_at").string(moment(*e_.lease_expires_at));
        });
    cancel_requested();
  }

  void cancel_requested() {
    if (!e_.cancel_requested_at) return;
    const std::string until =
        e_.cancel_by ? fmt::format(" and is closed at {} in any case", moment(*e_.cancel_by)) : "";
    add("cancel_requested",
        fmt::format("Its cancellation was requested at {}; it is asked to stop{}.", moment(*e_.cancel_requested_at),
                    until),
        [&](JsonWriter& out) {
          out.key("since").string(moment(*e_.cancel_requested_at));
          if (e_.cancel_by) out.key("until").string(moment(*e_.cancel_by));
        });
  }

  // ---- pending

  void pending() {
    if (policy().paused) {
      add("paused", fmt::format("The queue {} is paused: nothing of it is handed out until it is unpaused.", e_.queue),
          [&](JsonWriter& out) { out.key("queue").string(e_.queue); });
    }
    if (e_.run_at > rows_.now()) later();
    if (e_.kind == Kind::task) limits();
    if (e_.run_at <= rows_.now()) behind();
    unclaimed();
    if (why_.because.empty()) {
      why_.sentences.push_back(
          fmt::format("Nothing holds it back: the next claim of the queue {} takes it.", e_.queue));
    }
  }

  void later() {
    const bool is_retry = e_.error && !e_.failed_attempts.empty() && e_.failed_attempts.back().attempt == e_.attempt;
    if (is_retry) {
      add("retrying",
          fmt::format("Attempt {} failed ({}: {}); the next one begins at {}.", e_.attempt, e_.error->type,
                      e_.error->message, moment(e_.run_at)),
          [&](JsonWriter& out) {
            out.key("attempt").integer(e_.attempt).key("run_at").string(moment(e_.run_at));
            write_error(out, *e_.error);
          });
    } else {
      add("delayed", fmt::format("It is to run at {}, not before.", moment(e_.run_at)),
          [&](JsonWriter& out) { out.key("run_at").string(moment(e_.run_at)); });
    }
  }

  void limits() {
    rate_limit();
    max_running();
    concurrency_key();
  }

  void max_running() {
    if (!policy().max_running) return;
    const std::int32_t limit = *policy().max_running;
    const std::int64_t running = rows_.count_running(e_);
    if (running < limit) return;
    add("max_running",
        fmt::format("The queue {} may run {} at once (max_running), and {} are running.", e_.queue, limit, running),
        [&](JsonWriter& out) {
          out.key("queue").string(e_.queue).key("limit").integer(limit).key("running").integer(running);
        });
  }

  void concurrency_key() {
    if (!e_.concurrency_key) return;
    const std::int32_t limit = policy().concurrency_limit;
    const auto holders = rows_.running_with_key(e_, std::max(limit, kMostHolders));
    if (std::ssize(holders) < limit) return;
    add("concurrency_key",
        fmt::format("Its concurrency key {} may have {} running, and {} holds it.", *e_.concurrency_key, limit,
                    holders.front().to_string()),
        [&](JsonWriter& out) {
          out.key("key").string(*e_.concurrency_key).key("limit").integer(limit).key("holders").begin_array();
          for (std::size_t i = 0; i < std::min<std::size_t>(holders.size(), kMostHolders); ++i) {
            out.string(holders[i].to_string());
          }
          out.end_array();
        });
  }

  void rate_limit() {
    if (!policy().rate_limit) return;
    const Rate& rate = *policy().rate_limit;
    RateState state = rows_.rate(e_);
    if (take(rate, state, rows_.now(), 1) > 0) return;
    const Time next = next_permit(rate, state, rows_.now());
    add("rate_limited",
        fmt::format("The queue {} has used up its rate of {}; the next permit comes at {}.", e_.queue,
                    format_rate(rate), moment(next)),
        [&](JsonWriter& out) {
          out.key("queue").string(e_.queue).key("rate").string(format_rate(rate));
          out.key("next_permit_at").string(moment(next));
        });
  }

  // How many seconds one takes, at the rate limit or as fast as the last minute was. Absent: nothing has moved.
  std::optional<double> pace() {
    const auto& rate = policy().rate_limit;
    if (e_.kind == Kind::task && rate) {
      return std::chrono::duration<double>(rate->per).count() / static_cast<double>(rate->count);
    }
    const std::int64_t closed = rows_.count_closed_since(e_, rows_.now() - kPaceSpan);
    if (closed == 0) return std::nullopt;
    return std::chrono::duration<double>(kPaceSpan).count() / static_cast<double>(closed);
  }

  void behind() {
    const std::int64_t before = rows_.count_before(e_);
    if (before == 0) return;
    const bool is_more = before >= WhyRows::kMostCounted;
    const auto each = pace();
    std::optional<Time> start;
    if (each) start = rows_.now() + Duration(static_cast<std::int64_t>(*each * 1000 * static_cast<double>(before)));
    std::string sentence = fmt::format("{}{} {} before it in the queue {}", is_more ? "At least " : "", before,
                                       before == 1 ? "is" : "are", e_.queue);
    sentence += start ? fmt::format("; at the current rate it starts at {}.", moment(*start))
                      : ", and none of them has moved for a minute.";
    add("behind", sentence, [&](JsonWriter& out) {
      out.key("queue").string(e_.queue).key("before").integer(before);
      if (is_more) out.key("at_least").boolean(true);
      out.key("expected_start");
      start ? out.string(moment(*start)) : out.null();
    });
  }

  // Nobody has claimed what it is, for a minute.
  void unclaimed() {
    const auto claimers = rows_.claimers(e_, rows_.now() - kClaimSpan, kMostClaimers);
    if (!claimers ||
        std::any_of(claimers->begin(), claimers->end(), [&](const auto& each) { return claims(each, e_); })) {
      return;
    }
    const bool is_workflow = e_.kind == Kind::workflow;
    std::vector<std::string> names;
    for (const WorkerInfo& claimer : *claimers) names.push_back(claimer.name);
    std::string sentence = fmt::format("Nobody has claimed {} of the type {} in the queue {} for a minute",
                                       is_workflow ? "workflows" : "tasks", e_.type, e_.queue);
    if (!names.empty())
      sentence += fmt::format("; the queue is claimed without that type, by {}", fmt::join(names, ", "));
    // Busy workers do not claim.
    const std::int64_t running = rows_.count_running(e_);
    if (running > 0) sentence += fmt::format("; {} of the queue {} running", running, running == 1 ? "is" : "are");
    add(is_workflow ? "no_workflow_worker" : "no_worker", sentence + ".", [&](JsonWriter& out) {
      out.key("queue").string(e_.queue).key("type").string(e_.type).key("workers").begin_array();
      for (const std::string& name : names) out.string(name);
      out.end_array().key("running").integer(running);
    });
  }

  // ---- suspended

  void suspended() {
    if (e_.run.stuck > 0) stuck();
    if (!with_steps_) return;
    std::int32_t told = 0;
    for (const ExecutionId& id : rows_.open_steps_of(e_.id, kMostSteps)) {
      const auto step = rows_.find(id);
      if (step && !is_closed(step->status)) wait_for(step->step, *step);
      ++told;
    }
    for (const Wait& wait : rows_.waits_of(e_.id)) {
      if (told++ >= kMostSteps) break;
      wait_for(wait);
    }
  }

  void stuck() {
    const AttemptError error = e_.error.value_or(AttemptError{"Stuck", "its code could not run"});
    const bool is_tried = e_.run.wake_at.has_value();
    std::string sentence = fmt::format("It is stuck: {}: {}", error.type, error.message);
    sentence += is_tried ? fmt::format(". It is tried again at {}.", moment(*e_.run.wake_at))
                         : ". Repair the worker and resume it.";
    add("stuck", sentence, [&](JsonWriter& out) {
      write_error(out, error);
      out.key("step").integer(e_.run.steps).key("attempts").integer(e_.run.stuck);
      if (e_.started_at) out.key("since").string(moment(*e_.started_at));
      if (is_tried) out.key("next_at").string(moment(*e_.run.wake_at));
    });
  }

  // With that one's own why.
  void wait_for(std::int32_t step, const Execution& execution) {
    const Why inner = Explainer(rows_, execution, false).explain();
    const bool is_child = execution.kind == Kind::workflow;
    std::string sentence =
        fmt::format("Step {} waits for {} {} ({}), which is {}.", step, is_child ? "the workflow" : "the task",
                    is_child ? execution.idempotency_key.value_or("") : execution.type, execution.id.to_string(),
                    to_string(execution.status));
    for (const std::string& said : inner.sentences) sentence += " " + said;
    add(is_child ? "waits_for_child" : "waits_for_step", sentence, [&](JsonWriter& out) {
      out.key("step").integer(step).key("type").string(execution.type);
      out.key("id").string(execution.id.to_string());
      if (is_child) out.key("workflow_id").string(execution.idempotency_key.value_or(""));
      out.key("status").string(to_string(execution.status));
      out.key("why").begin_array();
      for (const std::string& because : inner.because) out.raw(because);
      out.end_array();
    });
  }

  void wait_for(const Wait& wait) {
    if (wait.on) {
      if (const auto execution = rows_.find(*wait.on)) wait_for(wait.step, *execution);
      return;
    }
    const std::string until = wait.until ? moment(*wait.until) : "";
    const auto write = [&](JsonWriter& out) {
      out.key("step").integer(wait.step);
      if (!wait.signal.empty()) out.key("name").string(wait.signal);
      if (wait.until) out.key("until").string(until);
    };
    if (wait.signal.empty()) {
      add("sleeps", fmt::format("Step {} sleeps until {}.", wait.step, until), write);
    } else {
      add("waits_for_signal",
          fmt::format("Step {} waits for the signal {}{}.", wait.step, wait.signal,
                      wait.until ? ", until " + until + " at most" : ""),
          write);
    }
  }

  WhyRows& rows_;
  const Execution& e_;
  const bool with_steps_;
  Why why_;
};

}  // namespace

std::optional<Why> why(WhyRows& rows, const std::string& name_space, const ExecutionId& id) {
  const auto execution = rows.find(id);
  if (!execution || execution->name_space != name_space) return std::nullopt;
  require_sound(*execution);
  return Explainer(rows, *execution, true).explain();
}

}  // namespace hapax::rules
