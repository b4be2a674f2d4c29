// Looking at executions and identities, and waiting for a result. Part of Engine: see engine.h.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "engine/reply.h"
#include "store/store.h"

namespace hapax {

class ReadVerbs {
 public:
  virtual ~ReadVerbs() = default;

  // Answers once the execution is closed or the wait is over, with the execution as it is then; nothing if unknown.
  virtual std::shared_ptr<Waiting> wait_closed(const std::string& name_space, const ExecutionId& id, Duration wait,
                                               Reply<std::optional<Execution>> reply) = 0;

  virtual std::optional<Execution> find(const std::string& name_space, const ExecutionId& id) = 0;
  // Why it does not run, or how it ended; of a workflow, of its latest run. Nothing if unknown.
  virtual std::optional<Why> why(const std::string& name_space, const ExecutionId& id) = 0;
  virtual std::optional<Why> why_workflow(const std::string& name_space, const std::string& workflow_id) = 0;
  virtual Page list(const ListFilter& filter) = 0;
  // Who has claimed of late, by name.
  virtual std::vector<WorkerInfo> workers(const std::string& name_space) = 0;

  // The identity that a submission of this type with this key has; the scope as the type has it unless given. The
  // type may be empty where the scope does not need it.
  virtual std::optional<FoundIdentity> find_identity(const std::string& name_space, const std::string& type,
                                                     const std::optional<Scope>& scope,
                                                     const std::optional<std::string>& queue,
                                                     const std::string& key) = 0;
};

}  // namespace hapax
