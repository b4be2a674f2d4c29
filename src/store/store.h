// The store contract.
//
// A store is shared by all threads of a process, and its data by all processes and machines that open the same URL.
// Every verb takes a batch, is atomic per item, applies the items in order, and has made the whole batch durable when
// it returns. Time is the store's own, the same for all who share it.
//
// After Failure::outcome_unknown the caller sends the same batch again and gets the first answer: a submission is
// recognised by its execution id, a report by its lease token, a control operation by its request key. Only a claim is
// not repeated: what an unanswered one took is claimable again when its lease ends.
//
// Every call has a deadline: the store's own timeout (PostgresOptions::timeout and the like), or the CallDeadline that
// its caller has set, whichever is earlier (store/call_deadline.h). At the deadline the call stops waiting and throws:
// Failure::unavailable if nothing was or will be done, Failure::outcome_unknown if the commit was in flight. migrate()
// has none.
//
// The data has an identity: drawn at random when a store is created, and again when it is created anew or a backup is
// restored in its place. What a handle remembers (numbers of queues, locations of rows) is true for one identity only.
// So each verb checks, in the transaction that relies on it and without a separate round trip, that the identity is
// still the one that the handle was opened with. If it is another, or the store is gone, the verb does nothing and
// throws Failure::unavailable. So does every later verb, until reopen() has forgotten everything: see is_replaced().
//
// Throws Failure only. Every answer, even an unwelcome one, is returned.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/execution.h"
#include "core/failure.h"
#include "core/lease.h"
#include "core/ledger.h"
#include "core/policy.h"
#include "core/report.h"
#include "core/reuse.h"
#include "core/workflow.h"
#include "store/activity_rows.h"
#include "store/page.h"

namespace hapax {

// ---- what a verb changed besides

// An execution that was closed, purged with it if its retention is nothing; or one that is claimable again.
struct Closed {
  ExecutionId id;
  std::string name_space;
  std::string queue;
  Kind kind = Kind::task;

  bool operator==(const Closed&) const = default;
};

// What else a verb changed, for those who wait. Queues may be named more than once.
struct Effects {
  std::vector<Closed> closed;
  std::vector<Closed> ready;     // claimable, now or at a time to come; what was handed out is not
  std::optional<Time> next_due;  // sweeping has something to do then

  bool operator==(const Effects&) const = default;

  bool empty() const { return closed.empty() && ready.empty() && !next_due; }
  void add(const Effects& more);
  void add_changed(const Execution& changed);  // closed, or claimable again
};

// ---- submit

struct Submission {
  Execution execution;  // complete, except created_at and run_at; pending; with its own id
  Reuse reuse = Reuse::allow_failed;
  std::optional<Duration> idempotency_ttl;
  std::optional<Time> run_at;        // absent: now
  Duration delay{};                  // added to now where run_at is absent
  std::optional<Duration> deadline;  // from creation; unless the execution has a deadline_at
  bool dry_run = false;              // answer as if, change nothing
  bool brief = false;                // of a batch: see answer_budget.h
};

struct SubmitOutcome {
  enum class Kind : std::uint8_t {
    created,
    duplicate,
    conflict,
    id_taken  // by an execution of another namespace, about which nothing is revealed
  };

  Kind kind = Kind::created;  // `created` also for one that comes again under its id
  Execution execution;        // the new one, or the owner of the identity, which may be damaged
  bool purged = false;        // only a tombstone of the owner is left: `execution` has no input, result or attempts
  bool omitted = false;  // `execution` is without input, result, error and attempts: the answers to a batch are bounded
  std::optional<Time> expires_at;         // of the ledger entry, as far as known
  std::optional<ExecutionId> superseded;  // the owner that was superseded
  Effects effects;                        // of cancelling it

