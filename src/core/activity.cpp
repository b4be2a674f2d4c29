#include "core/activity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "core/canonical_json.h"
#include "core/cron.h"
#include "core/field.h"
#include "core/json_writer.h"
#include "core/name.h"
#include "core/signal_target.h"
#include "core/time_zone.h"
#include "core/update.h"

namespace hapax {

namespace {

constexpr std::array<std::string_view, 3> kMisfirePolicies{"skip", "catchup", "compress"};
constexpr std::array<std::string_view, 3> kOverlaps{"allow", "skip", "buffer_one"};
constexpr std::array<std::string_view, 2> kDedupeBy{"id", "source_and_id"};
constexpr std::array<std::string_view, 5> kDispositions{"ran", "skipped", "caught_up", "compressed", "duplicate"};

template <class Enum>
std::optional<Enum> parse_word(std::span<const std::string_view> words, std::string_view text) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == text) return static_cast<Enum>(i);
  }
  return {};
}

// The one of two members that is present. Throws unless exactly one is.
bool is_first(const FieldReader& reader, std::string_view at, std::string_view first, const Json* first_value,
              std::string_view second, const Json* second_value) {
  if (first_value == nullptr && second_value == nullptr) {
    throw InvalidField(std::string(at), fmt::format("needs \"{}\" or \"{}\"", first, second));
  }
  if (first_value != nullptr && second_value != nullptr) {
    throw InvalidField(reader.pointer(second),
                       fmt::format("must not stand beside \"{}\": it is one or the other", first));
  }
  return first_value != nullptr;
}

// Workflow and Task have the same members.
template <class Started>
Started read_started(const Json& document, const std::string& at) {
  FieldReader reader(document, at);
  Started started;
  started.type = reader.required("type", reader.name("type"));
  if (const Json* input = reader.any("input")) started.input = canonical_json(*input);
  started.queue = reader.name("queue");
  reader.done();
  return started;
}

ActivitySettings::Signal read_signal(const Json& document, const std::string& at) {
  FieldReader reader(document, at);
  ActivitySettings::Signal signal;
  signal.workflow_id = reader.required("workflow_id", reader.string("workflow_id"));
  signal.name = reader.required("name", reader.string("name"));
  reader.done();
  if (const auto wrong = check_signal_target(signal.workflow_id)) {
    throw InvalidField(reader.pointer("workflow_id"), *wrong);
  }
  if (const auto wrong = check_signal_name(signal.name)) throw InvalidField(reader.pointer("name"), *wrong);
  return signal;
}

std::vector<ActivitySettings::Task> read_tasks(const Json& array, const std::string& at) {
  if (array.items.empty() || array.items.size() > kMaxActivityTasks) {
    throw InvalidField(at, fmt::format("must have 1 to {} tasks, not {}", kMaxActivityTasks, array.items.size()));
  }
  std::vector<ActivitySettings::Task> tasks;
  for (const Json& item : array.items) {
    tasks.push_back(read_started<ActivitySettings::Task>(item, fmt::format("{}/{}", at, tasks.size())));
  }
  return tasks;
}

CronTrigger read_cron(const Json& document, const std::string& at, std::optional<MisfirePolicy> strategy) {
  FieldReader reader(document, at);
  CronTrigger cron;
  cron.misfire_policy = strategy.value_or(cron.misfire_policy);
  cron.expression = reader.required("expression", reader.string("expression"));
  const auto parsed = Cron::parse(cron.expression);
  if (const auto* bad = std::get_if<Cron::Bad>(&parsed)) throw InvalidField(reader.pointer("expression"), bad->message);
  cron.timezone = reader.string("timezone").value_or(cron.timezone);
  if (!TimeZone::find(cron.timezone)) {
    throw InvalidField(reader.pointer("timezone"),
                       fmt::format("must be a time zone of the system's IANA database (tzdata), such as "
                                   "\"Europe/Berlin\" or \"UTC\", not \"{}\"",
                                   cron.timezone));
  }
  cron.misfire_policy =
      reader.word("misfire_policy", parse_misfire_policy, "skip, catchup, compress").value_or(cron.misfire_policy);
  if (const auto limit = reader.integer("catchup_limit", 1, kMaxCatchup)) {
    cron.catchup_limit = static_cast<std::int32_t>(*limit);
  }
  cron.misfire_grace = reader.duration("misfire_grace").value_or(cron.misfire_grace);
  cron.overlap = reader.word("overlap", parse_overlap, "allow, skip, buffer_one").value_or(cron.overlap);
  cron.jitter = reader.duration("jitter").value_or(cron.jitter);
  reader.done();
  return cron;
}

