#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/field.h"
#include "core/invariant.h"
#include "core/json_writer.h"
#include "core/schedule.h"

namespace hapax {

void SchedulePosition::pause(Time now) {
  if (paused()) return;
  // An earlier pause may still have something to decide: the two become one.
  if (!paused_from) paused_from = now;
  paused_to.reset();
}

void SchedulePosition::unpause(Time now) {
  if (paused()) paused_to = now;
}

void SchedulePosition::take_over(const CronTrigger& trigger, Time now) {
  if (behind && now - behind->attended_until > std::max(trigger.misfire_grace, kLongestSilence)) behind.reset();
  carried_out(now);
}

void SchedulePosition::carried_out(Time now) {
  if (behind) behind->attended_until = std::max(behind->attended_until, now);
}

void SchedulePosition::leave(const CronTrigger& trigger, Time now) {
  if (!former && handled_until < now) former = Former{trigger.expression, trigger.timezone, handled_until, now};
}

void SchedulePosition::begin_anew(std::string_view activity_id, Time from) {
  if (!buffered && missed && missed->policy == MisfirePolicy::compress && !missed->dropped && missed->counted > 0) {
    buffered = PlannedRun{missed->until,
                          Disposition::compressed,
                          true,
                          activity_workflow_id(activity_id, format_occurrence(missed->until)),
                          Window{missed->from, handled_until, missed->counted},
                          fmt::format("stands for {} missed firings; then the schedule was changed", missed->counted)};
  }
  missed.reset();
  behind.reset();
  handled_until = from;
  if (paused_to) {
    paused_from.reset();
    paused_to.reset();
  }
}

namespace {

constexpr std::int64_t kMaxCount = std::numeric_limits<std::int64_t>::max();

void write_window(JsonWriter& out, const Window& window) {
  out.begin_object();
  out.key("from").string(format_time(window.from));
  out.key("to").string(format_time(window.to));
  out.key("missed").integer(window.missed);
  out.end_object();
}

Window read_window(const Json& document, const std::string& at) {
  FieldReader reader(document, at);
  Window window;
  window.from = reader.required("from", reader.time("from"));
  window.to = reader.required("to", reader.time("to"));
  window.missed = reader.required("missed", reader.integer("missed", 0, kMaxCount));
  reader.done();
  return window;
}

void write_missed(JsonWriter& out, const SchedulePosition::Missed& missed) {
  out.begin_object();
  out.key("policy").string(to_string(missed.policy));
  out.key("from").string(format_time(missed.from));
  out.key("until").string(format_time(missed.until));
  out.key("caught_up_from").string(format_time(missed.caught_up_from));
  out.key("counted").integer(missed.counted);
  out.key("dropped").boolean(missed.dropped);
  out.end_object();
}

SchedulePosition::Missed read_missed(const Json& document, const std::string& at) {
  FieldReader reader(document, at);
  SchedulePosition::Missed missed;
  missed.policy = reader.required("policy", reader.word("policy", parse_misfire_policy, "skip, catchup, compress"));
  missed.from = reader.required("from", reader.time("from"));
  missed.until = reader.required("until", reader.time("until"));
  missed.caught_up_from = reader.required("caught_up_from", reader.time("caught_up_from"));
  missed.counted = reader.required("counted", reader.integer("counted", 0, kMaxCount));
  missed.dropped = reader.required("dropped", reader.boolean("dropped"));
  reader.done();
  return missed;
}

void write_buffered(JsonWriter& out, const PlannedRun& run) {
  out.begin_object();
  out.key("scheduled_for").string(format_time(run.scheduled_for));
  out.key("disposition").string(to_string(run.disposition));
  out.key("workflow_id").string(run.workflow_id);
  if (run.window) {
    out.key("window");
    write_window(out, *run.window);
  }
  out.key("why").string(run.why);
  out.end_object();
}

PlannedRun read_buffered(const Json& document, const std::string& at) {
  FieldReader reader(document, at);
  PlannedRun run;
  run.start = true;
  run.scheduled_for = reader.required("scheduled_for", reader.time("scheduled_for"));
  run.disposition = reader.required(
      "disposition", reader.word("disposition", parse_disposition, "ran, skipped, caught_up, compressed, duplicate"));
  run.workflow_id = reader.required("workflow_id", reader.string("workflow_id"));
  if (const Json* window = reader.object("window")) run.window = read_window(*window, reader.pointer("window"));
  run.why = reader.required("why", reader.string("why"));
  reader.done();
  return run;
}

SchedulePosition::Behind read_behind(const Json& document, const std::string& at) {
  FieldReader reader(document, at);
  SchedulePosition::Behind behind;
  behind.since = reader.required("since", reader.time("since"));
  behind.attended_until = reader.required("attended_until", reader.time("attended_until"));
  reader.done();
  return behind;
}

void write_former(JsonWriter& out, const SchedulePosition::Former& former) {
  out.begin_object();
  out.key("expression").string(former.expression);
  out.key("timezone").string(former.timezone);
  out.key("handled_until").string(format_time(former.handled_until));
  out.key("until").string(format_time(former.until));
  out.end_object();
}

SchedulePosition::Former read_former(const Json& document, const std::string& at) {
  FieldReader reader(document, at);
  SchedulePosition::Former former;
  former.expression = reader.required("expression", reader.string("expression"));
  former.timezone = reader.required("timezone", reader.string("timezone"));
  former.handled_until = reader.required("handled_until", reader.time("handled_until"));
  former.until = reader.required("until", reader.time("until"));
  reader.done();
  return former;
}

void check(const SchedulePosition& position) {
  invariant(!position.paused_to || position.paused_from, "a pause that ended has begun");
  invariant(!position.missed || (position.missed->from <= position.missed->until && position.missed->counted >= 0),
            "a stretch of missed firings goes forward");
  invariant(!position.buffered || position.buffered->start, "a buffered run is to be started");
  invariant(!position.former || position.former->handled_until <= position.former->until,
            "a former schedule was handled up to its end at most");
}

}  // namespace

std::string SchedulePosition::to_json() const {
  check(*this);
  JsonWriter out;
  out.begin_object();
  out.key("handled_until").string(format_time(handled_until));
  if (paused_from) out.key("paused_from").string(format_time(*paused_from));
  if (paused_to) out.key("paused_to").string(format_time(*paused_to));
  if (missed) {
    out.key("missed");
    write_missed(out, *missed);
  }
  if (buffered) {
    out.key("buffered");
    write_buffered(out, *buffered);
  }
  if (behind) {
    out.key("behind").begin_object().key("since").string(format_time(behind->since));
    out.key("attended_until").string(format_time(behind->attended_until)).end_object();
  }
  if (former) {
    out.key("former");
    write_former(out, *former);
  }
  out.end_object();
  return out.take();
}

SchedulePosition SchedulePosition::parse(const Json& document, const std::string& at) {
  FieldReader reader(document, at);
  SchedulePosition position;
  position.handled_until = reader.required("handled_until", reader.time("handled_until"));
  position.paused_from = reader.time("paused_from");
  position.paused_to = reader.time("paused_to");
  if (const Json* missed = reader.object("missed")) position.missed = read_missed(*missed, reader.pointer("missed"));
  if (const Json* run = reader.object("buffered")) position.buffered = read_buffered(*run, reader.pointer("buffered"));
  if (const Json* behind = reader.object("behind")) position.behind = read_behind(*behind, reader.pointer("behind"));
  if (const Json* former = reader.object("former")) position.former = read_former(*former, reader.pointer("former"));
  reader.done();
  return position;
}

}  // namespace hapax
