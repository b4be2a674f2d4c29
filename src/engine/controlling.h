// Control operations: cancel, retry, resume, fork, signal, and releasing an identity. Part of Engine: see engine.h.
#pragma once

#include <string>

#include "engine/reply.h"
#include "store/store.h"

namespace hapax {

class ControlVerbs {
 public:
  virtual ~ControlVerbs() = default;

  virtual void control(ControlRequest request, Reply<ControlOutcome> reply) = 0;
  // False if nobody has it.
  virtual bool release_identity(const std::string& name_space, const IdentityHash& hash) = 0;
};

}  // namespace hapax
