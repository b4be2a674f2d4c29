#include "core/notes.h"

#include "core/canonical_json.h"
#include "core/json_writer.h"

namespace hapax {

std::string write_notes(const Notes& notes) {
  JsonWriter out;
  out.begin_object().key("attempt").integer(notes.attempt);
  if (notes.dropped > 0) out.key("dropped").integer(notes.dropped);
  if (!notes.log.empty()) {
    out.key("log").begin_array();
    for (const std::string& line : notes.log) out.string(line);
    out.end_array();
  }
  if (notes.progress) out.key("progress").raw(*notes.progress);
  return out.end_object().take();
}

namespace {

// The latest lines that fit.
void shorten(Notes& notes) {
  std::size_t bytes = 0, kept = 0;
  for (auto line = notes.log.rbegin(); line != notes.log.rend(); ++line, ++kept) {
    bytes += line->size();
    if (bytes > kMaxLogBytes) break;
  }
  const auto surplus = static_cast<std::ptrdiff_t>(notes.log.size() - kept);
  notes.dropped += surplus;
  notes.log.erase(notes.log.begin(), notes.log.begin() + surplus);
}

}  // namespace

std::optional<Notes> read_notes(const Execution& execution) {
  if (!execution.notes) return std::nullopt;
  const Json document = parse_json(*execution.notes);
  Notes notes;
  if (const Json* attempt = document.find("attempt")) {
    notes.attempt = static_cast<std::int32_t>(attempt->as_int().value_or(0));
  }
  if (const Json* dropped = document.find("dropped")) notes.dropped = dropped->as_int().value_or(0);
  if (const Json* log = document.find("log")) {
    for (const Json& line : log->items) notes.log.push_back(line.text);
  }
  if (const Json* progress = document.find("progress")) notes.progress = canonical_json(*progress);
  return notes;
}

void take_note(Execution& execution, const std::optional<std::string>& progress, const std::vector<std::string>& log) {
  if (!progress && log.empty()) return;
  Notes notes = read_notes(execution).value_or(Notes{});
  if (notes.attempt != execution.attempt) notes = Notes{execution.attempt, std::nullopt, {}, 0};
  if (progress) notes.progress = progress;
  notes.log.insert(notes.log.end(), log.begin(), log.end());
  shorten(notes);
  execution.notes = write_notes(notes);
}

}  // namespace hapax
