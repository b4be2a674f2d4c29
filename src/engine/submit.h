// From what a caller asked to what the store is told, and from what the store did to what the caller hears.
#pragma once

#include <string>
#include <variant>

#include "engine/engine.h"
#include "engine/local_engine.h"
#include "engine/settings_book.h"

namespace hapax {

// A submission with every setting decided, and how its duplicate is to be answered.
struct ResolvedSubmission {
  Submission submission;
  OnDuplicate on_duplicate = OnDuplicate::give_back;
};

enum class Submitter : std::uint8_t { caller, workflow };  // workflow: it is a step

// Decides queue, identity, policies and limits: the request's own word, then the type's, the queue's, the server's.
std::variant<ResolvedSubmission, Refusal> resolve(const std::string& name_space, SubmitRequest request,
                                                  const SettingsBook& settings, const EngineOptions& options,
                                                  const ExecutionId& id, Submitter submitter = Submitter::caller);

// The queue that it decides for.
std::string queue_of(const std::string& name_space, const SubmitRequest& request, const SettingsBook& settings);

// The identity of a key that the caller gave: in the queue and scope that it names, or that its type has.
std::optional<FoundIdentity> find_key(Store& store, const std::string& name_space, const std::string& type,
                                      const std::optional<Scope>& scope, const std::optional<std::string>& queue,
                                      const std::string& key, const SettingsBook& settings);

// What of a submission its answer needs.
struct Asked {
  explicit Asked(const ResolvedSubmission& resolved);

  OnDuplicate on_duplicate;
  ExecutionId id;
  std::string type;
  InputHash input_hash;
  bool dry_run;
};

SubmitResult answer(SubmitOutcome outcome, const Asked& asked);

}  // namespace hapax
