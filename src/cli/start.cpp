#include "cli/submit.h"

namespace hapax {

void add_start(CLI::App& app, const Program& program, Action& action) {
  add_submission(app, program, action, "start", "Start a workflow, once per workflow id", Kind::workflow);
}

}  // namespace hapax
