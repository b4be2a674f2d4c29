#include "store/postgres/workspace.h"

#include <fmt/format.h>

#include <algorithm>

namespace hapax::postgres {

namespace {

const Statement kNow{"now", "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::int8"};

const Statement kReadFacts{"read_facts", "SELECT queue_no, identity_hash FROM executions WHERE id = ANY($1::uuid[])"};

std::string lock_rows_sql(const char* table, bool with_input) {
  return fmt::format("SELECT {} FROM {} s JOIN {} ON true WHERE s.id = ANY($1::uuid[]) ORDER BY s.id FOR UPDATE OF s",
                     row_columns(with_input), table, lookup("executions", "id", "s.id", "e"));
}
const Statement kLockOpen{"lock_open", lock_rows_sql("open", false)};
const Statement kLockClosed{"lock_closed", lock_rows_sql("closed", false)};
const Statement kLockOpenWhole{"lock_open_whole", lock_rows_sql("open", true)};
const Statement kLockClosedWhole{"lock_closed_whole", lock_rows_sql("closed", true)};

// The parent of a step never changes, so that the runs can be locked first.
const Statement kLockRunsOfSteps{
    "lock_runs_of_steps",
    fmt::format("SELECT {} FROM open s JOIN {} ON true WHERE s.id = ANY(ARRAY(SELECT x.parent FROM executions x"
                " WHERE x.id = ANY($1::uuid[]) AND x.parent IS NOT NULL)) ORDER BY s.id FOR UPDATE OF s",
                row_columns(false), lookup("executions", "id", "s.id", "e"))};
const Statement kLockOpenSteps{
    "lock_open_steps",
    fmt::format("SELECT {} FROM open s JOIN {} ON true WHERE s.id = ANY(ARRAY(SELECT x.id FROM executions x"
                " WHERE x.parent = $1::uuid)) ORDER BY s.id FOR UPDATE OF s",
                row_columns(true), lookup("executions", "id", "s.id", "e"))};
// A row to lock and to change, for those that have none.
const Statement kSetApart{
    "set_apart",
    fmt::format(
        "INSERT INTO closed ({}) SELECT {} FROM executions e WHERE e.id = ANY($1::uuid[]) AND e.done_secret IS NOT NULL"
        " ON CONFLICT (id) DO NOTHING",
        names(state_rows().columns), done_state("e", "(SELECT true FROM executions p WHERE p.id = e.parent) IS TRUE"))};
const Statement kReadIds{"read_ids", "SELECT id FROM executions WHERE id = ANY($1::uuid[])"};

// Whether the row is no longer than the second parameter, as w.fits.
const std::string kFits = fmt::format("LATERAL (SELECT {} <= $2::int8 AS fits OFFSET 0) w", payload_bytes());

const Statement kReadRows{"read_rows", fmt::format("SELECT w.fits, {} FROM executions e JOIN {} ON true JOIN {} ON true"
                                                   " WHERE e.id = ANY($1::uuid[])",
                                                   row_columns_where("w.fits"), lookup_state(), kFits)};

const Statement kPlaceIdentities{
    "place_identities",
    "INSERT INTO identities (hash, owner) SELECT hash, '00000000-0000-0000-0000-000000000000'"
    " FROM unnest($1::uuid[]) AS g (hash) ORDER BY hash ON CONFLICT DO NOTHING RETURNING hash"};
const Statement kLockIdentities{"lock_identities",
                                "SELECT hash, owner, expires_at FROM identities WHERE hash = ANY($1::uuid[])"
                                " ORDER BY hash FOR UPDATE"};

constexpr const char* kTombstoneColumns =
    "t.expires_at, t.queue_no, t.input_hash, t.identity_strategy, t.identity_scope_tag, t.identity_scope_name, t.kind, "
    "t.type, t.idempotency_key,"
    " t.status, t.created_at, t.finished_at";
// Read after the identities are locked, not with them: the previous holder of the lock may have purged the owner.
const Statement kReadTombstones{"read_tombstones", fmt::format("SELECT t.hash, {} FROM tombstones t"
                                                               " WHERE t.hash = ANY($1::bytea[])",
                                                               kTombstoneColumns)};

const Statement kReadHeld{"read_held",
                          fmt::format("SELECT i.hash, i.owner, i.expires_at, w.fits, {}"
                                      " FROM unnest($1::uuid[]) AS g (hash) JOIN {} ON true LEFT JOIN {} ON true"
                                      " LEFT JOIN {} ON true LEFT JOIN {} ON true",
                                      row_columns_where("w.fits"), lookup("identities", "hash", "g.hash", "i"),
                                      lookup("executions", "id", "i.owner", "e"), lookup_state(), kFits)};

// What the owner of each identity weighs, and the execution of each id.
const Statement kWeigh{
    "weigh", fmt::format("WITH g AS (SELECT * FROM unnest($1::uuid[], $2::uuid[]) WITH ORDINALITY AS a (hash, id, no))"
                         " SELECT f.no, {} FROM (SELECT g.no, i.owner AS id FROM g JOIN {} ON true"
                         " UNION ALL SELECT g.no, g.id FROM g) f JOIN {} ON true JOIN {} ON true",
                         payload_bytes(), lookup("identities", "hash", "g.hash", "i"),
                         lookup("executions", "id", "f.id", "e"), lookup_state())};

const Statement kClosingReports{
    "closing_reports",
    "SELECT id, attempt, secret, said, status, queue_no, had_concurrency_key FROM closing_reports"
    " WHERE id = ANY($1::uuid[]) AND expires_at > $2::int8"};

Parameters ids_of(const std::vector<ExecutionId>& ids) {
  Array array(Type::uuid);
  for (const ExecutionId& id : ids) array.raw(id);
  Parameters parameters;
  parameters.array(std::move(array));
  return parameters;
}

std::vector<ExecutionId> ids_in(const Rows& rows) {
  std::vector<ExecutionId> ids;
  for (int i = 0; i < rows.size(); ++i) ids.push_back(Cells(rows, i).raw<ExecutionId>());
  return ids;
}

template <class Hashes>
Parameters hashes_of(const Hashes& hashes) {
  Array array(Type::bytea);
  for (const IdentityHash& hash : hashes) array.raw(hash);
  Parameters parameters;
  parameters.array(std::move(array));
  return parameters;
}

template <class Item>
void sort_unique(std::vector<Item>& items) {
  std::sort(items.begin(), items.end());
  items.erase(std::unique(items.begin(), items.end()), items.end());
}

}  // namespace

Workspace::Workspace(Connection& connection, QueueNumbers& queues, const QueuePolicies& policies, const Clock* clock)
    : connection_(connection), queues_(queues), policies_(policies), clock_(clock) {
  if (clock) {
    now_ = clock->now();
  } else {
    connection.send(kNow);
  }
}

Time Workspace::now() {
  if (!now_) {
    const Rows rows = connection_.receive();
    now_ = Cells(rows, 0).time();
  }
  return *now_;
}

// ---- loading

// The identities to be locked before the executions: of all, or of those that closing deletes; then all are wanted
// whole.
std::vector<IdentityHash> Workspace::identities_of(const std::vector<ExecutionId>& ids, Extent& extent) {
  connection_.send(kReadFacts, ids_of(ids));
  now();
  const Rows rows = connection_.receive();
  std::vector<std::pair<std::int32_t, std::optional<IdentityHash>>> all;
  std::vector<std::int32_t> numbers;
  for (int i = 0; i < rows.size(); ++i) {
    Cells cells(rows, i);
    const auto queue_no = static_cast<std::int32_t>(cells.integer());
    all.emplace_back(queue_no, cells.raw_if<IdentityHash>());
    numbers.push_back(queue_no);
  }
  queues_.look_up(connection_, numbers);
  std::vector<IdentityHash> hashes;
  const bool is_whole = extent == Extent::whole;
  for (const auto& [queue_no, hash] : all) {
    const QueueName name = queues_.name_of(queue_no);
    const bool is_erased = policies_.retention(name.name_space, name.queue, name.kind) == Duration::zero();
    if (is_erased) extent = Extent::whole;
    if (hash && (is_whole || is_erased)) hashes.push_back(*hash);
  }
  sort_unique(hashes);
  return hashes;
}

void Workspace::lock(std::vector<ExecutionId> ids, Extent extent, bool with_runs, std::vector<ExecutionId> runs,
                     const std::vector<ExecutionId>& new_steps) {
  if (ids.empty() && runs.empty()) return;
  sort_unique(ids);
  sort_unique(runs);
  std::vector<ExecutionId> all = ids;
  all.insert(all.end(), runs.begin(), runs.end());
  std::vector<IdentityHash> hashes;
  if (extent == Extent::whole || policies_.any_deleted_at_once()) hashes = identities_of(all, extent);
  const bool with_input = extent == Extent::whole;
  const Statement& lock_open = with_input ? kLockOpenWhole : kLockOpen;
  if (!hashes.empty()) {
    connection_.send(kLockIdentities, ledger_hashes_of(hashes));
    connection_.send(kReadTombstones, hashes_of(hashes));
  }
  if (with_runs) connection_.send(kLockRunsOfSteps, ids_of(ids));
  if (!runs.empty()) connection_.send(lock_open, ids_of(runs));
  if (!ids.empty()) connection_.send(lock_open, ids_of(ids));
  if (!new_steps.empty()) connection_.send(kReadIds, ids_of(new_steps));
  now();
  if (!hashes.empty()) {
    receive_entries(connection_.receive());
    receive_tombstones(connection_.receive());
  }
  // All of them before any is read: naming their queues may take a separate statement.
  const Rows of_steps = with_runs ? connection_.receive() : Rows();
  const Rows open_runs = runs.empty() ? Rows() : connection_.receive();
  const Rows open = ids.empty() ? Rows() : connection_.receive();
  const Rows steps = new_steps.empty() ? Rows() : connection_.receive();
  absent_.insert(new_steps.begin(), new_steps.end());
  for (const ExecutionId& id : ids_in(steps)) absent_.erase(id);
  for (const Rows* rows : {&of_steps, &open_runs, &open}) {
    if (!rows->empty()) receive_rows(*rows);
  }
  lock_closed_rows(all, with_input);
  complete_entries();
}

Row* Workspace::load(const ExecutionId& id) {
  if (!rows_.contains(id) && !absent_.contains(id)) {
    lock_rows({id});
    if (!rows_.contains(id)) absent_.insert(id);
  }
  return find(id);
}

void Workspace::lock_open(const std::vector<ExecutionId>& ids) {
  connection_.send(kLockOpen, ids_of(ids));
  now();
  receive_rows(connection_.receive());
}

std::vector<ExecutionId> Workspace::lock_open_steps(const ExecutionId& run) {
  now();
  receive_rows(connection_.run(kLockOpenSteps, Parameters().raw(run)));
  std::vector<ExecutionId> steps;
  for (const auto& [id, slot] : rows_) {
    const Execution& execution = slot.row.execution;
    if (execution.parent == run && !slot.is_erased && !is_closed(execution.status)) steps.push_back(id);
  }
  return steps;
}

bool Workspace::lock_missing(const std::vector<ExecutionId>& ids, const Statement& statement) {
  std::vector<ExecutionId> missing;
  std::copy_if(ids.begin(), ids.end(), std::back_inserter(missing),
               [&](const ExecutionId& id) { return !rows_.contains(id); });
  if (missing.empty()) return false;
  receive_rows(connection_.run(statement, ids_of(missing)));
  return true;
}

void Workspace::lock_rows(const std::vector<ExecutionId>& ids) {
  now();
  if (lock_missing(ids, kLockOpenWhole)) lock_closed_rows(ids, true);
}

// One that was closed when the open ones were looked through, and open again when the closed ones were, is in neither.
// Nor is one that was done within its turn.
void Workspace::lock_closed_rows(const std::vector<ExecutionId>& ids, bool with_input) {
  const Statement& open = with_input ? kLockOpenWhole : kLockOpen;
  const Statement& closed = with_input ? kLockClosedWhole : kLockClosed;
  if (!lock_missing(ids, closed) || !lock_missing(ids, open)) return;
  connection_.send_silently(kSetApart, ids_of(ids));
  lock_missing(ids, closed);
}

void Workspace::lock_identities(std::vector<IdentityHash> hashes, std::vector<ExecutionId> ids) {
  sort_unique(hashes);
  std::vector<IdentityHash> missing = hashes;
  const auto forget_held = [&] {
    std::erase_if(missing, [&](const IdentityHash& hash) { return entries_.contains(hash); });
  };
  // One that is being deleted exists when ours is inserted, and is gone when it is locked: then there is room for ours.
  for (forget_held(); !missing.empty(); forget_held()) {
    connection_.send(kPlaceIdentities, ledger_hashes_of(missing));
    connection_.send(kLockIdentities, ledger_hashes_of(missing));
    connection_.send(kReadTombstones, hashes_of(missing));
    now();
    const Rows placed = connection_.receive();
    receive_entries(connection_.receive());
    receive_tombstones(connection_.receive());
    receive_placed(placed);
  }
  now();
  std::erase_if(ids, [&](const ExecutionId& id) { return rows_.contains(id) || absent_.contains(id); });
  if (!ids.empty()) ids = ids_in(connection_.run(kReadIds, ids_of(ids)));
  for (const IdentityHash& hash : hashes) {
    const LedgerEntry* held = entry(hash);
    if (held && !held->tombstone) ids.push_back(held->owner);
  }
  sort_unique(ids);
  lock_rows(ids);
  complete_entries();
  check_owners(hashes);
}

bool Workspace::read_identities(const std::vector<IdentityHash>& hashes, const std::vector<ExecutionId>& ids,
                                std::int64_t longest) {
  connection_.send(kReadHeld, ledger_hashes_of(hashes).int8(longest));
  if (!ids.empty()) connection_.send(kReadIds, ids_of(ids));
  now();
  const Rows held = connection_.receive();
  const std::vector<ExecutionId> stored = ids.empty() ? ids : ids_in(connection_.receive());
  std::vector<Row> owners;
  owners.reserve(static_cast<std::size_t>(held.size()));
  std::vector<IdentityHash> ownerless;
  bool all_fit = true;
  for (int i = 0; i < held.size(); ++i) {
    Cells cells(held, i);
    const IdentityHash hash = asked_hash(cells);
    LedgerEntry& entry = entries_[hash].entry.emplace();
    entry.owner = cells.raw<ExecutionId>();
    entry.expires_at = cells.time_if();
    if (cells.is_null()) {
      ownerless.push_back(hash);
    } else if (cells.boolean()) {
      read_row(cells, owners.emplace_back());
      // The owner was purged, and its id has come again without the key.
      const Execution& owner = owners.back().execution;
      if (!owner.damaged && (!owner.identity || owner.identity->hash != hash)) ownerless.push_back(hash);
    } else {
      all_fit = false;
    }
  }
  if (!all_fit) return false;
  take_in(std::move(owners));
  // Hardly ever: owners that were purged, and submissions whose answer was lost.
  if (!ownerless.empty()) receive_tombstones(connection_.run(kReadTombstones, hashes_of(ownerless)));
  for (const IdentityHash& hash : ownerless) {
    EntrySlot& slot = entries_[hash];
    if (!slot.entry->tombstone) slot.entry.reset();  // it was purged since
  }
  if (!stored.empty() && !read_stored(stored, longest)) return false;
  complete_entries();
  check_owners(hashes);
  return true;
}

bool Workspace::read_stored(const std::vector<ExecutionId>& ids, std::int64_t longest) {
  const Rows rows = connection_.run(kReadRows, ids_of(ids).int8(longest));
  std::vector<Row> read;
  for (int i = 0; i < rows.size(); ++i) {
    Cells cells(rows, i);
    if (!cells.boolean()) return false;
    read_row(cells, read.emplace_back());
  }
  take_in(std::move(read));
  return true;
}

std::vector<std::int64_t> Workspace::weigh(const std::vector<IdentityHash>& hashes,
                                           const std::vector<ExecutionId>& ids) {
  std::vector<std::int64_t> weights(ids.size());
  Array array(Type::uuid);
  for (const ExecutionId& id : ids) array.raw(id);
  connection_.send(kWeigh, ledger_hashes_of(hashes).array(std::move(array)));
  now();
  const Rows rows = connection_.receive();
  for (int i = 0; i < rows.size(); ++i) {
    Cells cells(rows, i);
    std::int64_t& weight = weights.at(static_cast<std::size_t>(cells.integer() - 1));
    weight += cells.integer();
  }
  return weights;
}

Parameters Workspace::ledger_hashes_of(const std::vector<IdentityHash>& hashes) {
  asked_.insert(hashes.begin(), hashes.end());
  Array array(Type::uuid);
  for (const IdentityHash& hash : hashes) write_ledger_hash(array, hash);
  Parameters parameters;
  parameters.array(std::move(array));
  return parameters;
}

// The first half of a hash that was asked for: what is filled up with zeros comes before all that begin like it.
const IdentityHash& Workspace::asked_hash(Cells& cells) const { return *asked_.lower_bound(cells.raw<IdentityHash>()); }

void Workspace::receive_rows(const Rows& rows) {
  std::vector<Row> read(static_cast<std::size_t>(rows.size()));
  for (int i = 0; i < rows.size(); ++i) {
    Cells cells(rows, i);
    read_row(cells, read[static_cast<std::size_t>(i)]);
  }
  take_in(std::move(read));
}

void Workspace::take_in(std::vector<Row> rows) {
  name(rows);
  for (Row& row : rows) {
    const ExecutionId id = row.execution.id;
    rows_.try_emplace(id, Slot{std::move(row)});  // one that was read before may have been changed since
  }
}

void Workspace::name(std::vector<Row>& rows) {
  std::vector<std::int32_t> numbers;
  for (const Row& row : rows) numbers.push_back(row.queue_no);
  queues_.look_up(connection_, numbers);
  for (Row& row : rows) {
    QueueName name = queues_.name_of(row.queue_no);
    row.execution.name_space = std::move(name.name_space);
    row.execution.queue = std::move(name.queue);
  }
}

void Workspace::receive_entries(const Rows& rows) {
  for (int i = 0; i < rows.size(); ++i) {
    Cells cells(rows, i);
    LedgerEntry& entry = entries_[asked_hash(cells)].entry.emplace();
    entry.owner = cells.raw<ExecutionId>();
    entry.expires_at = cells.time_if();
  }
}

// Those that were made just now stand for none. If none comes, they go again.
void Workspace::receive_placed(const Rows& rows) {
  for (int i = 0; i < rows.size(); ++i) {
    Cells cells(rows, i);
    EntrySlot& slot = entries_[asked_hash(cells)];
    slot.entry.reset();
    slot.is_changed = true;
  }
}

void Workspace::receive_tombstones(const Rows& rows) {
  for (int i = 0; i < rows.size(); ++i) {
    Cells cells(rows, i);
    const auto hash = cells.raw<IdentityHash>();
    const auto slot = entries_.find(hash);
    if (slot != entries_.end() && slot->second.entry) read_tombstone(cells, hash, slot->second);
  }
}

void Workspace::read_tombstone(Cells& cells, const IdentityHash& hash, EntrySlot& slot) {
  LedgerEntry& entry = *slot.entry;
  Tombstone& tombstone = entry.tombstone.emplace();
  entry.identity.hash = hash;
  entry.expires_at = cells.time();
  const auto queue_no = static_cast<std::int32_t>(cells.integer());
  entry.input_hash = cells.raw<InputHash>();
  entry.identity.strategy = cells.word<Strategy>();
  entry.identity.scope.tag = cells.word<Scope::Tag>();
  entry.identity.scope.name = cells.text();
  tombstone.kind = cells.word<Kind>();
  tombstone.type = cells.text();
  tombstone.idempotency_key = cells.text_if();
  tombstone.status = cells.word<Status>();
  tombstone.created_at = entry.created_at = cells.time();
  tombstone.finished_at = cells.time();
  slot.had_tombstone = true;
  slot.tombstone_queue = queue_no;
}

// What an entry says beside its owner is what the owner says.
void Workspace::complete_entries() {
  std::vector<std::int32_t> numbers;
  for (const auto& [hash, slot] : entries_) {
    if (slot.entry && slot.entry->tombstone && !slot.is_changed) numbers.push_back(slot.tombstone_queue);
  }
  queues_.look_up(connection_, numbers);
  for (auto& [hash, slot] : entries_) {
    if (!slot.entry || slot.is_changed) continue;
    LedgerEntry& entry = *slot.entry;
    if (entry.tombstone) {
      QueueName name = queues_.name_of(slot.tombstone_queue);
      entry.name_space = std::move(name.name_space);
      entry.tombstone->queue = std::move(name.queue);
    } else if (const Row* owner = find(entry.owner)) {
      describe(entry, owner->execution);
    }
  }
}

void Workspace::check_owners(const std::vector<IdentityHash>& hashes) {
  for (const IdentityHash& hash : hashes) {
    const LedgerEntry* held = entry(hash);
    if (!held || held->tombstone || find(held->owner)) continue;
    throw Failure(Failure::Code::corrupt,
                  fmt::format("PostgreSQL: the identity {} has no owner; restore a backup", hash.to_string()));
  }
}

void Workspace::read_reports(const std::vector<ExecutionId>& ids) {
  Array gone(Type::uuid);
  for (const ExecutionId& id : ids) {
    if (!find(id)) gone.raw(id);
  }
  if (gone.size() == 0) return;
  Parameters parameters;
  parameters.array(std::move(gone)).time(now());
  const Rows rows = connection_.run(kClosingReports, parameters);
  for (int i = 0; i < rows.size(); ++i) {
    Cells cells(rows, i);
    const auto id = cells.raw<ExecutionId>();
    ClosingReport& report = reports_[id].report;
    report.token.execution = id;
    report.token.attempt = static_cast<std::int32_t>(cells.integer());
    report.token.secret = cells.raw<LeaseSecret>();
    report.said = cells.raw<InputHash>().bytes;
    report.status = cells.word<Status>();
    const auto queue_no = static_cast<std::int32_t>(cells.integer());
    queues_.look_up(connection_, std::vector{queue_no});
    const QueueName name = queues_.name_of(queue_no);
    report.name_space = name.name_space;
    report.queue = name.queue;
    report.had_concurrency_key = cells.boolean();
  }
}

// ---- the picture

Row* Workspace::find(const ExecutionId& id) {
  const auto found = rows_.find(id);
  return found == rows_.end() || found->second.is_erased ? nullptr : &found->second.row;
}

LedgerEntry* Workspace::entry(const IdentityHash& hash) {
  const auto found = entries_.find(hash);
  return found == entries_.end() || !found->second.entry ? nullptr : &*found->second.entry;
}

const Execution* Workspace::owner_of(const LedgerEntry& entry) {
  const Row* owner = entry.tombstone ? nullptr : find(entry.owner);
  return owner ? &owner->execution : nullptr;
}

std::optional<ClosingReport> Workspace::report(const ExecutionId& id) const {
  const auto found = reports_.find(id);
  return found == reports_.end() ? std::nullopt : std::optional(found->second.report);
}

Duration Workspace::retention_of_owner(const LedgerEntry& entry, const Execution* owner) {
  if (owner) return policies_.retention(*owner);
  return policies_.retention(entry.name_space, entry.tombstone->queue, entry.tombstone->kind);
}

bool Workspace::is_live(const LedgerEntry& entry) {
  const Execution* owner = owner_of(entry);
  return hapax::is_live(entry, owner, retention_of_owner(entry, owner), now());
}

std::optional<Time> Workspace::dies_at(const LedgerEntry& entry) {
  const Execution* owner = owner_of(entry);
  return hapax::dies_at(entry, owner, retention_of_owner(entry, owner));
}

void Workspace::describe(LedgerEntry& entry, const Execution& owner) {
  entry.identity = *owner.identity;
  entry.name_space = owner.name_space;
  entry.owner = owner.id;
  entry.input_hash = owner.input_hash;
  entry.created_at = owner.created_at;
}

}  // namespace hapax::postgres