EventTrigger::Where read_where(const Json& document, const std::string& at) {
  using Test = EventTrigger::Where::Test;
  FieldReader reader(document, at);
  EventTrigger::Where where;
  where.pointer = reader.required("pointer", reader.string("pointer"));
  if (!is_json_pointer(where.pointer)) {
    throw InvalidField(
        reader.pointer("pointer"),
        "must be a JSON Pointer into the event's data: \"\", or \"/\" and a path, such as \"/order/id\"");
  }
  int tests = 0;
  if (const Json* equals = reader.any("equals")) {
    where.test = Test::equals;
    where.value = canonical_json(*equals);
    ++tests;
  }
  if (const auto prefix = reader.string("prefix")) {
    where.test = Test::prefix;
    where.value = *prefix;
    ++tests;
  }
  if (const auto exists = reader.boolean("exists")) {
    where.test = Test::exists;
    where.value = *exists ? "true" : "false";
    ++tests;
  }
  reader.done();
  if (tests != 1)
    throw InvalidField(at, fmt::format("needs one of \"equals\", \"prefix\" and \"exists\", not {}", tests));
  return where;
}

std::optional<std::string> read_attribute(FieldReader& reader, std::string_view name) {
  auto value = reader.string(name);
  if (value && value->empty()) throw InvalidField(reader.pointer(name), "must not be empty; leave it out for any");
  return value;
}

EventTrigger read_event(const Json& document, const std::string& at) {
  FieldReader reader(document, at);
  EventTrigger event;
  event.type = read_attribute(reader, "type");
  event.source = read_attribute(reader, "source");
  event.subject = read_attribute(reader, "subject");
  event.dedupe_by = reader.word("dedupe_by", parse_dedupe_by, "id, source_and_id").value_or(event.dedupe_by);
  if (const Json* where = reader.array("where")) {
    if (where->items.size() > kMaxWhere) {
      throw InvalidField(reader.pointer("where"),
                         fmt::format("must have at most {} items, not {}", kMaxWhere, where->items.size()));
    }
    for (const Json& item : where->items) {
      event.where.push_back(read_where(item, fmt::format("{}/{}", reader.pointer("where"), event.where.size())));
    }
  }
  reader.done();
  return event;
}

// For a schedule, the strategy and the misfire policy are two names for one thing.
void require_agreement(const CronTrigger& cron, MisfirePolicy strategy, const std::string& at) {
  if (cron.misfire_policy == strategy) return;
  throw InvalidField(at,
                     fmt::format("must equal the misfire_policy, which is \"{}\", not \"{}\"; one of them is enough",
                                 to_string(cron.misfire_policy), to_string(strategy)));
}

template <class Started>
void write_started(JsonWriter& out, const Started& started) {
  out.begin_object().key("type").string(started.type);
  if (started.input) out.key("input").raw(*started.input);
  if (started.queue) out.key("queue").string(*started.queue);
  out.end_object();
}

void write_cron(JsonWriter& out, const CronTrigger& cron) {
  out.key("cron").begin_object();
  out.key("expression").string(cron.expression);
  out.key("timezone").string(cron.timezone);
  out.key("misfire_policy").string(to_string(cron.misfire_policy));
  out.key("catchup_limit").integer(cron.catchup_limit);
  out.key("misfire_grace").string(format_duration(cron.misfire_grace));
  out.key("overlap").string(to_string(cron.overlap));
  out.key("jitter").string(format_duration(cron.jitter));
  out.end_object();
}

void write_event(JsonWriter& out, const EventTrigger& event) {
  out.key("event").begin_object();
  if (event.type) out.key("type").string(*event.type);
  if (event.source) out.key("source").string(*event.source);
  if (event.subject) out.key("subject").string(*event.subject);
  if (!event.where.empty()) {
    out.key("where").begin_array();
    for (const EventTrigger::Where& where : event.where) {
      out.begin_object().key("pointer").string(where.pointer);
      switch (where.test) {
        case EventTrigger::Where::Test::equals: out.key("equals").raw(where.value); break;
        case EventTrigger::Where::Test::prefix: out.key("prefix").string(where.value); break;
        case EventTrigger::Where::Test::exists: out.key("exists").raw(where.value); break;
      }
      out.end_object();
    }
    out.end_array();
  }
  out.key("dedupe_by").string(to_string(event.dedupe_by));
  out.end_object();
}

}  // namespace

std::string_view to_string(MisfirePolicy policy) { return kMisfirePolicies.at(static_cast<std::size_t>(policy)); }

std::optional<MisfirePolicy> parse_misfire_policy(std::string_view text) {
  return parse_word<MisfirePolicy>(kMisfirePolicies, text);
}

std::string_view to_string(Overlap overlap) { return kOverlaps.at(static_cast<std::size_t>(overlap)); }

std::optional<Overlap> parse_overlap(std::string_view text) { return parse_word<Overlap>(kOverlaps, text); }

std::string_view to_string(DedupeBy dedupe_by) { return kDedupeBy.at(static_cast<std::size_t>(dedupe_by)); }

