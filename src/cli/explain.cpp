#include <CLI/CLI.hpp>
#include <ostream>

#include "cli/command.h"
#include "cli/explanation.h"
#include "cli/receipt_words.h"
#include "cli/submission_flags.h"
#include "cli/table.h"
#include "cli/target.h"
#include "wire/write_answer.h"

namespace hapax {

namespace {

struct ExplainFlags {
  TargetFlags target;
  SubmissionFlags submission;
};

ExplanationFacts gather(const Target& target, SubmitRequest request) {
  ExplanationFacts facts;
  facts.now = SystemClock().now();
  facts.request = request;
  facts.type = target.engine->type(target.name_space, request.type);
  const std::string queue = request.queue ? *request.queue : facts.type.settings.queue.value_or("default");
  facts.queue = target.engine->queue(target.name_space, queue);
  if (request.idempotency_key) {
    facts.found =
        target.engine->find_identity(target.name_space, request.type, request.scope, queue, *request.idempotency_key);
  }
  request.dry_run = true;
  request.on_duplicate = OnDuplicate::give_back;
  facts.result = submit_one(*target.engine, target.name_space, std::move(request));
  const auto* receipt = std::get_if<Receipt>(&facts.result);
  if (receipt && receipt->match && receipt->match->superseded) {
    facts.superseded = target.engine->find(target.name_space, *receipt->match->superseded);
  }
  return facts;
}

void print_json(std::ostream& out, const Explanation& explanation, const SubmitResult& result) {
  JsonWriter json;
  json.begin_object().key("outcome").string(explanation.outcome).key("explanation").begin_object();
  for (const auto& line : explanation.lines) json.key(line.about).string(line.says);
  json.end_object().key("answer");
  wire::write_submit_result(json, result);
  out << json.end_object().text() << std::endl;
}

int explain_submission(const Program& program, const ExplainFlags& flags) {
  SubmitRequest request = flags.submission.request(program);
  const Target target = flags.target.open(program);
  const ExplanationFacts facts = gather(target, std::move(request));
  const Explanation explanation = explain(facts);
  if (flags.target.json()) {
    print_json(program.out, explanation, facts.result);
  } else {
    std::vector<std::pair<std::string, Cell>> fields;
    for (const auto& line : explanation.lines) {
      fields.emplace_back(line.about, Cell(line.says, line.about == "outcome" ? Colour::bold : Colour::none));
    }
    program.out << render_fields(Paint::of(program), fields) << std::flush;
  }
  if (explanation.outcome == "invalid") return kUsage;
  return explanation.outcome == "conflict" || explanation.outcome == "already_exists" ? kRefused : kOk;
}

}  // namespace

void add_explain(CLI::App& app, const Program& program, Action& action) {
  auto* command = app.add_subcommand("explain", "Say what a submission would meet and why, and change nothing");
  auto flags = std::make_shared<ExplainFlags>();
  flags->submission.add(*command);
  flags->target.add(*command);
  command->callback(
      [&program, &action, flags] { action = [&program, flags] { return explain_submission(program, *flags); }; });
}

}  // namespace hapax
