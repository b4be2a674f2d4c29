// One queue during a claim: its pending tasks in claim order, and its limits.
//
// A queue with limits (a rate, max_running, or tasks with concurrency keys) has an object,
// queues/{namespace}/{queue}.json. A claim there reads it, then lists what runs, writes the running hints of what it
// takes, and replaces the object unless it has changed: so of two concurrent claims one sees the other's hints and
// counts them. The hints are the count; if the count blocks a claim, it is verified.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "store/rules/claim.h"
#include "store/s3/verbs/verbs.h"

namespace hapax::s3 {

struct Candidate {
  Listed listed;
  Hint hint;
  std::optional<TaskDocument> document;  // once it was read
  std::optional<Etag> etag;
  bool is_damaged = false;  // it was read, and cannot be
};

inline rules::Rank rank_of(const Hint& hint) { return {hint.priority, hint.time, hint.id}; }

class QueueScan final : public rules::RunningCounts {
 public:
  // Of these types; of any, if none is named.
  QueueScan(const Batch& batch, std::string name_space, std::string queue, Kind kind,
            const std::vector<std::string>& types, const QueuePolicy& policy);

  // Starts choosing again. next() is the first that the limits allow, or null; take_next() counts it as handed out.
  void restart();
  Candidate* next();
  std::optional<rules::Rank> next_rank() {
    const Candidate* one = next();
    return one ? std::optional(rank_of(one->hint)) : std::nullopt;
  }
  Candidate* take_next();

  // What must be read before the choice is sure; empty if nothing.
  std::vector<Candidate*> unread();
  void drop_unclaimable();  // given what was read

  // Counts what was chosen in the object of the queue, if its limits ask for it. Refused: another claim was first, and
  // nothing may be taken.
  void count_chosen();
  bool refused() const { return refused_; }
  void reload();  // after that, and after losing a task to another claim

  // When the clock alone may let another one through.
  std::optional<Time> next_at() const;

 private:
  void list_waiting();
  std::optional<std::string> listed_up_to(const std::string& last);  // where to go on; nothing: that was all
  std::optional<std::string> after_type(const std::string& type) const;
  bool wants(const std::string& type) const;
  void list_more(const std::string& type);
  void add(const Listed& listed);
  void load_object();
  void list_running();
  void verify_running();
  std::int64_t running() override { return std::ssize(running_); }
  std::int64_t running_with(const std::string& key) override;
  Candidate* front();

  const Batch& batch_;
  const std::string name_space_, queue_;
  const Kind kind_;
  const QueuePolicy& policy_;

  std::deque<Candidate> candidates_;               // due ones
  std::set<std::string> types_;                    // digests of those that are asked for; empty: of any
  std::map<std::string, std::string> more_after_;  // by type: names that were not listed yet, in order, come after that
  std::optional<Time> next_run_at_;

  bool object_loaded_ = false, running_listed_ = false, verified_ = false, refused_ = false;
  std::optional<Etag> object_etag_;
  std::int64_t claims_ = 0;
  RateState rate_;
  std::map<ExecutionId, Candidate> running_;

  // The choice so far.
  std::size_t at_ = 0;
  std::optional<rules::QueueLimits> limits_;
  std::vector<Candidate*> chosen_;
};

}  // namespace hapax::s3
