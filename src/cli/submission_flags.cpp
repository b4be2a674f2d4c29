#include "cli/submission_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <iostream>
#include <iterator>
#include <utility>

#include "config/nearest.h"
#include "core/canonical_json.h"
#include "core/field.h"
#include "core/json_writer.h"
#include "core/name.h"
#include "wire/read_request.h"

namespace hapax {

namespace {

struct FlagOfField {
  std::string_view pointer, flag, words;  // `words`: what it may be, where that is a short list
};

constexpr std::array kFlags{
    FlagOfField{"/type", "TYPE", ""},
    FlagOfField{"/input", "INPUT", ""},
    FlagOfField{"/idempotency_key", "--key", ""},
    FlagOfField{"/workflow_id", "WORKFLOW_ID", ""},
    FlagOfField{"/scope", "--scope", ""},
    FlagOfField{"/queue", "--queue", ""},
    FlagOfField{"/identity", "--identity", "caller_provided|strict|contextual|always_unique"},
    FlagOfField{"/identity_fields", "--identity-field", ""},
    FlagOfField{"/reuse", "--reuse", "allow_failed|reject|allow_closed|replace"},
    FlagOfField{"/on_duplicate", "--on-duplicate", "return|error"},
    FlagOfField{"/idempotency_ttl", "--ttl", ""},
    FlagOfField{"/priority", "--priority", ""},
    FlagOfField{"/delay", "--delay", ""},
    FlagOfField{"/run_at", "--run-at", ""},
    FlagOfField{"/max_attempts", "--max-attempts", ""},
    FlagOfField{"/retry/initial", "--retry-initial", ""},
    FlagOfField{"/retry/factor", "--retry-factor", ""},
    FlagOfField{"/retry/max", "--retry-max", ""},
    FlagOfField{"/timeout", "--timeout", ""},
    FlagOfField{"/deadline", "--deadline", ""},
    FlagOfField{"/concurrency_key", "--concurrency-key", ""},
    FlagOfField{"/headers", "--header", ""},
    FlagOfField{"/tags", "--tag", ""},
    FlagOfField{"/id", "--id", ""},
};

const FlagOfField* flag_of(std::string_view pointer) {
  for (const FlagOfField& field : kFlags) {
    if (pointer == field.pointer || pointer.starts_with(std::string(field.pointer) + "/")) return &field;
  }
  return nullptr;
}

std::string words_of(std::string_view pointer) { return std::string(flag_of(pointer)->words); }

std::vector<std::string> split_words(std::string_view words) {
  std::vector<std::string> out;
  while (!words.empty()) {
    const auto bar = words.find('|');
    out.emplace_back(words.substr(0, bar));
    words = bar == std::string_view::npos ? std::string_view() : words.substr(bar + 1);
  }
  return out;
}

// Throws, with the flag's name instead of the field's, and the nearest word to a mistyped one.
[[noreturn]] void refuse(const InvalidField& error, const Json& document) {
  const FlagOfField* field = flag_of(error.pointer());
  if (field == nullptr) throw CommandError(kUsage, fmt::format("{} {}", error.pointer(), error.what()));
  const Json* value = document.at(error.pointer());
  const std::string meant = value && !field->words.empty() ? suggestion(value->text, split_words(field->words)) : "";
  throw CommandError(kUsage, fmt::format("{} {}{}", field->flag, error.what(), meant));
}

}  // namespace

Json read_json_argument(const std::string& argument, const std::string& text, const Program& program) {
  const std::string document = text == "-" ? std::string(std::istreambuf_iterator<char>(program.in), {}) : text;
  if (document.empty()) return {};
  try {
    return parse_json(document);
  } catch (const InvalidJson& error) {
    throw CommandError(kUsage, fmt::format("{} is not JSON: {}; a text is written '\"text\"', in both kinds of quotes",
                                           argument, error.what()));
  }
}

void require_utf8(const std::string& flag, const std::string& text) {
  if (!is_valid_utf8(text)) throw CommandError(kUsage, flag + " must be UTF-8");
}

void require_name(const std::string& flag, const std::string& name) {
  require_utf8(flag, name);
  if (const auto wrong = check_name(name)) throw CommandError(kUsage, flag + " " + *wrong);
}

void SubmissionFlags::add(CLI::App& command, Kind kind) {
  kind_ = kind;
  const bool workflow = kind == Kind::workflow;
  command.add_option("TYPE", type_, workflow ? "The workflow's type" : "The task's type")->required()->type_name("");
  if (workflow) {
    command.add_option("WORKFLOW_ID", key_, "Its id: your name for this one workflow")->required()->type_name("");
  }
  command.add_option("INPUT", input_, "Its input, as JSON; - reads it from standard input (default: null)")
      ->type_name("");
  if (!workflow) add_identity(command);
  command.add_option("--queue", queue_, "Where it waits (default: as the type says, else default)")->type_name("QUEUE");
  command.add_option("--reuse", reuse_, "When a closed owner is superseded")->type_name(words_of("/reuse"));
  command.add_option("--on-duplicate", on_duplicate_, "What a duplicate gets")->type_name(words_of("/on_duplicate"));
  command.add_option("--ttl", ttl_, "How long the identity is kept, from creation")->type_name("DURATION");
  command.add_option("--priority", priority_, "-1000 to 1000; higher goes first")->type_name("N");
  add_timing(command);
}

void SubmissionFlags::add_identity(CLI::App& command) {
  command.add_option("--key", key_, "The idempotency key: your name for this one intent")->type_name("KEY");
  command.add_option("--scope", scope_, "Where the key is unique: type, queue, global, or a custom name")
      ->type_name("SCOPE");
  command.add_option("--identity", identity_, "What makes two submissions the same")->type_name(words_of("/identity"));
  command
      .add_option("--identity-field", identity_fields_,
                  "With contextual: a field that counts, as /order_id; repeatable")
      ->type_name("POINTER")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void SubmissionFlags::add_timing(CLI::App& command) {
  command.add_option("--delay", delay_, "Start no earlier than after this long")->type_name("DURATION");
  command.add_option("--run-at", run_at_, "Start no earlier than this, as 2026-01-27T12:00:00Z")->type_name("TIME");
  if (kind_ == Kind::task) {
    command.add_option("--max-attempts", max_attempts_, "1 to 1000 (default: 3)")->type_name("N");
    command.add_option("--retry-initial", retry_initial_, "The pause after the first failure (default: 1s)")
        ->type_name("DURATION");
    command.add_option("--retry-factor", retry_factor_, "How the pause grows (default: 2)")->type_name("X");
    command.add_option("--retry-max", retry_max_, "Where it stops growing (default: 60s)")->type_name("DURATION");
    command.add_option("--timeout", timeout_, "Of one attempt")->type_name("DURATION");
  }
  command
      .add_option("--deadline", deadline_,
                  kind_ == Kind::task ? "Of all attempts: a duration from now, or a time"
                                      : "Of the whole workflow: a duration from now, or a time")
      ->type_name("DURATION");
  command
      .add_option("--concurrency-key", concurrency_key_,
                  kind_ == Kind::task ? "Tasks with one key run one at a time" : "Turns with one key run one at a time")
      ->type_name("KEY");
  command.add_option("--header", headers_, "For its handler, as name=value; repeatable")
      ->type_name("NAME=VALUE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command.add_option("--tag", tags_, "Shown with it; repeatable")
      ->type_name("TAG")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command.add_option("--id", id_, "The id of this submission, a UUIDv7: sent again, it is the same one (default: new)")
      ->type_name("UUID");
}

// The body that the API would get: its reader checks the flags, so the two cannot differ.
std::string SubmissionFlags::document(const Program& program) const {
  JsonWriter out;
  out.begin_object().key("type").string(type_);
  const auto add = [&](std::string_view name, const std::optional<std::string>& value) {
    if (!value) return;
    require_utf8(std::string(flag_of("/" + std::string(name))->flag), *value);
    out.key(name).string(*value);
  };
  add("queue", queue_);
  add(kind_ == Kind::workflow ? "workflow_id" : "idempotency_key", key_);
  add("scope", scope_);
  add("identity", identity_);
  add("reuse", reuse_);
  add("on_duplicate", on_duplicate_);
  add("idempotency_ttl", ttl_);
  add("delay", delay_);
  add("run_at", run_at_);
  add("timeout", timeout_);
  add("deadline", deadline_);
  add("concurrency_key", concurrency_key_);
  add("id", id_);
  if (priority_) out.key("priority").integer(*priority_);
  if (max_attempts_) out.key("max_attempts").integer(*max_attempts_);
  if (!identity_fields_.empty()) {
    out.key("identity_fields").begin_array();
    for (const std::string& field : identity_fields_) {
      require_utf8("--identity-field", field);
      out.string(field);
    }
    out.end_array();
  }
  if (!headers_.empty()) {
    out.key("headers").begin_object();
    for (const std::string& header : headers_) {
      require_utf8("--header", header);
      const auto end = header.find('=');
      if (end == std::string::npos) throw CommandError(kUsage, "--header must be name=value, not \"" + header + "\"");
      out.key(header.substr(0, end)).string(header.substr(end + 1));
    }
    out.end_object();
  }
  if (!tags_.empty()) {
    out.key("tags").begin_array();
    for (const std::string& tag : tags_) {
      require_utf8("--tag", tag);
      out.string(tag);
    }
    out.end_array();
  }
  if (retry_initial_ || retry_factor_ || retry_max_) {
    out.key("retry").begin_object();
    if (retry_initial_) out.key("initial").string(*retry_initial_);
    if (retry_factor_) out.key("factor").number(*retry_factor_);
    if (retry_max_) out.key("max").string(*retry_max_);
    out.end_object();
  }
  if (!input_.empty()) out.key("input").raw(canonical_json(read_json_argument("INPUT", input_, program)));
  return out.end_object().take();
}

SubmitRequest SubmissionFlags::request(const Program& program) const {
  require_utf8("TYPE", type_);
  const Json document = parse_json(this->document(program));
  try {
    return wire::read_submit(document, "", kind_);
  } catch (const InvalidField& error) {
    refuse(error, document);
  }
}

}  // namespace hapax
