// What a request may hold: the rules for every way in alike, whether over HTTP, from the command line or embedded.
// wire/ checks what it reads, both engines check what they are given, and none of them has a rule of its own.
//
// Each throws InvalidField with the place of the fault as the HTTP API has it, from the checked value on.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/field.h"
#include "engine/activities.h"
#include "engine/submitting.h"
#include "engine/workflows.h"
#include "engine/working.h"
#include "store/store.h"

namespace hapax {

inline constexpr std::size_t kMaxClaimQueues = 100;
inline constexpr std::size_t kMaxClaimTypes = 256;
inline constexpr std::int32_t kMaxClaims = 1000;  // of one claim
inline constexpr Duration kMaxWait = std::chrono::seconds(60);
inline constexpr Duration kShortestLease = std::chrono::seconds(1), kLongestLease = std::chrono::hours(24);
inline constexpr std::size_t kMaxCommands = 10'000;  // of one turn
inline constexpr std::size_t kMaxStackBytes = 16 * 1024, kMaxProgressBytes = 64 * 1024;
inline constexpr std::int32_t kMaxPage = 1000;

void check(const SubmitRequest& request);
void check_batch(std::size_t submissions);

void check(const ClaimCall& call);
void check_lease(Duration lease);
void check(const Extension& extension);  // what it says, not its lease
void check(std::span<const Extension> extensions);
void check(const Report& report);
void check(std::span<const Report> reports);
void check(const TurnRequest& turn);
void check(std::span<const TurnRequest> turns);
void check(const ControlRequest& request);
void check(const UpdateRequest& request);

void check(const ListFilter& filter);
void check_identity_query(const std::string& type, const std::optional<Scope>& scope,
                          const std::optional<std::string>& queue, const std::string& key);

void check_setting_name(std::string_view name);  // of a queue or type
void check(const QueueSettings& settings);
void check(const TypeSettings& settings);

void check_activity(std::string_view id);
void check(const ActivitySettings& settings);
void check_page_limit(std::int32_t limit);

// The code is InvalidIdempotencyKey.
void check_control_key(std::string_view request_key);

// As the answer to a submission.
Refusal to_refusal(const InvalidField& error);

}  // namespace hapax
