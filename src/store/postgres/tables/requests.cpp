#include "store/postgres/tables/requests.h"

#include "store/postgres/tables/rows.h"

namespace hapax::postgres {

namespace {

const Column kRequestColumns[] = {
    {"name_space", Type::bytea},  {"request_key", Type::bytea}, {"action", Type::int2},    {"target", Type::uuid},
    {"outcome", Type::int2},      {"changed", Type::boolean},   {"status", Type::int2},    {"other", Type::uuid},
    {"workflow_id", Type::bytea}, {"parameters", Type::bytea},  {"execution", Type::uuid}, {"steps", Type::int4},
    {"expires_at", Type::int8},
};

// A new or expired key becomes a row without a lifetime, so that its first user holds its lock.
const Statement kPlaceRequests{
    "place_requests",
    "INSERT INTO requests (name_space, request_key, action, target, outcome, changed, status, parameters, steps, "
    "expires_at)"
    " SELECT DISTINCT g.name_space, g.request_key, 0::int2, '00000000-0000-0000-0000-000000000000'::uuid, 0::int2, "
    "false,"
    " 0::int2, ''::bytea, 0::int4, 0::int8 FROM unnest($1::bytea[], $2::bytea[]) AS g (name_space, request_key)"
    " ORDER BY g.name_space, g.request_key ON CONFLICT DO NOTHING"};

// Two columns make the key here.
const std::string kOfKey = "WHERE x.name_space = g.name_space AND x.request_key = g.request_key";

const Statement kLockRequests{
    "lock_requests", "SELECT " + names(kRequestColumns, "r") +
                         " FROM (SELECT DISTINCT * FROM unnest($1::bytea[], $2::bytea[]) AS u (name_space, request_key)"
                         " ORDER BY 1, 2) g, LATERAL (SELECT * FROM requests x " +
                         kOfKey + " FOR UPDATE) r"};

const Statement kPutRequests{"put_requests",
                             "UPDATE requests r SET action = g.action, target = g.target, outcome = g.outcome, changed "
                             "= g.changed, status = g.status,"
                             " other = g.other, workflow_id = g.workflow_id, parameters = g.parameters, execution = "
                             "g.execution, steps = g.steps,"
                             " expires_at = g.expires_at FROM " +
                                 unnest(kRequestColumns, 1, "g") +
                                 ", LATERAL (SELECT x.ctid AS place FROM requests x " + kOfKey + " OFFSET 0" +
                                 ") f WHERE r.ctid = f.place"};

}  // namespace

// A key that a cleanup is deleting exists when ours is inserted, and is gone when it is locked: then there is room for
// ours.
void Requests::lock(std::span<const ControlRequest> requests) {
  std::set<Key> missing;
  for (const ControlRequest& request : requests) missing.emplace(request.name_space, request.request_key);
  while (!missing.empty()) {
    connection_.send_silently(kPlaceRequests, keys_of(missing));
    connection_.send(kLockRequests, keys_of(missing));
    receive(connection_.receive());
    std::erase_if(missing, [&](const Key& key) { return all_.contains(key); });
  }
}

std::optional<PastRequest> Requests::find(const std::string& name_space, const std::string& key, Time now) const {
  const Stored& stored = all_.at({name_space, key});
  return stored.expires_at > now ? std::optional(stored.past) : std::nullopt;
}

void Requests::put(const std::string& name_space, const std::string& key, const PastRequest& past, Time expires_at) {
  all_.at({name_space, key}) = {past, expires_at, true};
}

void Requests::write() {
  Columns columns(kRequestColumns);
  for (const auto& [key, stored] : all_) {
    if (!stored.is_changed) continue;
    columns.begin_row();
    columns.next().bytes(key.first);
    columns.next().bytes(key.second);
    const PastRequest& past = stored.past;
    columns.next().word(past.action);
    columns.next().raw(past.target);
    columns.next().word(past.outcome.kind);
    columns.next().boolean(past.outcome.changed);
    columns.next().word(past.outcome.status);
    columns.next().raw_if(past.outcome.other);
    columns.next().bytes_if(past.workflow_id);
    columns.next().raw(past.parameters);
    columns.next().raw_if(past.outcome.execution);
    columns.next().integer(past.outcome.steps);
    columns.next().time(stored.expires_at);
  }
  if (columns.rows() == 0) return;
  Parameters parameters;
  columns.bind(parameters);
  connection_.send_silently(kPutRequests, parameters);
}

void Requests::receive(const Rows& rows) {
  for (int i = 0; i < rows.size(); ++i) {
    Cells cells(rows, i);
    std::string name_space = cells.text();
    Stored& stored = all_[{std::move(name_space), cells.text()}];
    PastRequest& past = stored.past;
    past.action = cells.word<ControlRequest::Action>();
    past.target = cells.raw<ExecutionId>();
    past.outcome.kind = cells.word<ControlOutcome::Kind>();
    past.outcome.changed = cells.boolean();
    past.outcome.status = cells.word<Status>();
    past.outcome.other = cells.raw_if<ExecutionId>();
    past.workflow_id = cells.text_if();
    past.parameters = cells.raw<InputHash>();
    past.outcome.execution = cells.raw_if<ExecutionId>();
    past.outcome.steps = static_cast<std::int32_t>(cells.integer());
    stored.expires_at = cells.time();
  }
}

Parameters Requests::keys_of(const std::set<Key>& wanted) {
  Array name_spaces(Type::bytea), keys(Type::bytea);
  for (const auto& [name_space, key] : wanted) {
    name_spaces.bytes(name_space);
    keys.bytes(key);
  }
  Parameters parameters;
  parameters.array(std::move(name_spaces)).array(std::move(keys));
  return parameters;
}

}  // namespace hapax::postgres
