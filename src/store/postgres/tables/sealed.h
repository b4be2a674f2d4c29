// Payloads as the tables have them: behind a CRC-32C, so that a change in storage is noticed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/execution.h"

namespace hapax::postgres {

// `damaged`: the payload was read so, and is to stay so.
std::string seal(std::string_view payload, std::uint32_t checksum, bool damaged = false);
std::optional<std::string> seal_json(const std::optional<std::string>& json, bool damaged = false);
std::string seal_input(const Execution& execution, std::string_view parent_workflow_id);
std::string seal_message(const AttemptError& error, bool damaged = false);
std::string seal_list(std::string_view packed, bool damaged = false);

// Each returns the payload, and sets `damaged` if it does not match.
std::optional<std::string> unseal_json(std::optional<std::string_view> stored, bool& damaged);
// Of an error whose other parts have been read.
void unseal_message(AttemptError& error, std::string_view stored, bool& damaged);
std::string_view unseal_list(std::string_view stored, bool& damaged);
// Of an execution whose other facts have been read. Nothing at all: the statement did not ask for the input.
void unseal_input(Execution& execution, std::string_view stored);

}  // namespace hapax::postgres
