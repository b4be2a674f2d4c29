// From a caller's request to a store submission, and from its outcome to the caller's answer.
#pragma once

#include <string>
#include <variant>

#include "engine/engine.h"
#include "engine/local_engine.h"
#include "engine/settings_book.h"

namespace hapax {

// A submission with every setting decided, and how to answer if it is a duplicate.
struct ResolvedSubmission {
  Submission submission;
  OnDuplicate on_duplicate = OnDuplicate::give_back;
};

enum class Submitter : std::uint8_t { caller, workflow };  // workflow: it is a step

// Decides queue, identity, policies and limits: first the request, then the type, the queue, the server.
std::variant<ResolvedSubmission, Refusal> resolve(const std::string& name_space, SubmitRequest request,
                                                  const SettingsBook& settings, const EngineOptions& options,
                                                  const ExecutionId& id, Submitter submitter = Submitter::caller);

// The queue that it decides for.
std::string queue_of(const std::string& name_space, const SubmitRequest& request, const SettingsBook& settings);

// The identity of a key that the caller gave: in the queue and scope that it names, or those of its type.
std::optional<FoundIdentity> find_key(Store& store, const std::string& name_space, const std::string& type,
                                      const std::optional<Scope>& scope, const std::optional<std::string>& queue,
                                      const std::string& key, const SettingsBook& settings);

// The part of a submission that its answer needs.
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
