#include "cli/receipt_words.h"

#include <fmt/format.h>

#include "cli/command.h"

namespace hapax {

std::string describe_state(const Execution& execution, const Paint& paint) {
  std::string text = paint(colour_of(execution.status), to_string(execution.status));
  if (execution.status == Status::completed && execution.result) text += ", result " + printable(*execution.result);
  if (is_closed(execution.status) && execution.status != Status::completed) {
    if (execution.attempt > 0 && execution.kind == Kind::task) {
      text += fmt::format(" after {} attempt{}", execution.attempt, execution.attempt == 1 ? "" : "s");
    }
    if (execution.error)
      text += fmt::format(": {}: {}", printable(execution.error->type), printable(execution.error->message));
  }
  return text;
}

namespace {

std::string created_words(const Receipt& receipt) {
  const Execution& execution = receipt.execution;
  if (execution.kind == Kind::workflow) {
    if (receipt.dry_run) return "would start a workflow";
    return fmt::format("started {} ({})", printable(execution.idempotency_key.value_or("")), execution.id.to_string());
  }
  return receipt.dry_run ? "would create a task" : "created " + execution.id.to_string();
}

}  // namespace

std::string describe_receipt(const Receipt& receipt, Time now, const Paint& paint) {
  const Execution& execution = receipt.execution;
  std::string text;
  if (receipt.created) {
    text = fmt::format("{} in queue {}", paint(Colour::green, created_words(receipt)), execution.queue);
    if (execution.run_at > now + std::chrono::seconds(1)) {
      text += fmt::format(", to run {} ({})", relative(execution.run_at, now), format_time(execution.run_at));
    }
    if (receipt.match && receipt.match->superseded) {
      text += fmt::format(", in place of {}", receipt.match->superseded->to_string());
    }
    return text;
  }
  text =
      fmt::format("{} since {} ({}): {} {}", paint(Colour::yellow, "already there"), format_time(execution.created_at),
                  relative(execution.created_at, now), execution.id.to_string(), describe_state(execution, paint));
  if (receipt.result_expired) text += "; its result is past its retention";
  return text;
}

std::string describe_refusal(const Refusal& refusal) {
  std::string text = refusal.message;
  if (refusal.existing) text += fmt::format(" ({})", refusal.existing->id.to_string());
  return text;
}

int exit_code_of(const Refusal& refusal) {
  switch (refusal.code) {
    case Refusal::Code::idempotency_conflict:
    case Refusal::Code::task_already_exists:
    case Refusal::Code::task_already_completed: return kRefused;
    case Refusal::Code::store_corrupt: return kFailed;
    default: return kUsage;
  }
}

SubmitResult submit_one(Engine& engine, const std::string& name_space, SubmitRequest request) {
  std::vector<SubmitRequest> requests;
  requests.push_back(std::move(request));
  auto results = await<std::vector<SubmitResult>>(
      [&](auto reply) { engine.submit(name_space, std::move(requests), std::move(reply)); });
  return std::move(results.at(0));
}

}  // namespace hapax
