#include "cli/control.h"

namespace hapax {

void add_cancel(CLI::App& app, const Program& program, Action& action) {
  add_control(app, program, action, "cancel", "Cancel a task: a pending one at once, a running one hears of it",
              ControlRequest::Action::cancel);
}

}  // namespace hapax
