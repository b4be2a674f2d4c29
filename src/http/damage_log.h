// What is damaged is named in the log, every execution, whatever else is logged in that second.
#pragma once

#include <string>

namespace hapax::http {

// Logs the sentence, unless it was logged lately. From any thread.
void log_damage(const std::string& what);

}  // namespace hapax::http
