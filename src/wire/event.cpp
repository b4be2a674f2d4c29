#include "wire/event.h"

#include "core/canonical_json.h"
#include "wire/shown_fields.h"

namespace hapax::wire {

void write_error(JsonWriter& out, const AttemptError& error) {
  out.begin_object();
  fields(WriteShown(out), error);
  out.end_object();
}

void write_event(JsonWriter& out, const Event& event) {
  out.begin_object();
  out.key("no").integer(event.no);
  out.key("at").string(format_time(event.at));
  out.key("kind").string(to_string(event.kind));
  if (event.step > 0) out.key("step").integer(event.step);
  if (!event.name.empty()) out.key("name").string(event.name);
  if (event.key) out.key("key").string(*event.key);
  if (event.execution) out.key("execution_id").string(event.execution->to_string());
  if (is_deduplicated(event)) out.key("deduplicated").boolean(true);
  if (event.until) out.key("until").string(format_time(*event.until));
  if (event.status) out.key("status").string(to_string(*event.status));
  if (event.value) out.key("value").raw(*event.value);
  if (event.error) {
    out.key("error");
    write_error(out, *event.error);
  }
  out.end_object();
}

Event read_event(const Json& document) {
  Event event;
  event.no = integer(document, "no", 0);
  event.at = required(document, "at", parse_time);
  event.kind = required(document, "kind", parse_event_kind);
  event.step = small_integer(document, "step");
  event.name = text(document, "name").value_or("");
  event.key = text(document, "key");
  event.execution = parsed(document, "execution_id", ExecutionId::parse);
  event.until = parsed(document, "until", parse_time);
  event.status = parsed(document, "status", parse_status);
  if (const Json* value = document.find("value")) event.value = canonical_json(*value);
  if (const Json* error = present(document, "error")) event.error = read_error(*error);
  return event;
}

}  // namespace hapax::wire
