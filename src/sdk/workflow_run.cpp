#include "sdk/workflow_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/canonical_json.h"
#include "core/json.h"
#include "core/json_writer.h"
#include "hapax/workflow.h"
#include "sdk/overflow.h"
#include "sdk/thrown.h"

namespace hapax::detail {

namespace {

std::string describe(const Event& command) {
  std::string text(to_string(command.kind));
  if (!command.name.empty()) text += fmt::format(" '{}'", command.name);
  if (command.kind == Event::Kind::child && command.key) text += fmt::format(" as '{}'", *command.key);
  return text;
}

bool same_kind_and_name(const Event& a, const Event& b) { return a.kind == b.kind && a.name == b.name; }

std::string word_of(Event::Kind kind, Status status) {
  std::string word = kind == Event::Kind::child ? "Workflow" : kind == Event::Kind::task ? "Task" : "Step";
  return word + (status == Status::cancelled ? "Cancelled" : status == Status::timed_out ? "TimedOut" : "Failed");
}

std::string words_of(Status status) {
  return status == Status::cancelled ? "was cancelled" : status == Status::timed_out ? "timed out" : "failed";
}

// What the code can wait for.
bool has_outcome(Event::Kind kind) {
  return kind == Event::Kind::task || kind == Event::Kind::child || kind == Event::Kind::sleep ||
         kind == Event::Kind::wait_signal || kind == Event::Kind::send_signal;
}

// The side effect that records where the code was told of a requested cancel: its reason, and the latest event that the
// code knew then. So a replay hands out the outcomes that the code had before, and none of those that came later.
constexpr std::string_view kToldOfCancel = "hapax.cancel_requested";

bool tells_of_cancel(const Event& command) {
  return command.kind == Event::Kind::side_effect && command.name == kToldOfCancel;
}

std::string write_told(const std::string& reason, std::int64_t known) {
  JsonWriter out;
  out.begin_object().key("known").integer(known);
  if (!reason.empty()) out.key("reason").raw(reason);
  return out.end_object().take();
}

std::string reason_of(const std::string& told) {
  const Json document = parse_document(told);
  const Json* reason = document.find("reason");
  return reason ? canonical_json(*reason) : std::string();
}

std::string canonical(const std::string& json) { return canonical_json(parse_document(json)); }

thread_local bool inside_workflow = false;

}  // namespace

bool is_inside_workflow() { return inside_workflow; }

WorkflowRun::WorkflowRun(const Declarations& declared, const WorkflowFunction& function, const StackPool& stacks,
                         const Execution& execution)
    : declared_(declared),
      function_(function),
      id_(execution.id),
      workflow_id_(execution.idempotency_key.value_or("")),
      type_(execution.type),
      input_(execution.input),
      fiber_(stacks, [this] { run_code(); }) {}

// ---- from outside

bool WorkflowRun::learn(std::span<const Event> events) {
  for (const Event& event : events) {
    if (event.no <= known_) continue;
    known_ = event.no;
    was_resumed_ = was_resumed_ || event.kind == Event::Kind::resumed;
    if (event.kind == Event::Kind::cancel_requested) cancel_reason_ = event.value.value_or("");
    if (is_command(event.kind)) {
      if (event.step > static_cast<std::int32_t>(asked_.size())) {
        ahead_.emplace(event.step, event);
      } else if (!confirm(event)) {
        return false;
      }
    } else if (is_outcome(event) && !outcomes_.contains(event.step)) {
      if (event.step <= static_cast<std::int32_t>(asked_.size())) --open_;
      outcomes_.emplace(
          event.step, Outcome{event.no, event.kind, event.status.value_or(Status::completed), event.value.value_or(""),
                              event.error ? std::make_unique<const AttemptError>(*event.error) : nullptr});
    }
  }
  learned_ = known_;
  return unconfirmed_.empty();
}

// Whether the history has exactly what was sent: another worker may have committed its own turn instead.
bool WorkflowRun::confirm(const Event& command) {
  if (unconfirmed_.empty() || unconfirmed_.front().step != command.step) return false;
  const Event& sent = unconfirmed_.front();
  const bool same = same_kind_and_name(sent, command) && sent.value == command.value && sent.until == command.until &&
                    (sent.kind != Event::Kind::send_signal || sent.key == command.key);
  unconfirmed_.pop_front();
  return same;
}

void WorkflowRun::learn_completed(std::int32_t step, const std::optional<std::string>& result) {
  known_ += std::ssize(unconfirmed_) + 1;
  unconfirmed_.clear();
  outcomes_.emplace(step, Outcome{known_, Event::Kind::closed, Status::completed, result.value_or(""), nullptr});
  --open_;
}

TurnRequest WorkflowRun::advance(Time now) {
  now_ = now;
  running_on_ = std::this_thread::get_id();
  inside_workflow = true;
  running_workflow(&type_);
  fiber_.resume();
  running_workflow(nullptr);
  inside_workflow = false;
  running_on_ = {};

  if (stuck_) {
    // It says so below.
  } else if (continued_) {
    check_nothing_left("continue_as_new");
  } else if (!fiber_.ended()) {
    check_nothing_left(fmt::format("a wait for step {}", waits_for_));
  } else if (failed_) {
    check_nothing_left(fmt::format("an exception ({}: {})", failed_->type, failed_->message));
  } else {
    check_nothing_left("the end of the workflow");
  }

  TurnRequest turn;
  turn.seen = known_;
  if (stuck_) {
    turn.end = Turn::Stuck{*stuck_};
    return turn;
  }
  turn.commands = std::exchange(commands_, {});
  if (continued_) {
    turn.end = TurnRequest::Continued{*std::move(continued_)};
  } else if (!fiber_.ended()) {
    turn.end = Turn::Suspended{};
  } else if (failed_) {
    turn.end = Turn::Failed{*failed_};
  } else {
    turn.end = Turn::Completed{result_};
  }
  return turn;
}

// The code has reached its wait or end: this code does not ask for what the history has beyond that.
void WorkflowRun::check_nothing_left(const std::string& found) {
  if (ahead_.empty()) return;
  const auto& [step, expected] = *ahead_.begin();
  stuck_ = presentable_error(std::string(kNonDeterminism),
                             fmt::format("step {}: expected {}, found {}", step, describe(expected), found));
}

// ---- on the fiber

void WorkflowRun::run_code() {
  try {
    Context context(*this);
    const std::string result = function_(context, input_);
    undo_now();
    if (!result.empty()) result_ = canonical(result);
  } catch (const Unwind&) {
    throw;
  } catch (const std::exception& error) {
    failed_ = thrown(error);
  } catch (...) {
    failed_ = thrown_unknown();
  }
  if (!failed_) return;
  try {
    undo_now();
  } catch (const std::exception& error) {
    failed_ = presentable_error(failed_->type, failed_->message + "; undoing it failed, too: " + error.what());
  }
}

void WorkflowRun::check_usable() const {
  fiber_.check_wanted();
  if (running_on_ != std::this_thread::get_id()) {
    throw Error("InvalidRequest",
                "the Context of a workflow was used on a thread that does not run its code: let the work of other "
                "threads be tasks, and wait for them with ctx.start() and ctx.all()");
  }
  if (in_side_effect_) throw Error("InvalidRequest", "a side effect must not use the Context");
}

// What sagas have left is undone before the code asks for anything else.
void WorkflowRun::begin_call() {
  check_usable();
  if (!is_undoing_) undo_now();
}

void WorkflowRun::undo_later(std::vector<Undo> steps) {
  std::move(steps.rbegin(), steps.rend(), std::back_inserter(to_undo_));
}

// All of it, whatever fails. A cancel that is requested meanwhile is told afterwards. Throws what failed first.
void WorkflowRun::undo_now() {
  std::exception_ptr first;
  is_undoing_ = true;
  while (!to_undo_.empty()) {
    const Undo undo = std::move(to_undo_.front());
    to_undo_.pop_front();
    try {
      Event command;
      command.kind = Event::Kind::task;
      command.name = undo.type;
      result(ask(std::move(command), to_request(declared_, undo.type, undo.input_json, undo.options)));
    } catch (const std::exception&) {
      if (!first) first = std::current_exception();
    }
  }
  is_undoing_ = false;
  if (first) std::rethrow_exception(first);
}

void WorkflowRun::leave_for_good() {
  for (;;) fiber_.suspend();
}

const Event* WorkflowRun::recorded() const {
  const auto found = ahead_.find(static_cast<std::int32_t>(asked_.size()) + 1);
  return found == ahead_.end() ? nullptr : &found->second;
}

void WorkflowRun::match(const Event& asked) {
  const Event& expected = *recorded();
  const bool other_child = asked.kind == Event::Kind::child && asked.key && asked.key != expected.key;
  if (same_kind_and_name(asked, expected) && !other_child) return;
  stuck_ = presentable_error(std::string(kNonDeterminism), fmt::format("step {}: expected {}, found {}", expected.step,
                                                                       describe(expected), describe(asked)));
  leave_for_good();
}

// The handler of an update is let finish what it has begun: its caller waits for the answer.
std::int32_t WorkflowRun::begin_step(Event command, std::optional<SubmitRequest> start) {
  begin_call();
  if (!in_handler_) tell_of_cancel();
  return ask(std::move(command), std::move(start));
}

std::int32_t WorkflowRun::ask(Event command, std::optional<SubmitRequest> start) {
  begin_call();
  const bool known = recorded() != nullptr;
  if (known) match(command);
  asked_.push_back({command.kind, command.name});
  const auto step = static_cast<std::int32_t>(asked_.size());
  if (has_outcome(command.kind) && !outcomes_.contains(step)) ++open_;
  if (known) {
    ahead_.erase(step);
    return step;
  }
  command.step = step;
  if (command.kind == Event::Kind::child && !command.key) {
    command.key = start->idempotency_key = child_workflow_id(id_, step);
  }
  unconfirmed_.push_back(command);
  commands_.push_back({std::move(command), std::move(start)});
  return step;
}

namespace {

// What the code gets the first time and at every replay.
[[noreturn]] void side_effect_failed(std::int32_t step, std::string_view name, const AttemptError& error) {
  throw StepFailed("SideEffectFailed", "failed", error.type, error.message,
                   fmt::format("the side effect threw {}: {}", error.type, error.message), step, std::string(name));
}

}  // namespace

std::string WorkflowRun::record(std::string_view name, const std::function<std::string()>& function) {
  begin_call();
  Event command;
  command.kind = Event::Kind::side_effect;
  command.name = name;
  if (const Event* before = recorded()) {
    match(command);
    std::string value = before->value.value_or("");
    const std::optional<AttemptError> error = before->error;
    const std::int32_t step = ask(std::move(command));
    if (error) side_effect_failed(step, name, *error);
    return value;
  }
  in_side_effect_ = true;
  try {
    command.value = canonical(function());
  } catch (const std::exception& error) {
    command.error = thrown(error);
  } catch (...) {
    command.error = thrown_unknown();
  }
  in_side_effect_ = false;
  std::string value = command.value.value_or("");
  const std::optional<AttemptError> error = command.error;
  const std::int32_t step = ask(std::move(command));
  if (error) side_effect_failed(step, name, *error);
  return value;
}

std::int32_t WorkflowRun::version(std::string_view change, std::int32_t current) {
  begin_call();
  Event command;
  command.kind = Event::Kind::version;
  command.name = change;
  std::int32_t value = current;
  if (const Event* before = recorded()) {
    if (!same_kind_and_name(*before, command)) return 0;
    value = from_json<std::int32_t>(before->value.value_or(""));
  }
  command.value = std::to_string(value);
  ask(std::move(command));
  return value;
}

// If the history says that the code was told of the cancel before it asked for anything else: the latest event that it
// knew then.
std::optional<std::int64_t> WorkflowRun::known_when_told() const {
  const Event* before = recorded();
  if (is_undoing_ || !before || !tells_of_cancel(*before)) return std::nullopt;
  const Json told = parse_document(before->value.value_or("{}"));
  const Json* known = told.find("known");
  return known ? known->as_int().value_or(0) : 0;
}

// A task that was begun has its effect: the code gets its outcome first, so that it can undo it.
bool WorkflowRun::may_be_interrupted(std::int32_t step) const {
  const Event::Kind kind = asked_.at(static_cast<std::size_t>(step) - 1).kind;
  return kind != Event::Kind::task && kind != Event::Kind::send_signal;
}

// Throws a requested cancel if the code is to be told of it here. The place is recorded, and every replay throws there
// and nowhere else: what was asked for after the request was made, but before the code knew of it, stays as it is.
void WorkflowRun::tell_of_cancel() {
  if (was_told_of_cancel_ || is_undoing_) return;
  const Event* before = recorded();
  if (before ? !tells_of_cancel(*before) : !cancel_reason_) return;
  was_told_of_cancel_ = true;
  throw CancelRequested(reason_of(record(kToldOfCancel, [&] { return write_told(*cancel_reason_, learned_); })));
}

void WorkflowRun::cancel_step(std::int32_t step) {
  begin_call();
  const Asked& asked = asked_.at(static_cast<std::size_t>(step) - 1);
  Event command;
  command.kind = Event::Kind::cancel_step;
  if (asked.kind == Event::Kind::task || asked.kind == Event::Kind::child) command.name = asked.name;
  command.value = std::to_string(step);
  ask(std::move(command));
}

void WorkflowRun::suspend_on(std::int32_t step) {
  waits_for_ = step;
  fiber_.suspend();
}

const WorkflowRun::Outcome& WorkflowRun::wait(std::int32_t step) {
  begin_call();
  const bool tells = may_be_interrupted(step);
  for (;;) {
    const auto found = outcomes_.find(step);
    const std::int64_t no = found == outcomes_.end() ? INT64_MAX : found->second.no;
    if (const auto known = known_when_told(); tells && known && no > *known) tell_of_cancel();
    if (answer_update(no)) continue;
    if (found != outcomes_.end()) return found->second;
    if (tells) tell_of_cancel();
    suspend_on(step);
  }
}

void WorkflowRun::wait_all(std::span<const std::int32_t> steps) {
  for (const std::int32_t step : steps) wait(step);
}

std::size_t WorkflowRun::wait_any(std::span<const std::int32_t> steps) {
  begin_call();
  if (steps.empty()) throw Error("InvalidRequest", "any() of no futures would wait for ever");
  const bool tells = std::any_of(steps.begin(), steps.end(), [&](auto step) { return may_be_interrupted(step); });
  for (;;) {
    std::optional<std::size_t> first;
    std::int64_t no = INT64_MAX;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const auto found = outcomes_.find(steps[i]);
      if (found == outcomes_.end() || found->second.no >= no) continue;
      first = i;
      no = found->second.no;
    }
    if (const auto known = known_when_told(); tells && known && no > *known) tell_of_cancel();
    if (answer_update(no)) continue;
    if (first) return *first;
    if (tells) tell_of_cancel();
    suspend_on(steps.front());
  }
}

