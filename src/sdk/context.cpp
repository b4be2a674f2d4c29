#include <algorithm>

#include "core/canonical_json.h"
#include "core/id.h"
#include "core/time.h"
#include "hapax/workflow.h"
#include "sdk/workflow_run.h"

namespace hapax {

namespace {

constexpr Duration kLongestSleep = std::chrono::days(36'525);

// Longer than any wait, and not in the past.
Duration in_bounds(Milliseconds duration) { return std::clamp<Duration>(duration, Duration(0), kLongestSleep); }

Event command(Event::Kind kind, std::string_view name = {}) {
  Event event;
  event.kind = kind;
  event.name = name;
  return event;
}

// A step's id follows from its run and its number.
void refuse_id(const SubmitOptions& options) {
  if (options.id) throw Error("InvalidRequest", "a step is given its id: leave options.id out", {.pointer = "/id"});
}

std::string text_json(std::string_view text) {
  std::string json;
  append_json_string(json, text);
  return json;
}

}  // namespace

std::string Context::type_of(const void* function) const { return run_.declared_.type_of(function); }

std::int32_t Context::start_task(std::string_view type, const std::string& input_json, const SubmitOptions& options) {
  refuse_id(options);
  return run_.begin_step(command(Event::Kind::task, type),
                         detail::to_request(run_.declared_, type, input_json, options));
}

std::int32_t Context::start_child(std::string_view type, const std::string& input_json, const SubmitOptions& options) {
  refuse_id(options);
  Event event = command(Event::Kind::child, type);
  event.key = options.key;
  return run_.begin_step(std::move(event),
                         detail::to_request(run_.declared_, type, input_json, options, Kind::workflow));
}

std::int32_t Context::start_timer(Milliseconds duration) {
  Event event = command(Event::Kind::sleep);
  event.until = run_.now_ + in_bounds(duration);
  return run_.begin_step(std::move(event));
}

std::int32_t Context::start_timer(std::chrono::system_clock::time_point time) {
  Event event = command(Event::Kind::sleep);
  event.until = std::clamp<Time>(std::chrono::ceil<Duration>(time), from_ms(0), run_.now_ + kLongestSleep);
  return run_.begin_step(std::move(event));
}

std::int32_t Context::start_signal_wait(std::string_view name, std::optional<Milliseconds> timeout) {
  detail::check_step_name(name);
  Event event = command(Event::Kind::wait_signal, name);
  if (timeout) event.until = run_.now_ + in_bounds(*timeout);
  return run_.begin_step(std::move(event));
}

void Context::cancel_step(std::int32_t step) { run_.cancel_step(step); }

void Context::publish_json(std::string_view name, const std::string& json) {
  detail::check_step_name(name);
  Event event = command(Event::Kind::publish, name);
  event.value = canonical_json(detail::parse_document(json));
  run_.ask(std::move(event));
}

std::int32_t Context::send_signal(std::string_view workflow_id, std::string_view name,
                                  const std::string& payload_json) {
  detail::check_step_name(name);
  detail::check_step_name(workflow_id);
  Event event = command(Event::Kind::send_signal, name);
  event.key = workflow_id;
  event.value = canonical_json(detail::parse_document(payload_json));
  return run_.begin_step(std::move(event));
}

void Context::wait_all(const std::vector<std::int32_t>& steps) { run_.wait_all(steps); }

std::size_t Context::wait_any(const std::vector<std::int32_t>& steps) { return run_.wait_any(steps); }

std::string Context::result_json(std::int32_t step) { return run_.result(step); }

std::optional<std::string> Context::signal_json(std::int32_t step) {
  const auto& outcome = run_.wait(step);
  if (outcome.kind == Event::Kind::fired) return std::nullopt;
  return outcome.value;
}

std::string Context::record(std::string_view name, const std::function<std::string()>& function) {
  detail::check_step_name(name);
  return run_.record(name, function);
}

std::int32_t Context::last_step() const { return static_cast<std::int32_t>(run_.asked_.size()); }

void Context::undo_later(std::vector<detail::Undo> steps) { run_.undo_later(std::move(steps)); }

void Context::undo_now() {
  run_.check_usable();
  run_.undo_now();
}

void Context::bad_payload(std::int32_t step, const std::string& pointer, const std::string& message) const {
  run_.bad_payload(step, pointer, message);
}

std::chrono::system_clock::time_point Context::now() {
  const std::string json = run_.record("now", [&] { return text_json(format_time(run_.now_)); });
  return parse_time(from_json<std::string>(json)).value();
}

std::uint64_t Context::random() {
  return from_json<std::uint64_t>(run_.record("random", [] {
    std::uint64_t number = 0;
    fill_random(&number, sizeof number);
    return std::to_string(number);
  }));
}

std::string Context::uuid() {
  return from_json<std::string>(run_.record("uuid", [] {
    ExecutionId id;
    fill_random(id.bytes.data(), id.bytes.size());
    id.bytes[6] = static_cast<std::uint8_t>((id.bytes[6] & 0x0f) | 0x40);
    id.bytes[8] = static_cast<std::uint8_t>((id.bytes[8] & 0x3f) | 0x80);
    return text_json(id.to_string());
  }));
}

std::int32_t Context::version(std::string_view change, std::int32_t current) {
  detail::check_step_name(change);
  return run_.version(change, current);
}

void Context::continue_as(const std::string& input_json) { run_.continue_as(detail::parse_document(input_json)); }

std::string Context::workflow_id() const { return run_.workflow_id_; }
std::string Context::run_id() const { return run_.id_.to_string(); }
bool Context::is_replaying() const { return !run_.ahead_.empty(); }

}  // namespace hapax
