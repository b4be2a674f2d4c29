#include "store/s3/verbs/queue_scan.h"

#include <algorithm>
#include <tuple>

namespace hapax::s3 {

QueueScan::QueueScan(const Batch& batch, std::string name_space, std::string queue, Kind kind,
                     const std::vector<std::string>& types, const QueuePolicy& policy)
    : batch_(batch), name_space_(std::move(name_space)), queue_(std::move(queue)), kind_(kind), policy_(policy) {
  for (const std::string& type : types) types_.insert(digest_of_type(type));
  list_waiting();
}

namespace {

bool goes_before(const Candidate& a, const Candidate& b) { return rank_of(a.hint).goes_before(rank_of(b.hint)); }

std::optional<std::string> key_of(const Candidate& one) {
  const std::string& key = one.hint.concurrency_key;
  return key.empty() ? std::nullopt : std::optional(key);
}

}  // namespace

void QueueScan::add(const Listed& listed) {
  const auto hint = Hint::parse(listed.name);
  if (!hint || !wants(hint->type)) return;
  if (hint->time <= batch_.now) {
    candidates_.push_back({listed, *hint, std::nullopt, std::nullopt});
  } else if (!next_run_at_ || hint->time < *next_run_at_) {
    next_run_at_ = hint->time;
  }
}

bool QueueScan::wants(const std::string& type) const { return types_.empty() || types_.contains(type); }

// The names of a queue are in the order of their types. Of each type, those that begin with "at-" come first, by time:
// all that have become due are needed, and of the others the first. Then come those that were due from the start, in
// order: as many as fit. What is listed of other types besides is passed over, a page of it at most for each type.
void QueueScan::list_waiting() {
  candidates_.clear();
  more_after_.clear();
  next_run_at_.reset();
  const std::string prefix = types_.size() == 1 ? ready_prefix(name_space_, queue_, kind_, *types_.begin())
                                                : ready_prefix(name_space_, queue_, kind_);
  std::optional<std::string> after = types_.size() < 2 ? "" : after_type("");
  while (after) {
    const Listing listing = batch_.bucket.list(prefix, *after);
    for (const Listed& listed : listing.objects) add(listed);
    after = listing.more ? listed_up_to(listing.objects.back().name) : std::nullopt;
  }
  std::sort(candidates_.begin(), candidates_.end(), goes_before);
}

std::optional<std::string> QueueScan::listed_up_to(const std::string& last) {
  const auto hint = Hint::parse(last);
  if (!hint) return last;
  if (!wants(hint->type)) return after_type(hint->type);
  if (hint->delayed) {
    const bool is_future = hint->time > batch_.now;
    return is_future ? ready_prefix(name_space_, queue_, kind_, hint->type) + "now-" : last;
  }
  more_after_[hint->type] = last;
  return after_type(hint->type);
}

// The place before the names of the next type. Nothing: none that is asked for comes after that one.
std::optional<std::string> QueueScan::after_type(const std::string& type) const {
  if (types_.empty()) {
    std::string place = ready_prefix(name_space_, queue_, kind_, type);
    ++place.back();  // past the slash
    return place;
  }
  const auto next = types_.upper_bound(type);
  return next == types_.end() ? std::nullopt : std::optional(ready_prefix(name_space_, queue_, kind_, *next));
}

void QueueScan::list_more(const std::string& type) {
  const std::string after = more_after_.at(type);
  const Listing listing = batch_.bucket.list(ready_prefix(name_space_, queue_, kind_, type), after);
  for (const Listed& listed : listing.objects) add(listed);
  more_after_.erase(type);
  if (listing.more) more_after_[type] = listing.objects.back().name;
  std::sort(candidates_.begin() + static_cast<std::ptrdiff_t>(at_), candidates_.end(), goes_before);
}

void QueueScan::load_object() {
  const std::string name = queue_name(name_space_, queue_);
  const Found found = batch_.bucket.take({&name, 1}).front();
  object_etag_ = found.etag;
  const QueueDocument document = found.exists() ? read_queue(found.content) : QueueDocument();
  rate_ = document.rate;
  claims_ = document.claims;
  object_loaded_ = true;
}

// The object first: a claim that replaces it later has written its running hints before.
void QueueScan::list_running() {
  if (!object_loaded_) load_object();
  running_.clear();
  const std::string prefix = running_prefix(name_space_, queue_, kind_);
  std::string after;
  for (bool more = true; more;) {
    const Listing listing = batch_.bucket.list(prefix, after);
    for (const Listed& listed : listing.objects) {
      const auto hint = Hint::parse(listed.name);
      if (hint) running_.insert_or_assign(hint->id, Candidate{listed, *hint, std::nullopt, std::nullopt});
    }
    if (!listing.objects.empty()) after = listing.objects.back().name;
    more = listing.more;
  }
  running_listed_ = true;
  verified_ = false;
}

// A hint that its execution does not name belongs to a claim in flight, or is left over.
void QueueScan::verify_running() {
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

void QueueScan::restart() {
  at_ = 0;
  chosen_.clear();
  if (!candidates_.empty()) {
    if (policy_.rate_limit && !object_loaded_) load_object();
    if (policy_.max_running && !running_listed_) list_running();
  }
  limits_.emplace(policy_, *this, batch_.now, rate_);
}

std::int64_t QueueScan::running_with(const std::string& key) {
  return std::count_if(running_.begin(), running_.end(),
                       [&](const auto& one) { return one.second.hint.concurrency_key == key; });
}

// The first one that was not skipped, ignoring the limits. Names that were not listed yet may come before one that was
// delayed.
Candidate* QueueScan::front() {
  const auto comes_first = [&](const auto& more) {
    return at_ >= candidates_.size() || rank_of(*Hint::parse(more.second)).goes_before(rank_of(candidates_[at_].hint));
  };
  for (auto more = std::find_if(more_after_.begin(), more_after_.end(), comes_first); more != more_after_.end();
       more = std::find_if(more_after_.begin(), more_after_.end(), comes_first)) {
    list_more(std::string(more->first));
  }
  return at_ < candidates_.size() ? &candidates_[at_] : nullptr;
}

Candidate* QueueScan::next() {
  using Verdict = rules::QueueLimits::Verdict;
  while (Candidate* one = front()) {
    const auto key = key_of(*one);
    if (key && !running_listed_) list_running();
    Verdict verdict = limits_->judge(key);
    const bool is_full = verdict == Verdict::queue_is_full || verdict == Verdict::key_is_full;
    if (is_full && !verified_) {
      verify_running();
      verdict = limits_->judge(key);
    }
    if (verdict == Verdict::go) return one;
    if (verdict != Verdict::key_is_full) return nullptr;
    ++at_;
  }
  return nullptr;
}

Candidate* QueueScan::take_next() {
  Candidate* one = &candidates_[at_++];
  chosen_.push_back(one);
  limits_->take(key_of(*one));
  return one;
}

std::vector<Candidate*> QueueScan::unread() {
  std::vector<Candidate*> unread;
  for (Candidate* one : chosen_) {
    if (!one->document) unread.push_back(one);
  }
  if (limits_->held_by_rate() && at_ < candidates_.size() && !candidates_[at_].document)
    unread.push_back(&candidates_[at_]);
  return unread;
}

void QueueScan::drop_unclaimable() {
  std::vector<Listed> left_over;
  std::erase_if(candidates_, [&](const Candidate& one) {
    if (one.is_damaged) return true;
    if (!one.document) return false;
    const Execution& execution = one.document->execution;
    const auto& hints = one.document->hints;
    const bool named = std::find(hints.begin(), hints.end(), one.listed.name) != hints.end();
    if (!named) left_over.push_back(one.listed);
    return !named || rules::is_past_deadline(execution, batch_.now) || execution.status != Status::pending;
  });
  remove_if_left_over(batch_, left_over);
  chosen_.clear();
}

void QueueScan::count_chosen() {
  const bool has_limits = policy_.rate_limit || policy_.max_running || limits_->any_taken_with_key();
  const bool is_settled = limits_->held_by_rate() && limits_->rate() != rate_;  // under a changed limit: it refills now
  if (!(limits_->any_taken() && has_limits) && !is_settled) return;
  const QueueDocument document{limits_->rate(), claims_ + 1};
  refused_ = !batch_.bucket.put(Put{queue_name(name_space_, queue_), seal(write(document)), object_etag_});
}

void QueueScan::reload() {
  object_loaded_ = running_listed_ = refused_ = false;
  running_.clear();
  list_waiting();
}

std::optional<Time> QueueScan::next_at() const {
  std::optional<Time> earliest = next_run_at_;
  if (limits_) keep_earliest(earliest, limits_->next_permit());
  return earliest;
}

}  // namespace hapax::s3
