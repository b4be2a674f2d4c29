#include "store/s3/queue_turn.h"

#include <algorithm>
#include <tuple>

namespace hapax::s3 {

bool goes_before(const Hint& a, const Hint& b) {
  return std::tuple(b.priority, a.time, a.id) < std::tuple(a.priority, b.time, b.id);
}

QueueTurn::QueueTurn(const Batch& batch, std::string name_space, std::string queue, Kind kind)
    : batch_(batch),
      name_space_(std::move(name_space)),
      queue_(std::move(queue)),
      kind_(kind),
      policy_(kind == Kind::task ? batch.policies.of(name_space_, queue_) : QueuePolicy()) {
  list_waiting();
}

void QueueTurn::add(const Listed& listed) {
  const auto hint = Hint::parse(listed.name);
  if (!hint) return;
  if (hint->time <= batch_.now) {
    candidates_.push_back({listed, *hint, std::nullopt, std::nullopt});
  } else if (!next_run_at_ || hint->time < *next_run_at_) {
    next_run_at_ = hint->time;
  }
}

// Names that begin with "at-" come first, by time: all that have become due are needed, and of the others the first.
// Then come those that were due from the start, in order: as many as fit.
void QueueTurn::list_waiting() {
  candidates_.clear();
  more_after_.reset();
  next_run_at_.reset();
  const std::string prefix = ready_prefix(name_space_, queue_, kind_);
  std::string after;
  for (bool more = true; more;) {
    const Listing listing = batch_.bucket.list(prefix, after);
    for (const Listed& listed : listing.objects) add(listed);
    more = listing.more;
    if (!more) break;
    after = listing.objects.back().name;
    const auto last = Hint::parse(after);
    if (last && !last->delayed) {
      more_after_ = after;
      break;
    }
    if (next_run_at_) after = prefix + "now-";
  }
  std::sort(candidates_.begin(), candidates_.end(),
            [](const auto& a, const auto& b) { return goes_before(a.hint, b.hint); });
}

void QueueTurn::list_more() {
  const Listing listing = batch_.bucket.list(ready_prefix(name_space_, queue_, kind_), *more_after_);
  for (const Listed& listed : listing.objects) add(listed);
  more_after_ = listing.more ? std::optional(listing.objects.back().name) : std::nullopt;
  std::sort(candidates_.begin() + static_cast<std::ptrdiff_t>(at_), candidates_.end(),
            [](const auto& a, const auto& b) { return goes_before(a.hint, b.hint); });
}

void QueueTurn::load_object() {
  const std::string name = queue_name(name_space_, queue_);
  const Found found = batch_.bucket.take({&name, 1}).front();
  object_etag_ = found.etag;
  const QueueDocument document = found.exists() ? read_queue(found.content) : QueueDocument();
  rate_ = document.rate;
  claims_ = document.claims;
  object_loaded_ = true;
}

// The object first: whoever replaces it later has written his running hints before.
void QueueTurn::list_running() {
  if (!object_loaded_) load_object();
  running_.clear();
  std::string after;
  for (bool more = true; more;) {
    const Listing listing = batch_.bucket.list(std::string(kRunning), after);
    for (const Listed& listed : listing.objects) {
      const auto hint = Hint::parse(listed.name);
      if (!hint || hint->name_space != name_space_ || hint->queue != queue_ || hint->execution_kind != kind_) continue;
      running_.insert_or_assign(hint->id, Candidate{listed, *hint, std::nullopt, std::nullopt});
    }
    if (!listing.objects.empty()) after = listing.objects.back().name;
    more = listing.more;
  }
  running_listed_ = true;
  verified_ = false;
}

// A hint that its execution does not name is that of a claim under way, or left over.
void QueueTurn::verify_running() {
  verified_ = true;
  std::vector<std::string> names;
  for (const auto& [id, one] : running_) names.push_back(task_name(id));
  const auto found = batch_.bucket.look(names);
  std::vector<Listed> left_over;
  std::size_t i = 0;
  for (auto one = running_.begin(); one != running_.end(); ++i) {
    const bool runs = found[i].exists() && read_task(found[i].content).execution.status == Status::running;
    const bool old = batch_.now - one->second.listed.modified_at >= kGraveTime;
    if (runs || !old) {
      ++one;
    } else {
      left_over.push_back(one->second.listed);
      one = running_.erase(one);
    }
  }
  remove_if_left_over(batch_, left_over);
}

void QueueTurn::restart() {
  at_ = 0;
  taken_ = 0;
  taken_with_key_ = false;
  taken_by_key_.clear();
  held_by_rate_ = false;
  chosen_.clear();
  if (!candidates_.empty()) {
    if (policy_.rate_limit && !object_loaded_) load_object();
    if (policy_.max_running && !running_listed_) list_running();
  }
  rate_after_ = rate_;
}

std::int64_t QueueTurn::running_with(const std::string& key) const {
  const auto taken = taken_by_key_.find(key);
  return (taken == taken_by_key_.end() ? 0 : taken->second) +
         std::count_if(running_.begin(), running_.end(),
                       [&](const auto& one) { return one.second.hint.concurrency_key == key; });
}

bool QueueTurn::out_of_rate() {
  if (!policy_.rate_limit) return false;
  RateState trial = rate_after_;
  held_by_rate_ = take(*policy_.rate_limit, trial, batch_.now, 1) == 0;
  if (held_by_rate_) rate_after_ = trial;  // under a changed limit
  return held_by_rate_;
}

// The first one that was not passed, whatever the limits say. Names that were not listed yet may come before one that
// was delayed.
Candidate* QueueTurn::front() {
  while (more_after_ && (at_ >= candidates_.size() || goes_before(*Hint::parse(*more_after_), candidates_[at_].hint)))
    list_more();
  return at_ < candidates_.size() ? &candidates_[at_] : nullptr;
}

bool QueueTurn::is_full(const Candidate& one, bool& ended) const {
  ended = policy_.max_running && std::ssize(running_) + taken_ >= *policy_.max_running;
  const std::string& key = one.hint.concurrency_key;
  return ended || (!key.empty() && running_with(key) >= policy_.concurrency_limit);
}

Candidate* QueueTurn::next() {
  while (Candidate* one = front()) {
    if (!one->hint.concurrency_key.empty() && !running_listed_) list_running();
    bool ended = false;
    if (is_full(*one, ended) && !verified_) verify_running();
    if (is_full(*one, ended)) {
      if (ended) return nullptr;
      ++at_;
      continue;
    }
    return out_of_rate() ? nullptr : one;
  }
  return nullptr;
}

void QueueTurn::take_next() {
  Candidate* one = &candidates_[at_++];
  chosen_.push_back(one);
  ++taken_;
  if (!one->hint.concurrency_key.empty()) {
    taken_with_key_ = true;
    ++taken_by_key_[one->hint.concurrency_key];
  }
  if (policy_.rate_limit) take(*policy_.rate_limit, rate_after_, batch_.now, 1);
}

std::vector<Candidate*> QueueTurn::unread() {
  std::vector<Candidate*> unread;
  for (Candidate* one : chosen_) {
    if (!one->document) unread.push_back(one);
  }
  if (held_by_rate_ && at_ < candidates_.size() && !candidates_[at_].document) unread.push_back(&candidates_[at_]);
  return unread;
}

void QueueTurn::drop_unclaimable() {
  std::vector<Listed> left_over;
  std::erase_if(candidates_, [&](const Candidate& one) {
    if (one.is_damaged) return true;
    if (!one.document) return false;
    const Execution& execution = one.document->execution;
    const auto& hints = one.document->hints;
    const bool named = std::find(hints.begin(), hints.end(), one.listed.name) != hints.end();
    if (!named) left_over.push_back(one.listed);
    const bool over = execution.deadline_at && *execution.deadline_at <= batch_.now;  // the next sweep times it out
    return !named || over || execution.status != Status::pending;
  });
  remove_if_left_over(batch_, left_over);
  chosen_.clear();
}

void QueueTurn::count_chosen() {
  const bool has_limits = policy_.rate_limit || policy_.max_running || taken_with_key_;
  const bool is_settled = held_by_rate_ && rate_after_ != rate_;  // under a changed limit: it refills from now on
  if ((taken_ == 0 || !has_limits) && !is_settled) return;
  const QueueDocument document{rate_after_, claims_ + 1};
  refused_ = !batch_.bucket.put(Put{queue_name(name_space_, queue_), seal(write(document)), object_etag_});
}

void QueueTurn::reload() {
  object_loaded_ = running_listed_ = refused_ = false;
  running_.clear();
  list_waiting();
}

std::optional<Time> QueueTurn::next_at() const {
  std::optional<Time> earliest = next_run_at_;
  if (held_by_rate_) {
    const Time permit = next_permit(*policy_.rate_limit, rate_after_, batch_.now);
    if (!earliest || permit < *earliest) earliest = permit;
  }
  return earliest;
}

}  // namespace hapax::s3