  bool operator==(const SubmitOutcome&) const = default;
};

// ---- claim, extend, finish

struct ClaimRequest {
  std::string name_space;
  std::vector<std::string> queues;  // without repetition
  bool tasks = true;                // what to hand out: tasks,
  bool workflows = false;           // turns of workflows, or both
  std::int32_t limit = 1;
  std::string worker;
  Duration lease{60'000};
  LeaseSecret secret;  // fresh for every request; all its leases carry it
};

struct ClaimOutcome {
  std::vector<Execution> executions;  // running now, highest priority first, then run_at, then id
  // For each workflow among them, in order: the events that its last turn did not know (those after run.seen).
  std::vector<std::vector<Event>> events;
  // If fewer than the limit were found: when the clock alone may make more claimable. Absent: only a change will.
  std::optional<Time> next_at;
  bool more = false;  // it ended at kPageBytes: the rest is claimable now

  bool operator==(const ClaimOutcome&) const = default;
};

// Waiting claims. A verb may hand them what it makes claimable, in the same commit, where no limits apply: no limit of
// the queue, no concurrency key. Saves the waiter a claim.
struct Waiters {
  std::vector<ClaimRequest> requests;
  // Called within the transaction, when it is known what may be handed out: waiting claims may be added then. Absent:
  // none.
  std::function<void(const std::vector<Execution*>& candidates)> join;
  std::vector<ClaimOutcome> outcomes;  // one for each request that was handed something; without next_at

  bool may_be_any() const { return !requests.empty() || join; }
};

struct Extension {
  LeaseToken token;
  Duration lease{60'000};       // of no length: the attempt is given back, as if it had never been claimed
  std::string name_space = {};  // the caller's: the lease of another is lost; empty: of any
};

struct ExtendOutcome {
  bool ok = false;
  bool cancel_requested = false;
  std::optional<Time> lease_expires_at;
  Effects effects;  // of giving back: it is claimable again, or closed if it was to be cancelled

  bool operator==(const ExtendOutcome&) const = default;
};

struct FinishOutcome {
  bool accepted = false;             // false: the lease is lost, nothing changed
  Status status = Status::failed;    // where accepted: after the report
  std::string name_space, queue;     // where accepted
  std::optional<Time> run_at;        // where it is pending again
  bool had_concurrency_key = false;  // another of its key may run now
  std::optional<Execution> purged;   // where closing it deleted it: what it was
  Effects effects;                   // on workflows that waited for it

  bool operator==(const FinishOutcome&) const = default;
};

// ---- turns of workflows

// What a worker hands back when the code of a workflow cannot continue: its commands, and how it ended.
struct Turn {
  struct Suspended {};  // it waits for what it asked for
  // It is not over: what it has done so far is kept, and it continues under the same lease, still running. If something
  // has happened to the run that this turn does not know, the turn is over anyway, and the run pending.
  struct Unfinished {};
  struct Completed {
    std::optional<std::string> result;  // JSON
  };
  struct Failed {
    AttemptError error;
  };
  // Its code does not match the history, or the worker does not know its type. It stays suspended and is tried again.
  struct Stuck {
    AttemptError error;
  };
  // Its next run, under the same workflow id, begins.
  struct Continued {
    ExecutionId id;     // of the next run, fresh for every turn
    std::string input;  // canonical JSON
    InputHash input_hash;
  };

  // A task that the worker began within the turn, before either was stored: its first attempt, under a lease that the
  // worker made. Only for a task that is claimable at once, without limits (see Engine::begin_step). It is stored as if
  // it had been claimed at the moment of this commit. If a task of its id exists, the turn is not accepted.
  struct Begun {
    LeaseSecret secret;
    std::string worker;
    Duration lease{60'000};
    std::optional<Report::Completed> completed = std::nullopt;  // absent: it is still running
  };

  // A task or child that a command asks for. Its id, parent, step and parent_workflow_id are the store's to give.
  struct Start {
    std::int32_t step = 0;
    Submission submission;
    std::optional<Begun> begun = std::nullopt;
  };

