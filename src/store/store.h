// The store contract, by groups of verbs.
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
#include <string>

#include "core/failure.h"
#include "core/policy.h"
#include "store/activity_rows.h"
#include "store/cleaning.h"
#include "store/controlling.h"
#include "store/reading.h"
#include "store/settings.h"
#include "store/submitting.h"
#include "store/turns.h"
#include "store/working.h"

namespace hapax {

class Store : public StoreSubmitting,
              public StoreWorking,
              public StoreTurns,
              public StoreControl,
              public StoreCleaning,
              public StoreReading,
              public StoreSettings {
 public:
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

  // How many concurrent calls of a verb get more done than one after the other, if each has that many items.
  struct Parallelism {
    std::size_t submit = 1, claim = 1, commit_turns = 1;
    std::size_t worth_items = 1;
  };
  virtual Parallelism parallelism() const { return {}; }

  // Whether it hands out to waiters.
  virtual bool hands_out() const { return false; }

  // Frees the identity for the next submission, whatever owns it. False if there was none.
  virtual bool release_identity(const std::string& name_space, const IdentityHash& hash) = 0;

  // What it keeps of activities; lives as long as the store.
  virtual ActivityRows& activities() = 0;

  // Writes and commits something without meaning: throws the Failure that a submission would meet now.
  virtual void check() = 0;

  // From now on calls `on_change`, on a thread of the store's, soon after anybody else changed the data. Spurious calls
  // are allowed, missed ones are not. At most one listener; an empty function ends it, and none is running on return.
  virtual void watch(std::function<void()> on_change) = 0;
};

}  // namespace hapax