std::optional<DedupeBy> parse_dedupe_by(std::string_view text) { return parse_word<DedupeBy>(kDedupeBy, text); }

std::string_view to_string(Disposition disposition) { return kDispositions.at(static_cast<std::size_t>(disposition)); }

std::optional<Disposition> parse_disposition(std::string_view text) {
  return parse_word<Disposition>(kDispositions, text);
}

namespace {

// What it starts: one of three members.
decltype(ActivitySettings::start) read_start(FieldReader& reader, const std::string& at) {
  const Json* workflow = reader.object("workflow");
  const Json* tasks = reader.array("tasks");
  const Json* signal = reader.object("signal");
  if (!workflow && !tasks && !signal) throw InvalidField(at, "needs \"workflow\", \"tasks\" or \"signal\"");
  const bool is_alone = (workflow != nullptr) + (tasks != nullptr) + (signal != nullptr) == 1;
  if (!is_alone) {
    const std::string_view second = signal ? "signal" : "tasks";
    throw InvalidField(reader.pointer(second), fmt::format("must not stand beside \"{}\": it is one or the other",
                                                           workflow ? "workflow" : "tasks"));
  }
  if (workflow) return read_started<ActivitySettings::Workflow>(*workflow, reader.pointer("workflow"));
  if (tasks) return read_tasks(*tasks, reader.pointer("tasks"));
  return read_signal(*signal, reader.pointer("signal"));
}

}  // namespace

ActivitySettings ActivitySettings::parse(const Json& document, const std::string& at) {
  FieldReader reader(document, at);
  ActivitySettings settings;
  settings.name = reader.name("name").value_or("");
  settings.enabled = reader.boolean("enabled").value_or(true);
  settings.from_code = reader.boolean("from_code").value_or(false);

  settings.start = read_start(reader, at);

  const auto strategy = reader.word("dedupe_key_strategy", parse_misfire_policy, "skip, catchup, compress");
  settings.dedupe_key_strategy = strategy;
  const Json* trigger = reader.object("trigger");
  if (trigger == nullptr) throw InvalidField(reader.pointer("trigger"), "is required");
  FieldReader triggers(*trigger, reader.pointer("trigger"));
  const Json* cron = triggers.object("cron");
  const Json* event = triggers.object("event");
  triggers.done();
  if (is_first(triggers, reader.pointer("trigger"), "cron", cron, "event", event)) {
    if (std::holds_alternative<Signal>(settings.start)) {
      throw InvalidField(reader.pointer("signal"),
                         "is for event triggers: its workflow and payload come from the event");
    }
    settings.trigger = read_cron(*cron, triggers.pointer("cron"), strategy);
    if (strategy) require_agreement(*settings.cron(), *strategy, reader.pointer("dedupe_key_strategy"));
  } else {
    settings.trigger = read_event(*event, triggers.pointer("event"));
    if (strategy) {
      throw InvalidField(reader.pointer("dedupe_key_strategy"),
                         "must not stand beside an event trigger, which has no misfires; \"dedupe_by\" says which "
                         "events are the same");
    }
  }

  reader.done();
  return settings;
}

std::string ActivitySettings::to_json() const {
  JsonWriter out;
  out.begin_object();
  if (!name.empty()) out.key("name").string(name);
  out.key("enabled").boolean(enabled);
  if (from_code) out.key("from_code").boolean(true);
  if (const auto* workflow = std::get_if<Workflow>(&start)) {
    out.key("workflow");
    write_started(out, *workflow);
  } else if (const auto* signal = std::get_if<Signal>(&start)) {
    out.key("signal").begin_object();
    out.key("workflow_id").string(signal->workflow_id).key("name").string(signal->name).end_object();
  } else {
    out.key("tasks").begin_array();
    for (const Task& task : std::get<std::vector<Task>>(start)) write_started(out, task);
    out.end_array();
  }
  out.key("trigger").begin_object();
  if (cron() != nullptr) {
    write_cron(out, *cron());
  } else {
    write_event(out, *event());
  }
  out.end_object();
  if (dedupe_key_strategy) out.key("dedupe_key_strategy").string(to_string(*dedupe_key_strategy));
  out.end_object();
  return out.take();
}

void check_activity_id(std::string_view id) {
  static_assert(kMaxActivityId == 128, "as long as a name");
  if (const auto wrong = check_name(id)) throw InvalidField("", "the activity's id " + *wrong);
  if (id.find(':') != std::string_view::npos) {
    throw InvalidField("", "the activity's id must not contain ':', which ends it in the ids of its workflows");
  }
}

std::string activity_workflow_id(std::string_view activity, std::string_view occurrence) {
  return fmt::format("activity-{}:{}", activity, occurrence);
}

std::string format_occurrence(Time scheduled_for) {
  std::string text = format_time(scheduled_for);
  text.replace(text.size() - 5, 5, "+00:00");  // instead of .000Z
  return text;
}

}  // namespace hapax
