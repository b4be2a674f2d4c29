// The oracle: what every store must answer, by the spec. Small, slow and obvious; see world.h for what it may not use.
#pragma once

#include <optional>
#include <string>

#include "model/oracle/activities.h"
#include "model/oracle/world.h"
#include "model/step.h"

namespace hapax::model {

class Oracle {
 public:
  // Does the step as of that time, which never goes back.
  Answer perform(const Step& step, Time now);

  const Execution* find(const ExecutionId& id) { return world_.find(id); }
  bool has_failed_step(const ExecutionId& run);
  const ActivityRow* find_activity(const std::string& name_space, const std::string& id) {
    return activities_.find(name_space, id);
  }

 private:
  Contents look(const Look& look);
  std::vector<Execution> list(const ListFilter& filter);
  std::vector<ClaimOutcome> hand_out(const HandOut& step);

  oracle::World world_;
  oracle::Activities activities_;
};

}  // namespace hapax::model