std::string WorkflowRun::result(std::int32_t step) {
  const Outcome& outcome = wait(step);
  if (outcome.kind == Event::Kind::closed && outcome.status != Status::completed) step_failed(step, outcome);
  return outcome.value;
}

void WorkflowRun::step_failed(std::int32_t step, const Outcome& outcome) const {
  const Asked& asked = asked_.at(static_cast<std::size_t>(step) - 1);
  const AttemptError error = outcome.error ? *outcome.error : AttemptError{};
  std::string what = fmt::format("{} '{}' {}", to_string(asked.kind), asked.name, words_of(outcome.status));
  if (!error.type.empty()) what += fmt::format(": {}: {}", error.type, error.message);
  throw StepFailed(word_of(asked.kind, outcome.status), std::string(to_string(outcome.status)), error.type,
                   error.message, what, step, asked.name);
}

void WorkflowRun::bad_payload(std::int32_t step, const std::string& pointer, const std::string& message) const {
  const Asked& asked = asked_.at(static_cast<std::size_t>(step) - 1);
  const std::string_view given = asked.kind == Event::Kind::wait_signal   ? "payload"
                                 : asked.kind == Event::Kind::side_effect ? "recorded value"
                                                                          : "result";
  throw BadPayload("BadPayload", std::string(to_string(Status::failed)), "InvalidJson", message,
                   fmt::format("step {}, {} '{}': its {} does not fit{}{}: {}", step, to_string(asked.kind), asked.name,
                               given, pointer.empty() ? "" : " at ", pointer, message),
                   step, asked.name, pointer);
}

void WorkflowRun::continue_as(Json input) {
  begin_call();
  tell_of_cancel();
  continued_ = std::move(input);
  leave_for_good();
}

}  // namespace hapax::detail