  LeaseToken token;
  std::string name_space;  // of the reporter; empty: any
  std::shared_ptr<const Execution> run =
      nullptr;  // as it was claimed, if the caller still has it: the store need not read it
  // A turn that was not claimed. The worker that had the workflow's last turn, whose token this is, ends a step that
  // the workflow waits for, with this report, and continues in the same commit, as the turn token.next(). That counts
  // only if the step's end is all that has happened since: it has the number `seen`. Otherwise the step ends, and the
  // turn can be claimed.
  std::optional<Report> step;
  std::int64_t seen = 0;      // the latest event that this turn knew
  std::vector<Event> events;  // its commands in order, steps counted on from the run's last; and outcomes known at once
  std::vector<Start> starts;  // for the tasks and children among them
  std::variant<Suspended, Unfinished, Completed, Failed, Stuck, Continued> end;
};

struct TurnOutcome {
  bool accepted = false;              // false: the lease is lost, nothing changed but what `step` says
  Status status = Status::failed;     // where accepted: of the workflow now
  std::optional<FinishOutcome> step;  // of the step that was ended; its effects are with those below
  Effects effects;
  // The run, now closed by this turn, if the store has it at hand: those who wait for it need not read it.
  std::optional<Execution> run = std::nullopt;

  bool operator==(const TurnOutcome& other) const {
    return accepted == other.accepted && status == other.status && step == other.step && effects == other.effects;
  }
};

// ---- control

struct ControlRequest {
  enum class Action : std::uint8_t { cancel, retry, resume, fork, signal };

  std::string name_space;
  std::string request_key;
  Action action = Action::cancel;
  ExecutionId target;
  std::optional<std::string> workflow_id;  // instead of `target`: its latest run
  InputHash parameters;                    // of everything below: the same key with others is a conflict
  Duration request_ttl = std::chrono::days(7);

  std::string signal;                  // signal: its name
  std::optional<std::string> payload;  // and what comes with it, JSON

  std::int32_t from_step = 1;    // fork: the first step that runs again
  std::string fork_workflow_id;  // of the new workflow
  Identity fork_identity;        // of that id
  ExecutionId fork_id;           // the new run's, fresh for every request
};

struct ControlOutcome {
  enum class Kind : std::uint8_t {
    done,            // the operation ran, or ran before under this key (`replayed`)
    not_found,       // no such execution
    not_retryable,   // retry: it is not failed, cancelled or timed_out
    identity_taken,  // retry, resume, fork: the identity has another owner by now, in `other`
    not_open,        // signal: the workflow is closed
    no_such_step,    // fork: the workflow has not come that far; `steps` says how far
    failed_before,   // this key's operation failed; `before` says how
    key_conflict     // this key was used for another operation or execution
  };

  Kind kind = Kind::done;
  bool replayed = false;
  bool changed = false;             // whether the operation changed anything
  Status status = Status::pending;  // of the execution right after the operation
  std::optional<ExecutionId> other;
  std::optional<ExecutionId> execution;  // that it was done to; fork: the new run
  std::int32_t steps = 0;
  Kind before = Kind::done;
  Effects effects;  // not part of the answer

  bool operator==(const ControlOutcome&) const = default;
};

// ---- sweep, purge

struct SweepOutcome {
  Effects effects;    // next_due: of what remains, if nothing more is due now
  bool more = false;  // the limit was reached

  bool operator==(const SweepOutcome&) const = default;
};

struct PurgeOutcome {
  std::int64_t executions = 0;
  std::int64_t identities = 0;
  std::int64_t requests = 0;
  bool more = false;
  bool more_reports = false;  // of those kept for kReportMemory; not compared: each store forgets them at its own pace

  bool operator==(const PurgeOutcome& other) const {
    return executions == other.executions && identities == other.identities && requests == other.requests &&
           more == other.more;
  }
};

// ---- read

struct ListFilter {
  std::string name_space;
  Kind kind = Kind::task;
  std::optional<std::string> queue, type, idempotency_key;
  std::optional<Status> status;
  std::optional<ExecutionId> parent;
  std::optional<ExecutionId> before;  // the cursor: only executions with a smaller id
  std::int32_t limit = 100;
};

struct QueueCount {
  std::string name_space, queue;
  std::int64_t pending = 0;  // claimable or delayed
  std::int64_t running = 0;
  std::optional<Time> oldest_run_at;  // of the pending ones

