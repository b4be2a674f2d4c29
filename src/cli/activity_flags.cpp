#include "cli/activity_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <fstream>
#include <iostream>
#include <iterator>

#include "cli/submission_flags.h"
#include "core/canonical_json.h"
#include "core/field.h"
#include "core/json_writer.h"

namespace hapax {

namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 19> kFlags{{
    {"/name", "--name"},
    {"/workflow/type", "--workflow"},
    {"/workflow/input", "--input"},
    {"/workflow/queue", "--queue"},
    {"/signal/name", "--signal"},
    {"/signal/workflow_id", "--signal-to"},
    {"/trigger/cron/expression", "--cron"},
    {"/trigger/cron/timezone", "--timezone"},
    {"/trigger/cron/misfire_policy", "--misfire-policy"},
    {"/trigger/cron/catchup_limit", "--catchup-limit"},
    {"/trigger/cron/misfire_grace", "--misfire-grace"},
    {"/trigger/cron/overlap", "--overlap"},
    {"/trigger/cron/jitter", "--jitter"},
    {"/trigger/event/type", "--event-type"},
    {"/trigger/event/source", "--event-source"},
    {"/trigger/event/subject", "--event-subject"},
    {"/trigger/event/dedupe_by", "--dedupe-by"},
    {"/dedupe_key_strategy", "--dedupe-key-strategy"},
    {"/enabled", "--disabled"},
}};

std::string flag_of(std::string_view pointer) {
  for (const auto& [field, flag] : kFlags) {
    if (field == pointer) return std::string(flag);
  }
  return std::string(pointer);
}

void text_member(JsonWriter& out, std::string_view name, const std::optional<std::string>& value) {
  if (!value) return;
  require_utf8(flag_of(name), *value);
  out.key(name).string(*value);
}

}  // namespace

void ActivityFlags::add(CLI::App& command) {
  command
      .add_option("--file", file_,
                  "The whole definition as JSON, as PUT /v1/activities/ID takes it; - reads it from standard input")
      ->type_name("FILE");
  command.add_option("--name", name_, "A name for people")->type_name("NAME");
  command.add_option("--workflow", workflow_, "The type of workflow to start")->type_name("TYPE");
  command.add_option("--input", input_, "Its input, as JSON")->type_name("JSON");
  command.add_option("--queue", queue_, "Its queue (default: as its type says)")->type_name("QUEUE");
  command
      .add_option("--signal", signal_, "Instead of --workflow, on events: the name of a signal, with the event's data")
      ->type_name("NAME");
  command.add_option("--signal-to", signal_to_, "The workflow that it goes to, such as order-{/data/order_id}")
      ->type_name("WORKFLOW_ID");
  command.add_option("--cron", cron_, "When: five fields, six with seconds first, or @daily and friends")
      ->type_name("EXPRESSION");
  command.add_option("--timezone", timezone_, "In which time zone (default: UTC)")->type_name("ZONE");
  command.add_option("--misfire-policy", misfire_policy_, "What becomes of late firings (default: skip)")
      ->type_name("skip|catchup|compress");
  command.add_option("--catchup-limit", catchup_limit_, "With catchup: at most this many (default: 10)")
      ->type_name("N");
  command.add_option("--misfire-grace", misfire_grace_, "How late is too late (default: 60s)")->type_name("DURATION");
  command.add_option("--overlap", overlap_, "What becomes of a firing while a run is open (default: allow)")
      ->type_name("allow|skip|buffer_one");
  command.add_option("--jitter", jitter_, "Delay each firing by up to this long")->type_name("DURATION");
  command.add_option("--event-type", event_type_, "Instead of --cron: on events of this type")->type_name("TYPE");
  command.add_option("--event-source", event_source_, "On events of this source")->type_name("SOURCE");
  command.add_option("--event-subject", event_subject_, "On events with this subject")->type_name("SUBJECT");
  command.add_option("--dedupe-by", dedupe_by_, "What makes two events the same (default: id)")
      ->type_name("id|source_and_id");
  command
      .add_option("--dedupe-key-strategy", dedupe_key_strategy_,
                  "Another name for --misfire-policy, kept beside it; must equal it")
      ->type_name("skip|catchup|compress");
  command.add_flag("--disabled", disabled_, "Define it, and fire nothing");
}

