// Names every damaged execution in the log, whatever else is logged in that second.
#pragma once

#include <string>

namespace hapax::http {

// Logs the sentence unless it was logged recently. From any thread.
void log_damage(const std::string& what);

}  // namespace hapax::http
