// Workers as JSON: what they say of themselves with a claim, and as they are listed.
#pragma once

#include <string>
#include <vector>

#include "core/field.h"
#include "core/json.h"
#include "core/json_writer.h"
#include "core/worker_info.h"

namespace hapax::wire {

// "sdk":{"name","version"}; and with it the "host" and "pid" of a claim.
void read_sdk(FieldReader& fields, WorkerOrigin& origin);
WorkerOrigin read_origin(FieldReader& fields);
void write_origin(JsonWriter& out, const WorkerOrigin& origin);

// {"workers":[…]}
std::string write_workers(const std::vector<WorkerInfo>& workers);
std::vector<WorkerInfo> read_workers(const Json& document, const std::string& name_space);

}  // namespace hapax::wire
