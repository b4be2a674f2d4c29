#include "cli/explanation.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/paint.h"
#include "core/canonical_json.h"
#include "core/reuse.h"

namespace hapax {

namespace {

std::string when(Time time, Time now) { return fmt::format("{} ({})", format_time(time), relative(time, now)); }

Strategy strategy_of(const ExplanationFacts& facts) {
  if (facts.request.idempotency_key) return Strategy::caller_provided;
  if (facts.request.identity) return *facts.request.identity;
  return facts.type.identity.strategy;
}

// Which of the four rules chose the strategy.
std::string reason_for(const ExplanationFacts& facts) {
  const std::string& type = facts.type.name;
  if (facts.request.idempotency_key) {
    return fmt::format("because the submission has a key, '{}'", *facts.request.idempotency_key);
  }
  if (facts.request.identity) return "because the submission says so";
  switch (facts.type.identity.source) {
    case TypeIdentity::Source::file: return fmt::format("as '{}' is declared in the configuration file", type);
    case TypeIdentity::Source::api: return fmt::format("as '{}' is declared by its settings", type);
    case TypeIdentity::Source::code: return fmt::format("as '{}' is declared in a program's code", type);
    case TypeIdentity::Source::declared:
      return fmt::format("because '{}' is declared and names no identity of its own", type);
    case TypeIdentity::Source::undeclared: break;
  }
  return fmt::format("because '{}' is not declared, and [identity] undeclared says so", type);
}

std::string meaning_of(Strategy strategy, const ExplanationFacts& facts) {
  switch (strategy) {
    case Strategy::caller_provided: return "the key alone decides what is the same";
    case Strategy::strict: return "the same input is the same task";
    case Strategy::always_unique: return "no two submissions are ever the same";
    case Strategy::contextual: break;
  }
  const auto& fields =
      facts.request.identity_fields ? facts.request.identity_fields : facts.type.settings.identity_fields;
  return fields ? fmt::format("the same {} is the same task", fmt::join(*fields, ", "))
                : "the same identity fields are the same task";
}

std::string describe_scope(const ExplanationFacts& facts, const std::string& queue) {
  const bool asked = facts.request.scope.has_value(), set = facts.type.settings.scope.has_value();
  const Scope scope = asked ? *facts.request.scope : facts.type.settings.scope.value_or(Scope{});
  const std::string_view source = asked ? "as the submission says" : set ? "as the type says" : "the default";
  std::string among;
  switch (scope.tag) {
    case Scope::Tag::type: among = fmt::format("among tasks of type '{}'", facts.type.name); break;
    case Scope::Tag::queue: among = fmt::format("among tasks of the queue '{}'", queue); break;
    case Scope::Tag::global: among = "in the whole namespace"; break;
    case Scope::Tag::custom: among = "among tasks of that scope"; break;
    case Scope::Tag::workflow: among = "among workflow ids"; break;
  }
  return fmt::format("{} ({}): unique {}", scope.to_string(), source, among);
}

std::string describe_owner(const Execution& owner, Time now) {
  std::string text =
      fmt::format("{}, {}, submitted {}", owner.id.to_string(), to_string(owner.status), when(owner.created_at, now));
  if (owner.finished_at) text += fmt::format(", closed {}", relative(*owner.finished_at, now));
  return text;
}

std::string rule_of(Status owner, Reuse reuse) {
  switch (decide(owner, reuse)) {
    case Verdict::duplicate: return fmt::format("an owner that is {} stands for this submission", to_string(owner));
    case Verdict::create_new: return fmt::format("an owner that is {} is superseded", to_string(owner));
    case Verdict::cancel_owner: return fmt::format("an owner that is {} is cancelled and superseded", to_string(owner));
  }
  return {};
}

std::string describe_reuse(const ExplanationFacts& facts, const std::optional<Status>& owner) {
  const bool asked = facts.request.reuse.has_value(), set = facts.type.settings.reuse.has_value();
  const Reuse reuse = asked ? *facts.request.reuse : facts.type.settings.reuse.value_or(Reuse::allow_failed);
  const std::string_view source = asked ? "as the submission says" : set ? "as the type says" : "the default";
  std::string text = fmt::format("{} ({})", to_string(reuse), source);
  if (owner) text += ": " + rule_of(*owner, reuse);
  return text;
}

std::string describe_expiry(const std::optional<Time>& expires_at, bool owner_open, Time now) {
  if (expires_at && owner_open) {
    return fmt::format("{}, but not while the task is open", when(*expires_at, now));
  }
  if (expires_at) return when(*expires_at, now);
  return owner_open ? "the identity lives as long as the task: until its retention ends after it is closed"
                    : "with the task, when its retention ends";
}

// For a task created now: an open task holds its identity, whatever the TTL.
std::string describe_window(const ExplanationFacts& facts) {
  std::optional<Duration> ttl = facts.request.idempotency_ttl;
  if (!ttl) ttl = facts.type.settings.idempotency_ttl;
  if (!ttl) ttl = facts.queue.settings.idempotency_ttl;
  if (ttl) return fmt::format("{} after it is created, but not while it is open", format_duration(*ttl));
  return describe_expiry({}, true, facts.now);
}

OnDuplicate on_duplicate_of(const ExplanationFacts& facts) {
  return facts.request.on_duplicate ? *facts.request.on_duplicate
                                    : facts.type.settings.on_duplicate.value_or(OnDuplicate::give_back);
}

void explain_receipt(const ExplanationFacts& facts, const Receipt& receipt, Explanation& out) {
  const auto add = [&](std::string about, std::string says) {
    out.lines.push_back({std::move(about), std::move(says)});
  };
  const Execution& execution = receipt.execution;
  if (!receipt.match) {
    out.outcome = "create";
    return add("outcome", fmt::format("a new task in the queue '{}', every time it is submitted", execution.queue));
  }
  add("scope", describe_scope(facts, execution.queue));
  add("hash", receipt.match->identity.hash.to_string());
  if (receipt.created) {
    out.outcome = "create";
    std::optional<Status> owner;
    if (receipt.match->superseded) {
      if (facts.superseded) owner = facts.superseded->status;
      add("owner",
          facts.superseded ? describe_owner(*facts.superseded, facts.now) : receipt.match->superseded->to_string());
      add("reuse", describe_reuse(facts, owner));
      add("outcome",
          fmt::format("a new task in the queue '{}', in place of the owner, which stays readable", execution.queue));
    } else {
      const bool expired = facts.found && !facts.found->live;
      add("owner", expired ? "none: the entry of " + facts.found->entry.owner.to_string() + " has expired"
                           : "none: this identity is new");
      add("outcome", fmt::format("a new task in the queue '{}'", execution.queue));
    }
    return add("expires", describe_window(facts));
  }
  add("owner", describe_owner(execution, facts.now));
  add("reuse", describe_reuse(facts, execution.status));
  if (on_duplicate_of(facts) == OnDuplicate::error) {
    out.outcome = "already_exists";
    const bool completed = execution.status == Status::completed;
    add("outcome", fmt::format("refused with {}, because on_duplicate is \"error\"; nothing is created",
                               completed ? "TaskAlreadyCompleted" : "TaskAlreadyExists"));
  } else {
    out.outcome = "duplicate";
    std::string text = "a duplicate: nothing is created, the answer is the owner";
    if (receipt.result_expired)
      text += ", whose result is past its retention";
    else if (execution.result)
      text += " with its result " + shorten(*execution.result, 200);
    add("outcome", text);
  }
  const bool open = !is_closed(execution.status);
  add("expires", describe_expiry(open && facts.found ? facts.found->entry.expires_at : receipt.match->expires_at, open,
                                 facts.now));
}

void explain_refusal(const ExplanationFacts& facts, const Refusal& refusal, Explanation& out) {
  const auto add = [&](std::string about, std::string says) {
    out.lines.push_back({std::move(about), std::move(says)});
  };
  if (refusal.code != Refusal::Code::idempotency_conflict || !refusal.existing) {
    out.outcome = "invalid";
    return add("outcome", "refused: " + refusal.message);
  }
  // A server's refusal names the owner, but says little about it.
  const Execution& owner = facts.found && facts.found->owner ? *facts.found->owner : *refusal.existing;
  out.outcome = "conflict";
  add("scope", describe_scope(facts, owner.queue));
  if (facts.found) add("hash", facts.found->entry.identity.hash.to_string());
  add("owner", describe_owner(owner, facts.now));
  add("reuse", describe_reuse(facts, owner.status));
  const InputHash own = refusal.input_hash.value_or(hash_input(canonical_json(facts.request.input)));
  const InputHash theirs = facts.found ? facts.found->entry.input_hash : owner.input_hash;
  const bool of_type = owner.type.empty() ? own == theirs : owner.type != facts.request.type;
  add("input", fmt::format("this one is {}, the owner's is {}", own.to_string(), theirs.to_string()));
  if (of_type) {
    add("outcome",
        "a conflict: the key stands for another type; nothing is created. Choose another key, or a scope that the "
        "two types do not share");
  } else {
    add("outcome",
        "a conflict: the key stands for another input; nothing is created. Send the same input, or choose "
        "another key for another intent");
  }
  const bool open = !is_closed(owner.status);
  if (facts.found) {
    add("expires", describe_expiry(open ? facts.found->entry.expires_at : facts.found->expires_at, open, facts.now));
  }
}

}  // namespace

Explanation explain(const ExplanationFacts& facts) {
  Explanation out;
  const Strategy strategy = strategy_of(facts);
  out.lines.push_back(
      {"identity", fmt::format("{}, {}: {}", to_string(strategy), reason_for(facts), meaning_of(strategy, facts))});
  if (const auto* receipt = std::get_if<Receipt>(&facts.result)) {
    explain_receipt(facts, *receipt, out);
  } else {
    explain_refusal(facts, std::get<Refusal>(facts.result), out);
  }
  return out;
}

}  // namespace hapax
