#include <algorithm>
#include <deque>

#include "core/transition.h"
#include "store/s3/verbs/queue_scan.h"

namespace hapax::s3 {

namespace {

constexpr int kRounds = 100;
constexpr std::size_t kReadAtOnce = 16;  // objects: each may be large

struct Pick {
  QueueScan* turn;
  Candidate* candidate;
};

// The first ones over all queues, as far as the names and the limits tell.
std::vector<Pick> choose(std::deque<QueueScan>& turns, std::size_t limit) {
  std::vector<Pick> picks;
  std::vector<QueueScan*> queues;
  for (QueueScan& turn : turns) {
    turn.restart();
    queues.push_back(&turn);
  }
  while (picks.size() < limit) {
    QueueScan* first = rules::first_of(queues);
    if (!first) break;
    picks.push_back({first, first->take_next()});
  }
  return picks;
}

// One that cannot be read does not keep the others from it.
std::vector<Found> take_each(const Batch& batch, std::span<const std::string> names) {
  try {
    return batch.bucket.take(names);
  } catch (const Failure& failure) {
    if (failure.code() != Failure::Code::corrupt) throw;
  }
  std::vector<Found> found;
  for (std::size_t i = 0; i < names.size(); ++i) {
    try {
      found.push_back(batch.bucket.take(names.subspan(i, 1)).front());
    } catch (const Failure& failure) {
      if (failure.code() != Failure::Code::corrupt) throw;
      found.emplace_back().damage = failure.what();
    }
  }
  return found;
}

// Reads what the choice depends on. True if the choice holds.
bool is_sure(const Batch& batch, std::deque<QueueScan>& turns) {
  std::vector<Candidate*> unread;
  for (QueueScan& turn : turns) {
    for (Candidate* candidate : turn.unread()) unread.push_back(candidate);
  }
  if (unread.empty()) return true;
  unread.resize(std::min(unread.size(), kReadAtOnce));
  std::vector<std::string> names;
  for (const Candidate* candidate : unread) names.push_back(task_name(candidate->hint.id));
  const auto found = take_each(batch, names);
  for (std::size_t i = 0; i < unread.size(); ++i) {
    unread[i]->is_damaged = !found[i].damage.empty();
    unread[i]->document = found[i].exists() ? read_task(found[i].content) : TaskDocument();  // which no hint leads to
    unread[i]->etag = found[i].etag;
  }
  for (QueueScan& turn : turns) turn.drop_unclaimable();
  return false;
}

// How many of the picks fit into the answer, beside what was taken, as far as they have been read.
std::size_t fitting(const std::vector<TaskDocument>& taken, const std::vector<Pick>& picks) {
  PageBudget budget;
  for (const TaskDocument& document : taken) budget.add(document.execution.payload_bytes());
  for (std::size_t i = 0; i < picks.size(); ++i) {
    const auto& document = picks[i].candidate->document;
    if (document && !budget.take(document->execution.payload_bytes())) return i;
  }
  return picks.size();
}

// Gives the picked ones their leases. Those that another claim has taken are not returned.
std::vector<TaskDocument> take(const Batch& batch, const ClaimRequest& request, std::deque<QueueScan>& turns,
                               const std::vector<Pick>& picks) {
  std::vector<TaskWrite> writes;
  for (const Pick& pick : picks) {
    TaskWrite& write = writes.emplace_back();
    write.document = *pick.candidate->document;
    write.name = task_name(write.document.execution.id);
    write.replaces = pick.candidate->etag;
    write.hints_before = write.document.hints;
    start_attempt(write.document.execution, request.worker, request.secret, request.lease, batch.now);
  }
  // Once the running hints are there, the limits decide.
  const auto may_go = [&] {
    for (QueueScan& turn : turns) turn.count_chosen();
    std::vector<bool> may;
    for (const Pick& pick : picks) may.push_back(!pick.turn->refused());
    return may;
  };
  const auto written = write_each(batch, writes, may_go);
  std::vector<TaskDocument> taken;
  for (std::size_t i = 0; i < writes.size(); ++i) {
    if (written[i]) taken.push_back(std::move(writes[i].document));
  }
  return taken;
}

// What the same claim was handed before: the hints lead to it.
std::vector<TaskDocument> handed_before(const Batch& batch, const ClaimRequest& request) {
  const std::string digest = digest_of_claim(request.secret);
  std::vector<std::string> names;
  std::string after;
  for (bool more = true; more;) {
    const Listing listing = batch.bucket.list(namespace_prefix(kRunning, request.name_space), after);
    for (const Listed& listed : listing.objects) {
      const auto hint = Hint::parse(listed.name);
      if (hint && hint->claim == digest) names.push_back(task_name(hint->id));
    }
    if (!listing.objects.empty()) after = listing.objects.back().name;
    more = listing.more;
  }
  std::sort(names.begin(), names.end());  // one execution may have several hints
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::vector<TaskDocument> handed;
  for (const Found& found : take_each(batch, names)) {
    if (!found.exists() || !found.damage.empty()) continue;
    TaskDocument document = read_task(found.content);
    if (rules::was_handed(request, document.execution, batch.now)) handed.push_back(std::move(document));
  }
  return handed;
}

// Adds them to the outcome, in the order of claims.
void answer_with(ClaimOutcome& outcome, std::vector<TaskDocument> taken) {
  std::sort(taken.begin(), taken.end(), [](const TaskDocument& one, const TaskDocument& other) {
    return rules::rank_of(one.execution).goes_before(rules::rank_of(other.execution));
  });
  PageBudget budget;
  for (TaskDocument& document : taken) {
    budget.add(document.execution.payload_bytes());
    if (document.execution.kind == Kind::workflow) {
      std::vector<Event>& events = outcome.events.emplace_back();
      for (Event& event : document.history) {
        if (event.no > document.execution.run.seen && !add_event(events, std::move(event), budget)) break;
      }
    }
    outcome.executions.push_back(std::move(document.execution));
  }
}

}  // namespace

ClaimOutcome claim(const Batch& batch, const ClaimRequest& request) {
  if (request.repeatable) {
    ClaimOutcome before;
    answer_with(before, handed_before(batch, request));
    before.more = !before.executions.empty();
    if (before.more || request.limit <= 0) return before;
  }
  std::deque<QueueScan> turns;
  for (const std::string& queue : request.queues) {
    for (const Kind kind : {Kind::task, Kind::workflow}) {
      if (!(kind == Kind::task ? request.tasks : request.workflows)) continue;
      const QueuePolicy* policy = rules::limits_of(batch.policies, request.name_space, queue, kind);
      if (policy) turns.emplace_back(batch, request.name_space, queue, kind, request.types, *policy);
    }
  }
  auto limit = static_cast<std::size_t>(std::max(request.limit, 0));
  ClaimOutcome outcome;
  std::vector<TaskDocument> taken;
  for (int round = 0; taken.size() < limit && round < kRounds; ++round) {
    auto picks = choose(turns, limit - taken.size());
    if (const std::size_t fit = fitting(taken, picks); fit < picks.size()) {
      outcome.more = true;
      limit = taken.size() + fit;
      continue;
    }
    if (!is_sure(batch, turns)) continue;
    if (picks.empty()) {
      for (QueueScan& turn : turns) turn.count_chosen();
      break;
    }
    auto more = take(batch, request, turns, picks);
    taken.insert(taken.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
    if (more.size() == picks.size()) break;
    pause_before_try(round);
    for (QueueScan& turn : turns) turn.reload();
  }

  if (taken.size() < limit) {
    for (const QueueScan& turn : turns) keep_earliest(outcome.next_at, turn.next_at());
  }
  answer_with(outcome, std::move(taken));
  return outcome;
}

}  // namespace hapax::s3