  bool operator==(const QueueCount&) const = default;
};

struct FoundIdentity {
  LedgerEntry entry;
  std::optional<Execution> owner;  // absent: purged, the entry has its tombstone
  bool live = false;
  std::optional<Time> expires_at;

  bool operator==(const FoundIdentity&) const = default;
};

// A part of a walk over everything that is stored.
struct Inspection {
  std::int64_t checked = 0;           // executions, and what else has a place of its own
  std::vector<std::string> findings;  // what is damaged
  std::string next;                   // where the next part begins; empty: that was all
};

// The owner of an identity, for a submission that is about to be made.
struct OwnerQuery {
  NamedScope scope;
  IdentityHash hash;
  ExecutionId submission;
};

// A queue's or type's settings as a client put them over the API: a JSON object that the store does not look into.
struct SettingDocument {
  enum class Kind : std::uint8_t { queue, type };

  std::string name_space;
  Kind kind = Kind::queue;
  std::string name;
  std::string document;

  bool operator==(const SettingDocument&) const = default;
};

class Store {
 public:
  virtual ~Store() = default;

  // The time that all who share this store agree on.
  virtual Time now() = 0;

  // Brings the schema up to what this program knows. Safe when several do it at once. Opening does it for an empty
  // store.
  virtual void migrate() = 0;

  // The identity of the data when it was opened, or at the last reopen(). Empty if no one else can replace the data:
  // memory.
  virtual std::string identity() { return {}; }

  // Whether a verb has found that the data is not that of identity() any more. Calls on_change of watch() soon after it
  // turns true.
  virtual bool is_replaced() { return false; }

  // Forgets everything and continues with the data that is there now, under the latest policies. Throws Failure if
  // there is none, or none that this program knows; then it may be called again. Does nothing unless is_replaced().
  virtual void reopen() {}

  // Ends the calls in flight, on all threads: they throw as if their deadline had passed, and so does every later call.
  // For a process that must end now.
  virtual void interrupt() {}

  // The rules that the verbs below apply from now on. They apply to what is stored already, too.
  virtual void set_policies(std::shared_ptr<const QueuePolicies> policies) = 0;

  // How many calls of a verb at once get more done than one after the other, if each brings as many items as make it
  // worth that.
  struct Committers {
    std::size_t submit = 1, claim = 1, commit_turns = 1;
    std::size_t worth_items = 1;
  };
  virtual Committers committers() const { return {}; }

  // Whether it hands out to waiters.
  virtual bool hands_out() const { return false; }

  // Creates executions, or finds the ones that stand for them. A submission whose id exists is answered as created, and
  // what was handed out as it was created: pending.
  virtual std::vector<SubmitOutcome> submit(std::span<const Submission> submissions, Waiters& waiters) = 0;
  std::vector<SubmitOutcome> submit(std::span<const Submission> submissions) {
    Waiters none;
    return submit(submissions, none);
  }

  // Hands out pending executions whose time has come, within the limits of their queues.
  virtual std::vector<ClaimOutcome> claim(std::span<const ClaimRequest> requests) = 0;

  virtual std::vector<ExtendOutcome> extend(std::span<const Extension> extensions) = 0;
  // A report that closed an execution is recognised for kReportMemory, even if the execution is deleted by then.
  virtual std::vector<FinishOutcome> finish(std::span<const Report> reports, Waiters& waiters) = 0;
  std::vector<FinishOutcome> finish(std::span<const Report> reports) {
    Waiters none;
    return finish(reports, none);
  }

  // Appends the turn to its workflow's history, starts what it asked for and sets its status, as one.
  virtual std::vector<TurnOutcome> commit_turns(std::span<const Turn> turns, Waiters& waiters) = 0;
  std::vector<TurnOutcome> commit_turns(std::span<const Turn> turns) {
    Waiters none;
    return commit_turns(turns, none);
  }

  // Runs the operation and keeps its outcome under the request key, as one.
  virtual std::vector<ControlOutcome> control(std::span<const ControlRequest> requests) = 0;

  // Ends what has become due, oldest first, at most `limit` of them.
  virtual SweepOutcome sweep(std::int32_t limit) = 0;

