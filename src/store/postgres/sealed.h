// Payloads as the tables have them: behind a mark and a CRC-32C, so that what came back changed is noticed. What an
// earlier version wrote has neither, and is read as it is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/execution.h"

namespace hapax::postgres {

// `damaged`: it is to stay so.
std::string seal(std::string_view payload, std::uint32_t checksum, bool damaged = false);
std::optional<std::string> seal_json(const std::optional<std::string>& json, bool damaged = false);
std::string seal_input(const Execution& execution, std::string_view parent_workflow_id);
std::string seal_message(const AttemptError& error, bool damaged = false);

// Each gives back the payload, and sets `damaged` where it does not match.
std::optional<std::string> unseal_json(std::optional<std::string_view> stored, bool& damaged);
std::string unseal_message(const std::string& type, std::string_view stored, bool& damaged);
// Of an execution whose other facts have been read.
void unseal_input(Execution& execution, std::string_view stored);

// A value that is not a payload by itself: with a mark of its kind and the checksum before it.
std::string seal_attempts(std::string_view packed, bool damaged);
std::string_view unseal_attempts(std::string_view stored, bool& damaged);

}  // namespace hapax::postgres
