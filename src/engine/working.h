// Workers: claim, heartbeat, finish. Part of Engine: see engine.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/reply.h"
#include "store/store.h"

namespace hapax {

struct ClaimCall {
  std::string name_space;
  std::vector<std::string> queues;
  bool tasks = true;
  bool workflows = false;               // turns of workflows
  std::vector<std::string> types = {};  // only of these; empty: of any
  std::int32_t limit = 1;
  std::string worker;
  Duration lease{60'000};
  Duration wait{0};           // for the first one
  std::string claim_id = {};  // drawn by the worker: said again, it gets what it got before; empty: never said again
  WorkerOrigin origin = {};
};

struct Claimed {
  Execution execution;
  std::vector<Event> events;  // of a workflow: those after run.seen
};

class WorkVerbs {
 public:
  virtual ~WorkVerbs() = default;

  // Answers with at least one execution, or with none when the wait is over.
  virtual std::shared_ptr<Waiting> claim(ClaimCall call, Reply<std::vector<Claimed>> reply) = 0;
  // A lease of no length gives the attempt back.
  virtual void heartbeat(std::vector<Extension> extensions, Reply<std::vector<ExtendOutcome>> reply) = 0;
  virtual void finish(std::vector<Report> reports, Reply<std::vector<FinishOutcome>> reply) = 0;
};

}  // namespace hapax
