#include "store/s3/transaction/workspace.h"

#include <algorithm>

namespace hapax::s3 {

HintChange place_hints(TaskDocument& document, const std::vector<std::string>& before, Time now) {
  HintChange change;
  std::vector<std::string> kept;
  for (Hint& wanted : wanted_hints(document.execution, now)) {
    const auto serving = std::find_if(before.begin(), before.end(), [&](const std::string& name) {
      const auto hint = Hint::parse(name);
      return hint && hint->serves(wanted);
    });
    if (serving != before.end()) {
      kept.push_back(*serving);
      continue;
    }
    wanted.mark = new_mark();
    change.added.push_back(wanted.name());
    kept.push_back(change.added.back());
  }
  for (const std::string& name : before) {
    if (std::find(kept.begin(), kept.end(), name) == kept.end()) change.dropped.push_back(name);
  }
  document.hints = std::move(kept);
  return change;
}

// ---- executions

Workspace::TaskSlot& Workspace::slot(const ExecutionId& id) {
  const auto known = tasks_.find(id);
  if (known != tasks_.end()) return known->second;
  TaskSlot& slot = tasks_[id];
  const Found& found = transaction_.read(task_name(id));
  slot.grave = found.grave;
  if (!found.exists()) return slot;
  slot.before = read_task(found.content);
  slot.document = slot.before;
  if (const auto& identity = slot.document->execution.identity) {
    record_names_.emplace(identity->hash, record_name(slot.document->execution));
  }
  return slot;
}

TaskDocument* Workspace::task(const ExecutionId& id) {
  TaskSlot& found = slot(id);
  return found.document ? &*found.document : nullptr;
}

void Workspace::prefetch(const std::vector<ExecutionId>& ids) {
  std::vector<std::string> names;
  for (const ExecutionId& id : ids) {
    if (!tasks_.contains(id)) names.push_back(task_name(id));
  }
  transaction_.prefetch(names);
}

const std::optional<Grave>& Workspace::grave(const ExecutionId& id) { return slot(id).grave; }

void Workspace::renew_hints(const ExecutionId& id) { slot(id).renewed = true; }

void Workspace::insert(Execution execution) {
  bucket_.mark_used({{execution.name_space, execution.queue}});
  TaskSlot& place = slot(execution.id);
  if (execution.identity) {
    record_names_.emplace(execution.identity->hash, record_name(execution));
  }
  place.document.emplace();
  place.document->execution = std::move(execution);
  place.document->mark = new_mark();
  const auto waiting = waiters_.find(place.document->execution.id);
  if (waiting != waiters_.end()) place.document->waiters = waiting->second;
}

void Workspace::add_waiter(const ExecutionId& awaited, const Waiter& waiter) {
  TaskDocument* document = task(awaited);
  std::vector<Waiter>& waiters = document ? document->waiters : waiters_[awaited];
  if (std::find(waiters.begin(), waiters.end(), waiter) == waiters.end()) waiters.push_back(waiter);
}

void Workspace::erase(const ExecutionId& id) {
  TaskSlot& place = slot(id);
  Grave& grave = place.grave.emplace();
  grave.at = now_;
  grave.keep_until = place.document->execution.created_at + kGraveTime;
  grave.final = grave.keep_until <= now_;
  place.document.reset();
}

void Workspace::keep_report(const ClosingReport& report, Time until) {
  Grave& grave = *slot(report.token.execution).grave;
  grave.report = report;
  grave.keep_until = std::max(grave.keep_until, until);
  grave.final = false;
}

std::vector<ExecutionId> Workspace::steps_of(const ExecutionId& run) {
  std::vector<ExecutionId> ids;
  const std::string prefix = steps_prefix(run);
  std::string after;
  for (bool more = true; more;) {
    const Listing listing = bucket_.list(prefix, after);
    for (const Listed& object : listing.objects) {
      if (const auto hint = Hint::parse(object.name)) ids.push_back(hint->id);
      after = object.name;
    }
    more = listing.more;
  }
  for (const auto& [id, slot] : tasks_) {
    if (slot.document && slot.document->execution.parent == run) ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  prefetch(ids);
  return ids;
}

std::optional<ExecutionId> Workspace::latest_run(const std::string& name_space, const std::string& workflow_id) {
  for (const auto& [id, slot] : tasks_) {  // one that this transaction starts has no hint yet
    if (slot.before || !slot.document) continue;
    const Execution& started = slot.document->execution;
    const bool is_run = started.kind == Kind::workflow && started.name_space == name_space;
    if (is_run && started.idempotency_key == workflow_id) return id;
  }
  const std::string prefix = runs_prefix(name_space, workflow_id);
  std::string after;
  for (bool more = true; more;) {
    const Listing listing = bucket_.list(prefix, after, 100);
    for (const Listed& object : listing.objects) {
      after = object.name;
      const auto hint = Hint::parse(object.name);
      if (hint && task(hint->id)) return hint->id;
    }
    more = listing.more;
  }
  return std::nullopt;
}

// ---- the ledger

Workspace::RecordSlot& Workspace::slot(const std::string& record_name) {
  const auto known = records_.find(record_name);
  if (known != records_.end()) return known->second;
  RecordSlot& slot = records_[record_name];
  const Found& found = transaction_.read(record_name);
  if (!found.exists()) return slot;
  slot.before = read_record(found.content);
  slot.before->name = record_name;
  slot.record = slot.before;
  if (!slot.record->ready && slot.record->task) {
    finish_creating(*slot.record);
  } else if (!slot.record->entry.tombstone && !task(slot.record->entry.owner)) {
    // Deleted between the two reads; or by something other than this program, and then nothing holds the key.
    const Found again = bucket_.take({&record_name, 1}).front();
    torn_ = torn_ || again.etag != found.etag;
    slot.record->entry.expires_at.reset();
  }
  return slot;
}

// The record exists and the task does not: it is put now, exactly the same. If the record is unchanged and the task is
// absent, the task was never there: deleting a task changes its record with it.
void Workspace::finish_creating(Record& record) {
  const ExecutionId owner = record.entry.owner;
  const std::string name = task_name(owner);
  const auto known = tasks_.find(owner);
  if (known == tasks_.end() ? transaction_.read(name).exists() : known->second.document.has_value()) return;
  const Found again = bucket_.take({&record.name, 1}).front();
  if (again.etag != transaction_.read(record.name).etag) {
    torn_ = true;
    return;
  }
  const TaskDocument document = read_task(*record.task);
  bucket_.put_hints(document.hints);
  bucket_.put(Put{name, seal(*record.task), transaction_.read(name).etag});
  torn_ = torn_ || known != tasks_.end();  // it was taken for absent before
  transaction_.forget(name);
}

std::string Workspace::known_record_name(const IdentityHash& hash) {
  const auto known = record_names_.find(hash);
  if (known != record_names_.end()) return known->second;
  const auto name = bucket_.find_record(hash);
  return name ? record_names_.emplace(hash, *name).first->second : std::string();
}

Record* Workspace::record_for(const Execution& execution) {
  RecordSlot& found = slot(record_name(execution));
  return found.record ? &*found.record : nullptr;
}

Record* Workspace::record(const IdentityHash& hash) {
  const std::string name = known_record_name(hash);
  if (name.empty()) return nullptr;
  RecordSlot& found = slot(name);
  return found.record ? &*found.record : nullptr;
}

Record& Workspace::put_record(const Execution& owner, const LedgerEntry& entry) {
  const std::string name = record_name(owner);
  RecordSlot& place = slot(name);
  std::optional<Time> drawn_until;
  if (place.record)
    drawn_until = std::max(place.record->drawn_until.value_or(Time()), place.record->entry.owner.drawn_at());
  place.record.emplace();
  place.record->drawn_until = drawn_until;
  place.record->name = name;
  place.record->entry = entry;
  place.record->key = owner.idempotency_key;
  place.record->task_type = owner.type;
  place.taken = true;
  return *place.record;
}

void Workspace::erase_record(const Record& record) {
  const std::string name = record.name;
  slot(name).record.reset();
}

// ---- requests

std::optional<RequestDocument> Workspace::request(const std::string& name_space, const std::string& request_key) {
  const Found& found = transaction_.read(request_name(name_space, request_key));
  return found.exists() ? std::optional(read_request(found.content)) : std::nullopt;
}

void Workspace::put_request(const std::string& name_space, const std::string& request_key,
                            const RequestDocument& request) {
  requests_[request_name(name_space, request_key)] = request;
}

// ---- commit

void Workspace::write_task(const ExecutionId& id, TaskSlot& slot) {
  const std::string name = task_name(id);
  if (!slot.document) {
    if (!slot.before) return;  // it came and went
    for (const std::string& hint : slot.before->hints) transaction_.drop_hint(hint);
    transaction_.add_hint(end_hint(End::grave, slot.grave->keep_until, name));
    transaction_.write(name, write(*slot.grave));
    return;
  }
  if (slot.before == slot.document && !slot.renewed) return;
  std::vector<std::string> before = slot.before ? slot.before->hints : std::vector<std::string>();
  std::vector<std::string> stale;
  if (slot.renewed) {
    for (const std::string& hint : before) {
      if (hint.starts_with(kRunning) || hint.starts_with(kDue)) stale.push_back(hint);
    }
    std::erase_if(before,
                  [&](const std::string& hint) { return hint.starts_with(kRunning) || hint.starts_with(kDue); });
  }
  HintChange change = place_hints(*slot.document, before, now_);
  for (std::string& hint : change.added) transaction_.add_hint(std::move(hint));
  for (std::string& hint : change.dropped) transaction_.drop_hint(std::move(hint));
  for (std::string& hint : stale) transaction_.drop_hint(std::move(hint));
  if (slot.before) {
    transaction_.write(name, write(*slot.document));
  } else {
    transaction_.create(name, write(*slot.document));
  }
}

void Workspace::write_record(const std::string& name, RecordSlot& slot) {
  if (!slot.record) {
    if (!slot.before) return;
    Grave grave;
    grave.at = now_;
    grave.keep_until = slot.before->entry.created_at + kGraveTime;
    grave.final = grave.keep_until <= now_;
    transaction_.add_hint(end_hint(End::grave, grave.keep_until, name));
    transaction_.write(name, write(grave));
    return;
  }
  if (slot.before == slot.record && !slot.taken) return;
  const LedgerEntry& entry = slot.record->entry;
  if (entry.tombstone && entry.expires_at) transaction_.add_hint(end_hint(End::identity, *entry.expires_at, name));
  transaction_.write(name, write(*slot.record));
}

std::optional<std::pair<std::string, ExecutionId>> Workspace::only_a_new_keyed_task() const {
  if (!requests_.empty()) return std::nullopt;
  std::optional<ExecutionId> created;
  for (const auto& [id, slot] : tasks_) {
    if (slot.before == slot.document) continue;
    if (created || slot.before) return std::nullopt;
    created = id;
  }
  std::optional<std::string> taken;
  for (const auto& [name, slot] : records_) {
    if (slot.before == slot.record && !slot.taken) continue;
    if (taken || !slot.record || !created || slot.record->entry.owner != *created) return std::nullopt;
    taken = name;
  }
  return taken ? std::optional(std::pair(*taken, *created)) : std::nullopt;
}

bool Workspace::commit() {
  if (torn_) return false;
  const auto keyed = only_a_new_keyed_task();
  for (auto& [id, slot] : tasks_) write_task(id, slot);
  for (auto& [name, slot] : records_) {
    if (slot.record && (slot.taken || slot.before != slot.record)) {
      slot.record->ready = !keyed;
      slot.record->task = keyed ? std::optional(write(*tasks_.at(keyed->second).document)) : std::nullopt;
    }
    write_record(name, slot);
  }
  for (const auto& [name, request] : requests_) {
    transaction_.add_hint(end_hint(End::request, request.expires_at, name));
    transaction_.write(name, write(request));
  }
  if (keyed) return transaction_.commit_record_and_task(keyed->first, task_name(keyed->second));
  return transaction_.commit();
}

}  // namespace hapax::s3
