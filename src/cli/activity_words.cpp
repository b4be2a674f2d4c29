#include "cli/activity_words.h"

#include <fmt/format.h>

#include "core/field.h"
#include "core/name.h"

namespace hapax {

namespace {

std::string event_in_words(const EventTrigger& event) {
  std::string text = "event " + event.type.value_or("of any type");
  if (event.source) text += " from " + *event.source;
  if (event.subject) text += " about " + *event.subject;
  if (event.dedupe_by == DedupeBy::source_and_id) text += ", the same by source and id,";
  for (const EventTrigger::Where& where : event.where) {
    text += fmt::format(" where {}", where.pointer.empty() ? "data" : where.pointer);
    switch (where.test) {
      case EventTrigger::Where::Test::equals: text += " = " + where.value; break;
      case EventTrigger::Where::Test::prefix: text += " begins with " + where.value; break;
      case EventTrigger::Where::Test::exists: text += where.value == "true" ? " exists" : " is absent"; break;
    }
  }
  return text;
}

std::string misfires_in_words(const CronTrigger& cron) {
  std::string text =
      fmt::format("{} firings later than {}", to_string(cron.misfire_policy), format_duration(cron.misfire_grace));
  if (cron.misfire_policy == MisfirePolicy::catchup) text += fmt::format(", the latest {}", cron.catchup_limit);
  return text;
}

std::string fired_by(const ActivityRun& run) {
  switch (run.cause) {
    case Cause::schedule: return format_time(run.at);
    case Cause::event: return "event " + (run.event ? run.event->id + " from " + run.event->source : run.occurrence);
    case Cause::trigger: return "by hand " + format_time(run.at);
  }
  return {};
}

std::string window_in_words(const Window& window) {
  return fmt::format("{} missed from {} to {}", window.missed, format_time(window.from), format_time(window.to));
}

std::string remark_on(const ActivityRun& run) {
  if (!run.window) return run.why;
  return run.why.empty() ? window_in_words(*run.window) : run.why + "; " + window_in_words(*run.window);
}

}  // namespace

std::string trigger_in_words(const ActivitySettings& settings) {
  if (const EventTrigger* event = settings.event()) return event_in_words(*event);
  return settings.cron()->expression + " " + settings.cron()->timezone;
}

std::string start_in_words(const ActivitySettings& settings) {
  if (const auto* workflow = std::get_if<ActivitySettings::Workflow>(&settings.start))
    return "workflow " + workflow->type;
  if (const auto* signal = std::get_if<ActivitySettings::Signal>(&settings.start))
    return fmt::format("signal {} to {}", signal->name, signal->workflow_id);
  const auto& tasks = std::get<std::vector<ActivitySettings::Task>>(settings.start);
  return tasks.size() == 1 ? "task " + tasks.front().type : fmt::format("{} tasks", tasks.size());
}

Cell next_in_words(const ActivityView& activity, Time now) {
  if (!activity.settings.enabled) return Cell("off", Colour::dim);
  if (activity.paused) return Cell("paused", Colour::yellow);
  return activity.next.empty() ? "-" : relative(activity.next.front(), now);
}

Cell disposition_cell(const ActivityRun& run) {
  const bool needs_a_look = run.disposition == Disposition::skipped || run.disposition == Disposition::compressed;
  return Cell(std::string(to_string(run.disposition)), needs_a_look ? Colour::yellow : Colour::green);
}

Table run_table(std::span<const ActivityRun> runs) {
  Table table({"fired", "became", "workflow", "why"});
  for (const ActivityRun& run : runs) {
    table.add({fired_by(run), disposition_cell(run), run.workflow_id.empty() ? "-" : run.workflow_id, remark_on(run)});
  }
  return table;
}

std::string render_activity(const ActivityView& activity, Time now, const Paint& paint,
                            std::optional<std::size_t> width) {
  std::vector<std::pair<std::string, Cell>> fields{
      {"activity", Cell(activity.id, Colour::bold)},
      {"name", activity.settings.name.empty() ? activity.id : activity.settings.name},
      {"starts", start_in_words(activity.settings)},
      {"trigger", trigger_in_words(activity.settings)}};
  if (const CronTrigger* cron = activity.settings.cron()) {
    fields.emplace_back("misfires", misfires_in_words(*cron));
    fields.emplace_back("overlap", std::string(to_string(cron->overlap)));
    if (activity.settings.dedupe_key_strategy) {
      fields.emplace_back("dedupe keys", std::string(to_string(*activity.settings.dedupe_key_strategy)));
    }
    if (cron->jitter > Duration::zero()) fields.emplace_back("jitter", "up to " + format_duration(cron->jitter));
  }
  if (!activity.settings.enabled) fields.emplace_back("enabled", Cell("no", Colour::yellow));
  if (activity.paused) {
    fields.emplace_back("paused",
                        Cell(activity.paused_at ? relative(*activity.paused_at, now) : "yes", Colour::yellow));
  }
  if (activity.from_file) fields.emplace_back("from the file", "yes");
  if (activity.settings.from_code) fields.emplace_back("from the code", "yes");
  for (std::size_t i = 0; i < activity.next.size(); ++i) {
    fields.emplace_back(i == 0 ? "next" : "",
                        fmt::format("{}  {}", format_time(activity.next[i]), relative(activity.next[i], now)));
  }
  if (activity.fired_ahead_until) {
    fields.emplace_back("clock", Cell(fmt::format("ran ahead: it has already fired up to {}, and continues after that",
                                                  format_time(*activity.fired_ahead_until)),
                                      Colour::yellow));
  }
  std::string text = render_fields(paint, fields);
  if (!activity.last.empty()) text += "\n" + run_table(activity.last).render(paint, width);
  return text;
}

std::string describe_receipt(const EventReceipt& receipt) {
  std::string text;
  const auto add = [&](std::string_view what, const std::vector<std::string>& workflows) {
    for (const std::string& workflow : workflows) text += fmt::format("{} {}\n", what, printable(workflow));
  };
  add("started", receipt.started);
  add("already started", receipt.duplicates);
  add("conflict: another event with this id had started", receipt.conflicts);
  return text.empty() ? "no activity matches it\n" : text;
}

void require_activity_id(const std::string& id) {
  if (!is_valid_utf8(id)) throw CommandError(kUsage, "ID must be UTF-8");
  try {
    check_activity_id(id);
  } catch (const InvalidField& wrong) {
    throw CommandError(kUsage, fmt::format("ID {}", wrong.what()));
  }
}

CommandError activity_not_found(const std::string& id) {
  return CommandError(kNotFound,
                      fmt::format("there is no activity \"{}\"; hapax activities lists them", printable(id)));
}

}  // namespace hapax
