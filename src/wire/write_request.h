// Writes a client's requests as JSON: the inverse of http/parse_request.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "core/json_writer.h"
#include "core/time.h"
#include "engine/engine.h"

namespace hapax::wire {

// A workflow's key is its "workflow_id".
void write_submit(JsonWriter& out, const SubmitRequest& request);
std::string write_submit(const SubmitRequest& request);
std::string write_claim_call(const ClaimCall& call);
std::string write_lease(const Extension& extension);
void write_report(JsonWriter& out, const Report& report);
std::string write_report(const Report& report);
std::string write_turn(const TurnRequest& turn);
// {"name":[text,text]}: the body of a request for many. `texts` is a range of strings.
template <class Texts>
std::string array_body(std::string_view name, const Texts& texts) {
  std::size_t bytes = name.size() + 8;
  for (const std::string& text : texts) bytes += text.size() + 1;
  std::string body;
  body.reserve(bytes);
  body.append("{\"").append(name).append("\":[");
  const char* separator = "";
  for (const std::string& text : texts) body.append(std::exchange(separator, ",")).append(text);
  return body.append("]}");
}
// What write_lease() has made: to be extended by that length.
template <class Texts>
std::string write_heartbeat(const Texts& leases, Duration lease) {
  std::string body = array_body("leases", leases);
  body.pop_back();
  return body.append(R"(,"lease":")").append(format_duration(lease)).append("\"}");
}

// The parameters of a workflow's control operation.
std::string write_control_request(const ControlRequest& request);

}  // namespace hapax::wire
