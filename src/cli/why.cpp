#include <CLI/CLI.hpp>
#include <ostream>

#include "cli/command.h"
#include "cli/execution_id.h"
#include "cli/find_execution.h"
#include "cli/paint.h"
#include "cli/target.h"
#include "cli/terminal_text.h"
#include "wire/write_answer.h"

namespace hapax {

namespace {

struct WhyFlags {
  TargetFlags target;
  std::string id;
};

std::optional<Why> find_why(const Target& target, const std::string& text) {
  if (const auto id = ExecutionId::parse(text)) {
    if (auto found = target.engine->why(target.name_space, *id)) return found;
  }
  return target.engine->why_workflow(target.name_space, text);
}

int why(const Program& program, const WhyFlags& flags) {
  require_workflow_id("ID", flags.id);
  const Target target = flags.target.open(program);
  const auto found = find_why(target, flags.id);
  if (!found) throw execution_not_found(flags.id);
  if (flags.target.json()) {
    JsonWriter out;
    wire::write_why(out, *found);
    program.out << out.text() << std::endl;
    return kOk;
  }
  const auto status = parse_status(found->state);
  const Paint paint = Paint::of(program);
  program.out << paint(status ? colour_of(*status) : Colour::none, printable(found->state)) << "\n";
  for (const std::string& sentence : found->sentences) program.out << printable(sentence) << "\n";
  program.out.flush();
  return kOk;
}

}  // namespace

void add_why(CLI::App& app, const Program& program, Action& action) {
  auto* command = app.add_subcommand("why", "Say why a task or workflow does not run, or how it ended");
  auto flags = std::make_shared<WhyFlags>();
  command->add_option("ID", flags->id, "The task's id, or the workflow's")->required()->type_name("");
  flags->target.add(*command);
  command->callback([&program, &action, flags] { action = [&program, flags] { return why(program, *flags); }; });
}

}  // namespace hapax
