#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <ostream>

#include "cli/activity_words.h"
#include "cli/submission_flags.h"
#include "cli/target.h"
#include "core/name.h"
#include "wire/activity.h"

namespace hapax {

namespace {

struct TriggerFlags {
  TargetFlags target;
  std::string id;
  std::optional<std::string> key;
};

int trigger(const Program& program, const TriggerFlags& flags) {
  require_activity_id(flags.id);
  if (flags.key) {
    require_utf8("--key", *flags.key);
    if (const auto wrong = check_request_key(*flags.key)) throw CommandError(kUsage, "--key " + *wrong);
  }
  const Target target = flags.target.open(program);
  const auto triggered = await<std::optional<Triggered>>([&](auto reply) {
    target.engine->activities().trigger(target.name_space, flags.id, flags.key, std::move(reply));
  });
  if (!triggered) throw activity_not_found(flags.id);
  if (flags.target.json()) {
    JsonWriter out;
    wire::write_triggered(out, *triggered);
    program.out << out.text() << std::endl;
  } else {
    program.out << (triggered->created ? "started " : "already started under this key: ")
                << printable(triggered->workflow_id) << std::endl;
  }
  return kOk;
}

}  // namespace

void add_trigger(CLI::App& app, const Program& program, Action& action) {
  auto* command = app.add_subcommand("trigger", "Start a run of an activity now, whatever its schedule says");
  auto flags = std::make_shared<TriggerFlags>();
  command->add_option("ID", flags->id, "The activity's id")->required()->type_name("");
  command->add_option("--key", flags->key, "The idempotency key of this request: one run per key")->type_name("KEY");
  flags->target.add(*command);
  command->callback([&program, &action, flags] { action = [&program, flags] { return trigger(program, *flags); }; });
}

}  // namespace hapax
