// From a caller's request to a store submission, and from its outcome to the caller's answer.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "engine/engine.h"
#include "engine/known_settings.h"
#include "engine/local_engine.h"

namespace hapax {

// A submission with every setting decided, and how to answer if it is a duplicate.
struct ResolvedSubmission {
  Submission submission;
  OnDuplicate on_duplicate = OnDuplicate::give_back;
};

enum class Submitter : std::uint8_t { caller, workflow };  // workflow: it is a step

// Decides queue, identity, policies and limits: first the request, then the type, the queue, the server.
std::variant<ResolvedSubmission, Refusal> resolve(const std::string& name_space, SubmitRequest request,
                                                  const KnownSettings& settings, const EngineOptions& options,
                                                  const ExecutionId& id, Submitter submitter = Submitter::caller);

// The queue that it decides for.
std::string queue_of(const std::string& name_space, const SubmitRequest& request, const KnownSettings& settings);

// The identity of a key that the caller gave: in the queue and scope that it names, or those of its type.
std::optional<FoundIdentity> find_key(Store& store, const std::string& name_space, const std::string& type,
                                      const std::optional<Scope>& scope, const std::optional<std::string>& queue,
                                      const std::string& key, const KnownSettings& settings);

// The secret of the claim that a submission with run_here gets: the same whenever it comes again, and not to be
// computed by those who know its id but not `store_identity`.
LeaseSecret run_here_secret(std::string_view store_identity, const Submission& submission);

// The part of a submission that its answer needs.
struct Asked {
  explicit Asked(const ResolvedSubmission& resolved);

  OnDuplicate on_duplicate;
  ExecutionId id;
  std::string type;
  InputHash input_hash;
  bool dry_run;
};

SubmitResult answer(SubmitOutcome&& outcome, const Asked& asked);

}  // namespace hapax