  // Deletes, at most `limit` of each: closed executions past their retention, dead ledger entries, old request keys,
  // and reports too old to be repeated. A ledger entry with time left becomes a tombstone.
  virtual PurgeOutcome purge(std::int32_t limit) = 0;
  // Of these the request keys alone: how many were deleted.
  virtual std::int64_t purge_requests(std::int32_t limit) = 0;

  // Read only; may run beside everything above. What is damaged is never given back: Failure::corrupt, or an entry
  // among a page's damaged ones; a claim passes over it.
  virtual std::optional<Execution> find(const std::string& name_space, const ExecutionId& id) = 0;
  virtual std::vector<std::optional<Execution>> find_all(const std::string& name_space,
                                                         std::span<const ExecutionId> ids) {
    std::vector<std::optional<Execution>> found;
    for (const ExecutionId& id : ids) found.push_back(find(name_space, id));
    return found;
  }
  // Costs what its namespace has, whatever the others have. Ends early where kPageBytes are reached.
  virtual Page list(const ListFilter& filter) = 0;
  // Every queue that was ever used, with what is open in it; of one namespace, or of all.
  virtual std::vector<QueueCount> count(const std::optional<std::string>& name_space = std::nullopt) = 0;
  // Of a run, those after that one, oldest first. Ends early where kPageBytes are reached; none: there are no more.
  virtual std::vector<Event> history(const ExecutionId& run, std::int64_t after, std::int32_t limit) = 0;
  virtual std::optional<FoundIdentity> find_identity(const IdentityHash& hash) = 0;
  // The same, where the identity's scope is known: a store that keeps the ledger by scopes need not look through all of
  // them.
  virtual std::optional<FoundIdentity> find_identity_in(const NamedScope&, const IdentityHash& hash) {
    return find_identity(hash);
  }

  // The owner that the ledger names for each identity, whether its entry is live or not. Nothing if there is no entry,
  // if the owner was purged, or if the submission was made before. As fresh as a submission's own read; for caches.
  virtual std::vector<std::optional<ExecutionId>> owners(std::span<const OwnerQuery> queries) {
    std::vector<std::optional<ExecutionId>> owners;
    for (const OwnerQuery& query : queries) {
      const std::optional<FoundIdentity> found = find_identity_in(query.scope, query.hash);
      const bool made_before = found && find(found->entry.name_space, query.submission);
      owners.push_back(found && found->owner && !made_before ? std::optional(found->entry.owner) : std::nullopt);
    }
    return owners;
  }
  virtual std::vector<SettingDocument> settings() = 0;

  // Frees the identity for the next submission, whatever owns it. False if there was none.
  virtual bool release_identity(const std::string& name_space, const IdentityHash& hash) = 0;

  virtual void put_setting(const SettingDocument& setting) = 0;

  // What it keeps of activities; lives as long as the store.
  virtual ActivityRows& activities() = 0;

  // Reads everything once, in parts of about `limit` executions: `from` is empty at first, then what the last part gave
  // as next. Changes nothing. Nothing to do for a store that keeps nothing.
  virtual Inspection inspect(const std::string& /*from*/, std::int32_t /*limit*/) { return {}; }

  // Writes and commits something without meaning: throws the Failure that a submission would meet now.
  virtual void check() = 0;

  // From now on calls `on_change`, on a thread of the store's, soon after anybody else changed the data. Spurious calls
  // are allowed, missed ones are not. At most one listener; an empty function ends it, and none is running on return.
  virtual void watch(std::function<void()> on_change) = 0;
};

inline void Effects::add_changed(const Execution& changed) {
  (is_closed(changed.status) ? closed : ready).push_back({changed.id, changed.name_space, changed.queue, changed.kind});
}

inline void Effects::add(const Effects& more) {
  closed.insert(closed.end(), more.closed.begin(), more.closed.end());
  ready.insert(ready.end(), more.ready.begin(), more.ready.end());
  if (more.next_due && (!next_due || *more.next_due < *next_due)) next_due = more.next_due;
}

}  // namespace hapax
