#include "core/signal_target.h"

#include <fmt/format.h>

#include "core/canonical_json.h"
#include "core/name.h"

namespace hapax {

namespace {

// Calls text(…) and pointer(…) for the parts in order. Returns what is wrong, if anything is.
template <class Text, class Pointer>
std::optional<std::string> for_each_part(std::string_view all, Text text, Pointer pointer) {
  while (!all.empty()) {
    const std::size_t brace = all.find_first_of("{}");
    text(all.substr(0, brace));
    if (brace == std::string_view::npos) return std::nullopt;
    const std::size_t end = all.find_first_of("{}", brace + 1);
    if (all[brace] == '}' || end == std::string_view::npos || all[end] == '{') {
      return "has a brace without its other half; the parts in braces are JSON Pointers into the event, as in "
             "\"order-{/data/order_id}\"";
    }
    const std::string_view inside = all.substr(brace + 1, end - brace - 1);
    if (inside.empty() || !is_json_pointer(inside)) {
      return fmt::format(
          "must have a JSON Pointer into the event between braces, such as {{/data/order_id}}, not {{{}}}", inside);
    }
    pointer(inside);
    all.remove_prefix(end + 1);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> check_signal_target(std::string_view text) {
  if (const auto wrong = check_idempotency_key(text)) return wrong;
  return for_each_part(text, [](std::string_view) {}, [](std::string_view) {});
}

std::variant<std::string, NoSignalTarget> signal_target(std::string_view text, const Json& event) {
  std::string id;
  std::optional<std::string> missing;
  for_each_part(
      text, [&](std::string_view plain) { id += plain; },
      [&](std::string_view pointer) {
        const Json* value = event.at(pointer);
        const bool is_plain =
            value && (value->is(Json::Kind::string) || value->is(Json::Kind::number) || value->is(Json::Kind::boolean));
        if (!is_plain) {
          if (!missing) missing = std::string(pointer);
        } else {
          id += value->is(Json::Kind::string) ? value->text : canonical_json(*value);
        }
      });
  if (missing) return NoSignalTarget{fmt::format("the event has no text or number at {}", *missing)};
  if (const auto wrong = check_idempotency_key(id)) {
    return NoSignalTarget{fmt::format("the event makes the workflow id \"{}\", which {}", id, *wrong)};
  }
  return id;
}

}  // namespace hapax
