#include "core/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/hash.h"

namespace hapax {

namespace {

constexpr Duration kBufferedLook{1000};  // how often a buffered firing is checked

// For people: the two largest units, down to the second.
std::string describe(Duration duration) {
  constexpr std::array<std::pair<std::int64_t, char>, 4> kUnits{{{86'400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}}};
  std::int64_t rest = std::chrono::floor<std::chrono::seconds>(duration).count();
  if (rest == 0) return fmt::format("{}ms", duration.count());
  std::string text;
  int units = 0;
  for (const auto& [seconds, unit] : kUnits) {
    if (rest < seconds && text.empty()) continue;
    if (units++ == 2) break;
    if (rest >= seconds) text += fmt::format("{}{}", rest / seconds, unit);
    rest %= seconds;
  }
  return text;
}

// One check of a schedule.
class Look {
 public:
  Look(const CronTrigger& trigger, const Cron& cron, const TimeZone& zone, std::string_view activity_id,
       const SchedulePosition& position, Time now, bool open, std::size_t limit)
      : trigger_(trigger),
        cron_(cron),
        zone_(zone),
        activity_id_(activity_id),
        now_(now),
        judged_at_(now),
        open_(open),
        limit_(limit) {
    plan_.next = position;
  }

  Plan take() {
    if (at().paused()) return std::move(plan_);
    release_buffered();
    std::optional<Time> firing = cron_.next(at().handled_until, zone_);
    go_on_behind(firing);
    bool again = !handle_former();
    for (; !again && firing && due(*firing) <= now_; firing = cron_.next(*firing, zone_)) {
      if (plan_.runs.size() >= limit_ || !handle(*firing)) {
        again = true;
        break;
      }
      at().handled_until = *firing;
    }
    if (!again) forget_pause(firing);
    if (again || (handles_outage_ && !plan_.runs.empty())) {
      at().behind = {judged_at_, now_};
    } else if (plan_.runs.empty()) {
      at().behind.reset();
    }
    plan_.next_due = again ? now_ : next_due(firing);
    return std::move(plan_);
  }

 private:
  SchedulePosition& at() { return plan_.next; }

  Time due(Time firing) const { return firing + jitter_of(trigger_, cron_, zone_, activity_id_, firing); }
  bool is_late(Time firing) const { return judged_at_ - due(firing) > trigger_.misfire_grace; }
  // If an earlier check left something to handle, and servers have handled it ever since, that check has decided what
  // is late.
  void go_on_behind(const std::optional<Time>& next_firing) {
    if (!at().behind) return;
    const bool caught_up = !next_firing || due(*next_firing) > at().behind->attended_until;
    at().take_over(trigger_, now_);
    if (caught_up) at().behind.reset();
    if (at().behind) judged_at_ = at().behind->since;
  }
  bool is_paused(Time firing) {
    if (!at().paused_from) return false;
    const Time time = due(firing);
    return *at().paused_from <= time && time < *at().paused_to;
  }

  std::string own_id(Time firing) const { return activity_workflow_id(activity_id_, format_occurrence(firing)); }

  // What the schedule before a change left behind. False if some of it must wait for the next check.
  bool handle_former() {
    if (!at().former) return true;
    SchedulePosition::Former& former = *at().former;
    const auto cron = Cron::parse(former.expression);
    const auto zone = TimeZone::find(former.timezone);
    const bool is_known = std::holds_alternative<Cron>(cron) && zone;
    while (is_known) {
      const auto firing = std::get<Cron>(cron).next(former.handled_until, *zone);
      if (!firing || *firing > former.until) break;
      if (plan_.runs.size() >= limit_) return false;
      former.handled_until = *firing;
      handles_outage_ = true;
      if (at().buffered && at().buffered->scheduled_for == *firing) continue;  // it gets its row when it is started
      skip(*firing, fmt::format("missed, and then the schedule was changed at {}", format_time(former.until)));
    }
    at().former.reset();
    return true;
  }

  // False if this firing must wait for the next check.
  bool handle(Time firing) {
    if (at().missed) {
      handles_outage_ = true;
      handle_missed(firing, *at().missed);
      if (firing >= at().missed->until) at().missed.reset();
    } else if (!is_late(firing) && !is_paused(firing)) {
      start(firing, Disposition::ran, std::nullopt,
            now_ - due(firing) > trigger_.misfire_grace ? "waited behind what was due before it" : "");
    } else if (trigger_.misfire_policy == MisfirePolicy::skip) {
      handles_outage_ = true;
      skip(firing, why_missed(firing));
    } else {
      at().missed = find_missed(firing);
      return false;
    }
    return true;
  }

  void handle_missed(Time firing, SchedulePosition::Missed& missed) {
    ++missed.counted;
    if (missed.policy == MisfirePolicy::catchup) {
      if (firing < missed.caught_up_from) {
        skip(firing, why_missed(firing) + "; only the latest are caught up, and it is older");
      } else {
        start(firing, Disposition::caught_up, std::nullopt, why_missed(firing));
      }
    } else if (missed.dropped) {
      skip(firing, why_missed(firing) + "; not compressed, for a run was still open");
    } else if (firing < missed.until) {
      plan_.runs.push_back({firing, Disposition::compressed, false, own_id(missed.until), std::nullopt,
                            why_missed(firing) + "; compressed into the run of " + format_occurrence(missed.until)});
    } else {
      // That it is not skipped was decided when the stretch was found: the other rows already name this run.
      if (trigger_.overlap == Overlap::skip) open_ = false;
      start(firing, Disposition::compressed, Window{missed.from, missed.until, missed.counted},
            fmt::format("{}; stands for {} missed firings", why_missed(firing), missed.counted));
    }
  }

  void skip(Time firing, std::string why) {
    plan_.runs.push_back({firing, Disposition::skipped, false, "", std::nullopt, std::move(why)});
  }

  // Starts it, if overlap allows.
  void start(Time firing, Disposition disposition, std::optional<Window> window, std::string why) {
    const auto and_that = [&](std::string_view more) {
      return why.empty() ? std::string(more) : fmt::format("{}; {}", why, more);
    };
    if (!open_ || trigger_.overlap == Overlap::allow) {
      open_ = true;
      plan_.runs.push_back({firing, disposition, true, own_id(firing), window, std::move(why)});
    } else if (trigger_.overlap == Overlap::skip) {
      skip(firing, and_that("the run before it is still open"));
    } else if (at().buffered) {
      skip(firing, and_that(fmt::format("the run before it is still open, and {} waits for its end already",
                                        format_occurrence(at().buffered->scheduled_for))));
    } else {
      at().buffered = {firing,         disposition, true,
                       own_id(firing), window,      and_that("waited for the end of the run before it")};
    }
  }

  void release_buffered() {
    if (!at().buffered || (open_ && trigger_.overlap != Overlap::allow)) return;
    plan_.runs.push_back(*std::move(at().buffered));
    at().buffered.reset();
    open_ = true;
  }

  // The pause is over once nothing that became due in it is left.
  void forget_pause(const std::optional<Time>& next_firing) {
    if (at().paused_to && (!next_firing || due(*next_firing) >= *at().paused_to))
      at().paused_from = at().paused_to = {};
  }

  std::optional<Time> next_due(const std::optional<Time>& next_firing) {
    std::optional<Time> next;
    if (next_firing) next = due(*next_firing);
    if (at().buffered) next = next ? std::min(*next, now_ + kBufferedLook) : now_ + kBufferedLook;
    return next;
  }

  std::string why_missed(Time firing) {
    if (is_paused(firing)) {
      return fmt::format("passed while paused from {} to {}", format_time(*at().paused_from),
                         format_time(*at().paused_to));
    }
    return fmt::format("missed by {}, more than the grace of {}", describe(now_ - due(firing)),
                       describe(trigger_.misfire_grace));
  }

  // ---- a stretch of missed firings

  SchedulePosition::Missed find_missed(Time first) {
    SchedulePosition::Missed missed{
        .policy = trigger_.misfire_policy, .from = first, .until = first, .caught_up_from = first};
    if (is_late(first)) missed.until = last_due_before(first, judged_at_ - trigger_.misfire_grace);
    const auto next = cron_.next(missed.until, zone_);
    if (is_paused(first) || (next && is_paused(*next))) {
      missed.until = std::max(missed.until, last_due_before(first, *at().paused_to));
    }
    if (missed.policy == MisfirePolicy::catchup) {
      missed.caught_up_from = missed.until;
      for (int count = 1; count < trigger_.catchup_limit && missed.caught_up_from > first; ++count) {
        missed.caught_up_from = last_before(first, missed.caught_up_from);
      }
    } else {
      missed.dropped =
          open_ && (trigger_.overlap == Overlap::skip || (trigger_.overlap == Overlap::buffer_one && at().buffered));
    }
    return missed;
  }

  // The last firing that becomes due before then. `known` is one that does.
  Time last_due_before(Time known, Time before) const {
    const Time last = last_before(known, before);
    return due(last) < before ? last : last_before(known, last);
  }

  // The last firing before that instant, or `known` if there is none. `known` is a firing.
  Time last_before(Time known, Time before) const {
    Time low = known, high = before;  // `low` is a firing; between `high` and `before` there is none
    for (Duration back(1000); before - back > known; back *= 2) {
      const auto firing = cron_.next(before - back, zone_);
      if (firing && *firing < before) {
        low = *firing;
        break;
      }
      high = before - back;
    }
    while (low < high) {
      const Time middle = low + (high - low) / 2;
      const auto firing = cron_.next(middle, zone_);
      if (firing && *firing < before) {
        low = *firing;
      } else {
        high = middle;
      }
    }
    return low;
  }

  const CronTrigger& trigger_;
  const Cron& cron_;
  const TimeZone& zone_;
  std::string_view activity_id_;
  Time now_;
  Time judged_at_;  // lateness is decided as of then
  bool open_;
  std::size_t limit_;
  bool handles_outage_ = false;  // some of the runs were missed
  Plan plan_;
};

}  // namespace

Plan plan(const CronTrigger& trigger, const Cron& cron, const TimeZone& zone, std::string_view activity_id,
          const SchedulePosition& position, Time now, bool previous_open, std::size_t limit) {
  return Look(trigger, cron, zone, activity_id, position, now, previous_open, limit).take();
}

Duration jitter_of(const CronTrigger& trigger, const Cron& cron, const TimeZone& zone, std::string_view activity_id,
                   Time scheduled_for) {
  if (trigger.jitter == Duration::zero()) return Duration::zero();
  Duration span = trigger.jitter;
  if (const auto next = cron.next(scheduled_for, zone)) span = std::min(span, *next - scheduled_for);
  const Digest digest = sha256(fmt::format("{}:{}", activity_id, to_ms(scheduled_for)));
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < sizeof(number); ++i) number = number << 8 | digest.at(i);
  return Duration(static_cast<std::int64_t>(number % static_cast<std::uint64_t>(span.count())));
}

}  // namespace hapax
