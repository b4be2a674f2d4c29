#include <CLI/CLI.hpp>
#include <ostream>

#include "cli/activity_words.h"
#include "cli/submission_flags.h"
#include "cli/target.h"
#include "core/canonical_json.h"
#include "core/field.h"
#include "wire/activity.h"

namespace hapax {

namespace {

struct EventFlags {
  TargetFlags target;
  std::string type, data, source = "/hapax/cli";
  std::optional<std::string> id, subject;
};

CloudEvent event_of(const Program& program, const EventFlags& flags) {
  JsonWriter out;
  out.begin_object().key("specversion").string("1.0");
  const auto add = [&](std::string_view name, const std::string& flag, const std::string& text) {
    require_utf8(flag, text);
    out.key(name).string(text);
  };
  add("type", "TYPE", flags.type);
  add("source", "--source", flags.source);
  if (flags.id) add("id", "--id", *flags.id);
  if (flags.subject) add("subject", "--subject", *flags.subject);
  if (!flags.data.empty()) {
    out.key("datacontenttype").string("application/json");
    out.key("data").raw(canonical_json(read_json_argument("DATA", flags.data, program)));
  }
  try {
    return CloudEvent::parse(parse_json(out.end_object().text()));
  } catch (const InvalidField& error) {
    throw CommandError(kUsage, error.pointer().substr(1) + " " + error.what());
  }
}

int send(const Program& program, const EventFlags& flags) {
  const std::vector<CloudEvent> events{event_of(program, flags)};
  const Target target = flags.target.open(program);
  const auto receipts = await<std::vector<EventReceipt>>(
      [&](auto reply) { target.engine->activities().deliver(target.name_space, events, std::move(reply)); });
  const EventReceipt& receipt = receipts.at(0);
  if (flags.target.json()) {
    JsonWriter out;
    wire::write_event_receipts(out, receipts);
    program.out << out.text() << std::endl;
  } else {
    if (receipt.id_assigned) program.err << "the event was given the id " << receipt.id << std::endl;
    program.out << describe_receipt(receipt) << std::flush;
  }
  return receipt.conflicts.empty() ? kOk : kRefused;
}

}  // namespace

void add_event(CLI::App& app, const Program& program, Action& action) {
  auto* command = app.add_subcommand("event", "Send a CloudEvent: starts the activities that match, once for each id");
  auto flags = std::make_shared<EventFlags>();
  command->add_option("TYPE", flags->type, "The event's type")->required()->type_name("");
  command->add_option("DATA", flags->data, "Its data as JSON; - reads it from standard input")->type_name("");
  command->add_option("--id", flags->id, "Its id; a repeated one starts nothing (default: a new one, printed)")
      ->type_name("ID");
  command->add_option("--source", flags->source, "Where it comes from (default: /hapax/cli)")->type_name("SOURCE");
  command->add_option("--subject", flags->subject, "Its subject")->type_name("SUBJECT");
  flags->target.add(*command);
  command->callback([&program, &action, flags] { action = [&program, flags] { return send(program, *flags); }; });
}

}  // namespace hapax
