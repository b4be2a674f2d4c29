#include "cli/control.h"

namespace hapax {

void add_retry(CLI::App& app, const Program& program, Action& action) {
  add_control(app, program, action, "retry", "Give a failed, cancelled or timed-out task new attempts",
              ControlRequest::Action::retry);
}

}  // namespace hapax
