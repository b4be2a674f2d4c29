#include "cli/submit.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>

#include "cli/receipt_words.h"
#include "cli/submission_flags.h"
#include "cli/target.h"
#include "wire/write_answer.h"

namespace hapax {

namespace {

using Steady = std::chrono::steady_clock;

struct SubmitFlags {
  TargetFlags target;
  SubmissionFlags submission;
  bool dry_run = false;
  CLI::Option* wait = nullptr;
  std::string wait_text;
};

void print_json(const Program& program, const SubmitResult& result) {
  JsonWriter out;
  wire::write_submit_result(out, result);
  program.out << out.text() << std::endl;
}

// How long to wait: nothing without --wait, forever for a bare one. A word after --wait that is not a duration is the
// input.
std::optional<Duration> read_wait(SubmitFlags& flags) {
  if (flags.wait->count() == 0) return {};
  if (flags.wait_text.empty()) return Duration::max();
  if (const auto duration = parse_duration(flags.wait_text)) return duration;
  if (flags.submission.has_input()) {
    throw CommandError(kUsage, fmt::format("--wait takes a duration such as 30s, not \"{}\"", flags.wait_text));
  }
  flags.submission.set_input(flags.wait_text);
  return Duration::max();
}

// The name by which a later command finds it.
std::string handle_of(const Execution& execution) {
  return execution.kind == Kind::workflow ? execution.idempotency_key.value_or("") : execution.id.to_string();
}

std::string name_of(const Execution& execution) {
  return (execution.kind == Kind::workflow ? "workflow " : "task ") + handle_of(execution);
}

// Waits in pieces, each within what a server allows, and shows progress to a person.
Execution wait_for(const Program& program, const Target& target, Execution execution, Duration longest) {
  constexpr Duration kPiece = std::chrono::seconds(20), kPieceOnTerminal = std::chrono::seconds(1);
  const auto start = Steady::now();
  while (!is_closed(execution.status)) {
    const auto waited = std::chrono::duration_cast<Duration>(Steady::now() - start);
    if (waited >= longest) break;
    const Duration piece = std::min(program.terminal ? kPieceOnTerminal : kPiece, longest - waited);
    const auto found = await<std::optional<Execution>>([&](auto reply) {
      if (execution.kind == Kind::workflow) {
        target.engine->wait_workflow(target.name_space, execution.idempotency_key.value_or(""), piece,
                                     std::move(reply));
      } else {
        target.engine->wait_closed(target.name_space, execution.id, piece, std::move(reply));
      }
    });
    if (!found) throw CommandError(kNotFound, fmt::format("{} is gone: its retention is over", name_of(execution)));
    execution = *found;
    if (program.terminal) {
      program.err << fmt::format("\r\x1b[K{}, waiting for {}", to_string(execution.status), format_age(waited))
                  << std::flush;
    }
  }
  if (program.terminal) program.err << "\r\x1b[K" << std::flush;
  return execution;
}

int print_waited(const Program& program, const Receipt& receipt, Duration longest, bool json) {
  const Execution& execution = receipt.execution;
  if (json) {
    print_json(program, receipt);
  } else if (is_closed(execution.status)) {
    program.out << describe_state(execution, Paint::of(program)) << std::endl;
  } else {
    program.err << fmt::format("hapax: {} is still {} after {}; ask again with: hapax get {}\n", name_of(execution),
                               to_string(execution.status), format_duration(longest), handle_of(execution));
  }
  if (!is_closed(execution.status)) return kFailed;
  return execution.status == Status::completed ? kOk : kTaskFailed;
}

int submit(const Program& program, SubmitFlags& flags) {
  const auto wait = read_wait(flags);
  SubmitRequest request = flags.submission.request(program);
  request.dry_run = flags.dry_run;
  const bool json = flags.target.json();
  const Target target = flags.target.open_or_create(program);
  SubmitResult result = submit_one(*target.engine, target.name_space, std::move(request));

  if (const auto* refusal = std::get_if<Refusal>(&result)) {
    if (json) print_json(program, result);
    if (!json) program.err << "hapax: " << describe_refusal(*refusal) << "\n";
    return exit_code_of(*refusal);
  }
  auto& receipt = std::get<Receipt>(result);
  const bool waits = wait && !receipt.dry_run && !receipt.result_expired;
  if (json && !waits) print_json(program, result);
  if (!json) program.out << describe_receipt(receipt, SystemClock().now(), Paint::of(program)) << std::endl;
  if (!waits) return kOk;
  const bool was_closed = is_closed(receipt.execution.status);
  receipt.execution = wait_for(program, target, std::move(receipt.execution), *wait);
  if (was_closed && !json) return receipt.execution.status == Status::completed ? kOk : kTaskFailed;
  return print_waited(program, receipt, *wait, json);
}

}  // namespace

void add_submission(CLI::App& app, const Program& program, Action& action, const std::string& name,
                    const std::string& description, Kind kind) {
  auto* command = app.add_subcommand(name, description);
  auto flags = std::make_shared<SubmitFlags>();
  flags->submission.add(*command, kind);
  command->add_flag("--dry-run", flags->dry_run, "Tell what would happen, and change nothing");
  flags->wait =
      command->add_option("--wait", flags->wait_text, "Wait for the result, at most so long if a duration follows")
          ->type_name("[DURATION]")
          ->expected(0, 1);
  flags->target.add(*command);
  command->callback([&program, &action, flags] { action = [&program, flags] { return submit(program, *flags); }; });
}

void add_submit(CLI::App& app, const Program& program, Action& action) {
  add_submission(app, program, action, "submit", "Submit a task", Kind::task);
}

}  // namespace hapax
