// Turns as a worker sends them.

#include <fmt/core.h>

#include <limits>

#include "core/canonical_json.h"
#include "core/field.h"
#include "engine/check_request.h"
#include "wire/read_request.h"

namespace hapax::wire {

namespace {

constexpr std::size_t kMaxTurns = Engine::kMaxBatch;
constexpr std::int64_t kMaxStep = std::numeric_limits<std::int32_t>::max();

std::string item_pointer(const std::string& at, std::size_t index) { return fmt::format("{}/{}", at, index); }

// Moves the member out of its object: inputs may be large.
Json take(Json& object, std::string_view name) {
  for (auto& [member, value] : object.members) {
    if (member == name) return std::move(value);
  }
  return {};
}

std::optional<Event::Kind> parse_command_kind(std::string_view word) {
  const auto kind = parse_event_kind(word);
  return kind && is_command(*kind) ? kind : std::nullopt;
}

std::string command_name(FieldReader& fields) { return fields.required("name", fields.string("name")); }

AttemptError read_turn_error(FieldReader& fields) {
  const Json* error = fields.object("error");
  if (error == nullptr) throw InvalidField(fields.pointer("error"), "is required");
  FieldReader members(*error, fields.pointer("error"));
  AttemptError read = read_error(members);
  members.done();
  return read;
}

// A task that its worker began before this turn was committed.
TurnRequest::WithinTurn read_begun(const Json& document, const std::string& at) {
  FieldReader fields(document, at);
  TurnRequest::WithinTurn within;
  Turn::Begun& begun = within.begun;
  const auto token = LeaseToken::parse(fields.required("lease", fields.string("lease")));
  if (!token) throw InvalidField(fields.pointer("lease"), "is not a lease");
  begun.secret = token->secret;
  begun.worker = fields.required("worker", fields.string("worker"));
  begun.lease = fields.required("lease_for", fields.duration("lease_for"));
  const Json* completed = fields.object("completed");
  fields.done();
  if (completed) {
    FieldReader members(*completed, fields.pointer("completed"));
    const Json* result = members.any("result");
    members.done();
    begun.completed = Report::Completed{result ? std::optional(canonical_json(*result)) : std::nullopt};
  }
  return within;
}

TurnRequest::Command read_command(Json& document, const std::string& at) {
  FieldReader fields(document, at);
  TurnRequest::Command command;
  Event& event = command.event;
  event.step = static_cast<std::int32_t>(fields.required("step", fields.integer("step", 1, kMaxStep)));
  event.kind = fields.required(
      "kind", fields.word("kind", parse_command_kind,
                          "task, child, sleep, wait_signal, side_effect, version, cancel_step, publish, send_signal"));
  switch (event.kind) {
    case Event::Kind::task:
      if (const Json* begun = fields.object("begun")) command.within_turn = read_begun(*begun, fields.pointer("begun"));
      [[fallthrough]];
    case Event::Kind::child:
      if (fields.object("start") == nullptr) throw InvalidField(fields.pointer("start"), "is required");
      break;
    case Event::Kind::sleep: event.until = fields.required("until", fields.time("until")); break;
    case Event::Kind::wait_signal:
      event.name = command_name(fields);
      event.until = fields.time("until");
      break;
    case Event::Kind::version:
      event.name = command_name(fields);
      event.value = std::to_string(fields.required("value", fields.integer("value", 0, kMaxStep)));
      break;
    case Event::Kind::cancel_step:
      event.name = fields.string("name").value_or("");
      event.value = std::to_string(fields.required("value", fields.integer("value", 1, kMaxStep)));
      break;
    case Event::Kind::publish: {
      event.name = command_name(fields);
      const Json* value = fields.any("value");
      if (value == nullptr) throw InvalidField(fields.pointer("value"), "is required");
      event.value = canonical_json(*value);
      break;
    }
    case Event::Kind::send_signal:
      event.name = command_name(fields);
      event.key = fields.required("workflow_id", fields.string("workflow_id"));
      if (const Json* payload = fields.any("value")) event.value = canonical_json(*payload);
      break;
    default: {
      event.name = command_name(fields);
      const Json* value = fields.any("value");
      if (value != nullptr) {
        event.value = canonical_json(*value);
      } else if (fields.object("error") != nullptr) {
        event.error = read_turn_error(fields);
      } else {
        throw InvalidField(fields.pointer("value"), "is required, or an error instead");
      }
    }
  }
  fields.done();
  if (event.kind == Event::Kind::task || event.kind == Event::Kind::child) {
    const Kind kind = event.kind == Event::Kind::child ? Kind::workflow : Kind::task;
    Json start = take(document, "start");
    const Json* id = start.find("id");
    if (id != nullptr && !id->is(Json::Kind::null)) {
      throw InvalidField(at + "/start/id", "is given by the server, from the run and the step");
    }
    command.start = read_submit(std::move(start), at + "/start", kind);
    event.name = command.start->type;
  }
  return command;
}

decltype(TurnRequest::end) read_end(Json& document, const std::string& at) {
  FieldReader fields(document, at);
  const std::string kind = fields.required("kind", fields.string("kind"));
  decltype(TurnRequest::end) end;
  if (kind == "completed") {
    const Json* result = fields.any("result");
    end = Turn::Completed{result != nullptr ? std::optional(canonical_json(*result)) : std::nullopt};
  } else if (kind == "failed") {
    end = Turn::Failed{read_turn_error(fields)};
  } else if (kind == "stuck") {
    end = Turn::Stuck{read_turn_error(fields)};
  } else if (kind == "continued") {
    fields.any("input");
    end = TurnRequest::Continued{};
  } else if (kind == "unfinished") {
    end = Turn::Unfinished{};
  } else if (kind != "suspended") {
    throw InvalidField(
        fields.pointer("kind"),
        "must be one of suspended, unfinished, completed, failed, stuck, continued, not \"" + kind + "\"");
  }
  fields.done();
  if (auto* continued = std::get_if<TurnRequest::Continued>(&end)) continued->input = take(document, "input");
  return end;
}

TurnItem read_turn(Json& document, const std::string& at) {
  FieldReader fields(document, at);
  TurnItem item;
  item.lease = fields.required("lease", fields.string("lease"));
  item.turn.seen = fields.required("seen", fields.integer("seen", 0, std::numeric_limits<std::int64_t>::max()));
  if (const Json* step = fields.object("step")) item.step = read_finish_item(*step, fields.pointer("step"));
  fields.array("commands");
  if (fields.object("end") == nullptr) throw InvalidField(fields.pointer("end"), "is required");
  fields.done();
  Json list = take(document, "commands"), end = take(document, "end");
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    const std::string place = item_pointer(at + "/commands", i);
    item.turn.commands.push_back(read_command(list.items[i], place));
  }
  item.turn.end = read_end(end, at + "/end");
  try {
    check(item.turn);
  } catch (const InvalidField& error) {
    throw InvalidField(at + error.pointer(), error.what(), error.code());
  }
  return item;
}

}  // namespace

std::vector<TurnItem> read_turns(Json document) {
  FieldReader fields(document);
  const Json* turns = fields.array("turns");
  fields.done();
  if (turns == nullptr) throw InvalidField("/turns", "is required");
  if (turns->items.empty() || turns->items.size() > kMaxTurns) {
    throw InvalidField("/turns", fmt::format("must have 1 to {} items, not {}", kMaxTurns, turns->items.size()));
  }
  Json list = take(document, "turns");
  std::vector<TurnItem> items;
  items.reserve(list.items.size());
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    items.push_back(read_turn(list.items[i], item_pointer("/turns", i)));
  }
  return items;
}

}  // namespace hapax::wire
