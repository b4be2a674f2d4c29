#include "wire/worker.h"

#include <algorithm>

#include "wire/read_member.h"

namespace hapax::wire {

namespace {

constexpr std::int64_t kMostPid = 4'294'967'295;

void write_names(JsonWriter& out, const char* key, const std::vector<std::string>& names) {
  out.key(key).begin_array();
  for (const std::string& name : names) out.string(name);
  out.end_array();
}

std::vector<std::string> read_names(const Json& document, std::string_view member) {
  return read_all(document, member, [&](const Json& name) {
    if (!name.is(Json::Kind::string)) malformed(member);
    return name.text;
  });
}

void write_worker(JsonWriter& out, const WorkerInfo& worker) {
  out.begin_object().key("name").string(worker.name);
  out.key("host");
  worker.origin.host.empty() ? out.null() : out.string(worker.origin.host);
  out.key("pid");
  worker.origin.pid == 0 ? out.null() : out.integer(worker.origin.pid);
  out.key("sdk");
  if (worker.origin.sdk.empty()) {
    out.null();
  } else {
    out.begin_object().key("name").string(worker.origin.sdk).key("version");
    worker.origin.version.empty() ? out.null() : out.string(worker.origin.version);
    out.end_object();
  }
  write_names(out, "queues", worker.queues);
  write_names(out, "types", worker.types);
  out.key("kinds").begin_array();
  if (worker.tasks) out.string("task");
  if (worker.workflows) out.string("workflow");
  out.end_array().key("running").integer(worker.running);
  out.key("last_seen_at").string(format_time(worker.last_seen_at)).end_object();
}

WorkerInfo read_worker(const Json& document) {
  WorkerInfo worker;
  worker.name = required_text(document, "name");
  worker.origin.host = text(document, "host").value_or("");
  worker.origin.pid = integer(document, "pid", 0);
  if (const Json* sdk = present(document, "sdk")) {
    worker.origin.sdk = required_text(*sdk, "name");
    worker.origin.version = text(*sdk, "version").value_or("");
  }
  worker.queues = read_names(document, "queues");
  worker.types = read_names(document, "types");
  const std::vector<std::string> kinds = read_names(document, "kinds");
  const auto has = [&](const char* kind) { return std::find(kinds.begin(), kinds.end(), kind) != kinds.end(); };
  worker.tasks = has("task");
  worker.workflows = has("workflow");
  worker.running = integer(document, "running", 0);
  worker.last_seen_at = required(document, "last_seen_at", parse_time);
  return worker;
}

}  // namespace

void read_sdk(FieldReader& fields, WorkerOrigin& origin) {
  const Json* sdk = fields.object("sdk");
  if (!sdk) return;
  FieldReader members(*sdk, fields.pointer("sdk"));
  origin.sdk = members.required("name", members.name("name"));
  origin.version = members.name("version").value_or("");
  members.done();
}

WorkerOrigin read_origin(FieldReader& fields) {
  WorkerOrigin origin;
  read_sdk(fields, origin);
  origin.host = fields.name("host").value_or("");
  origin.pid = fields.integer("pid", 1, kMostPid).value_or(0);
  return origin;
}

void write_origin(JsonWriter& out, const WorkerOrigin& origin) {
  if (!origin.sdk.empty()) {
    out.key("sdk").begin_object().key("name").string(origin.sdk);
    if (!origin.version.empty()) out.key("version").string(origin.version);
    out.end_object();
  }
  if (!origin.host.empty()) out.key("host").string(origin.host);
  if (origin.pid != 0) out.key("pid").integer(origin.pid);
}

std::string write_workers(const std::vector<WorkerInfo>& workers) {
  JsonWriter out;
  out.begin_object().key("workers").begin_array();
  for (const WorkerInfo& worker : workers) write_worker(out, worker);
  return out.end_array().end_object().take();
}

std::vector<WorkerInfo> read_workers(const Json& document, const std::string& name_space) {
  std::vector<WorkerInfo> workers = read_all(document, "workers", read_worker);
  for (WorkerInfo& worker : workers) worker.name_space = name_space;
  return workers;
}

}  // namespace hapax::wire