void ActivityFlags::check_exclusions() const {
  const bool on_event = event_type_ || event_source_ || event_subject_;
  const bool flags = name_ || workflow_ || signal_ || signal_to_ || input_ || queue_ || cron_ || on_event || disabled_;
  if (file_ && flags) throw CommandError(kUsage, "--file replaces the other flags: leave them out");
  if (file_) return;
  if (cron_ && on_event) throw CommandError(kUsage, "--cron and --event-… exclude each other; give one of them");
  if (signal_.has_value() != signal_to_.has_value()) {
    throw CommandError(kUsage, "--signal and --signal-to go together: which signal, to which workflow?");
  }
  if (signal_ && (workflow_ || input_ || queue_)) {
    throw CommandError(kUsage,
                       "--signal sends the event's data to a workflow that is there: leave out --workflow, "
                       "--input and --queue");
  }
  if (!workflow_ && !signal_) {
    throw CommandError(kUsage, "what does it start? Give --workflow TYPE, --signal NAME, or a definition with --file");
  }
  if (!cron_ && !on_event)
    throw CommandError(kUsage, "what fires it? Give --cron, --event-type, or a definition with --file");
}

std::string ActivityFlags::document(const Program& program) const {
  JsonWriter out;
  out.begin_object();
  text_member(out, "name", name_);
  if (disabled_) out.key("enabled").boolean(false);
  if (signal_) {
    out.key("signal").begin_object();
    text_member(out, "workflow_id", signal_to_);
    text_member(out, "name", signal_);
  } else {
    out.key("workflow").begin_object();
    text_member(out, "type", workflow_);
    if (input_) out.key("input").raw(canonical_json(read_json_argument("--input", *input_, program)));
    text_member(out, "queue", queue_);
  }
  out.end_object().key("trigger").begin_object();
  if (cron_) {
    out.key("cron").begin_object();
    text_member(out, "expression", cron_);
    text_member(out, "timezone", timezone_);
    text_member(out, "misfire_policy", misfire_policy_);
    if (catchup_limit_) out.key("catchup_limit").integer(*catchup_limit_);
    text_member(out, "misfire_grace", misfire_grace_);
    text_member(out, "overlap", overlap_);
    text_member(out, "jitter", jitter_);
  } else {
    out.key("event").begin_object();
    text_member(out, "type", event_type_);
    text_member(out, "source", event_source_);
    text_member(out, "subject", event_subject_);
    text_member(out, "dedupe_by", dedupe_by_);
  }
  out.end_object().end_object();
  text_member(out, "dedupe_key_strategy", dedupe_key_strategy_);
  return out.end_object().take();
}

ActivitySettings ActivityFlags::settings(const Program& program) const {
  check_exclusions();
  if (!file_) {
    try {
      return ActivitySettings::parse(parse_json(document(program)));
    } catch (const InvalidField& error) {
      throw CommandError(kUsage, fmt::format("{} {}", flag_of(error.pointer()), error.what()));
    }
  }
  std::string text;
  if (*file_ == "-") {
    text.assign(std::istreambuf_iterator<char>(program.in), {});
  } else {
    std::ifstream file(*file_, std::ios::binary);
    text.assign(std::istreambuf_iterator<char>(file), {});
    if (!file) throw CommandError(kUsage, fmt::format("--file: cannot read {}", *file_));
  }
  try {
    return ActivitySettings::parse(parse_json(text));
  } catch (const InvalidJson& error) {
    throw CommandError(kUsage, fmt::format("--file is not JSON: {}", error.what()));
  } catch (const InvalidField& error) {
    throw CommandError(kUsage, fmt::format("--file: {} {}", error.pointer(), error.what()));
  }
}

}  // namespace hapax
