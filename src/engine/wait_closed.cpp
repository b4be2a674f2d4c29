#include "engine/wait_closed.h"

#include <algorithm>
#include <map>

namespace hapax {

namespace {

constexpr std::size_t kMostAtOnce = 500;  // are read
constexpr std::size_t kLatest = 256;      // remembered closings, and runs that were created

}  // namespace

struct ResultDesk::Call : Waiting, std::enable_shared_from_this<Call> {
  Call(ResultDesk& d, std::string n, const ExecutionId& i, Reply<std::optional<Execution>> r)
      : desk(d), name_space(std::move(n)), id(i), reply(std::move(r)) {}

  void cancel() override { desk.end_wait(shared_from_this()); }

  ResultDesk& desk;
  const std::string name_space;
  const ExecutionId id;
  const Reply<std::optional<Execution>> reply;

  // Under the desk's lock.
  bool ended = false;
  bool over = false;  // the wait has ended: the next read is the last
  std::optional<Timer::Key> deadline;
};

std::shared_ptr<Waiting> ResultDesk::wait(const std::string& name_space, const ExecutionId& id, Duration wait,
                                          Reply<std::optional<Execution>> reply, std::optional<Mark> found_open_since) {
  auto call = std::make_shared<Call>(*this, name_space, id, std::move(reply));
  bool is_open;
  {
    // Registered before it reads, so that no closing is missed in between.
    std::lock_guard lock(mutex_);
    calls_.emplace(id, call);
    call->over = wait.count() == 0 || stopping_;
    is_open = found_open_since && !call->over && !may_be_closed_since(*found_open_since, id);
    if (!call->over) {
      call->deadline = timer_.after(wait, [weak = std::weak_ptr(call)] {
        if (auto waiting = weak.lock()) waiting->desk.end_wait(waiting);
      });
    }
  }
  if (is_open) return call;
  if (stopping_) {
    look({call});  // the reader may have ended
  } else {
    look_soon(call);
  }
  return call;
}

void ResultDesk::look_soon(const std::shared_ptr<Call>& call) {
  {
    std::lock_guard lock(mutex_);
    to_look_.push_back(call);
    if (to_look_.size() > 1) return;  // the reader has been notified
  }
  reader_.soon([this] {
    Calls calls;
    {
      std::lock_guard lock(mutex_);
      calls.swap(to_look_);
    }
    look(calls);
  });
}

void ResultDesk::look(const Calls& calls) {
  std::map<std::string, Calls> by_name_space;
  for (const auto& call : calls) by_name_space[call->name_space].push_back(call);
  for (const auto& [name_space, of_one] : by_name_space) {
    for (std::span rest(of_one); !rest.empty(); rest = rest.subspan(std::min(kMostAtOnce, rest.size()))) {
      look(name_space, rest.first(std::min(kMostAtOnce, rest.size())));
    }
  }
}

void ResultDesk::look(const std::string& name_space, std::span<const std::shared_ptr<Call>> calls) {
  std::vector<ExecutionId> ids;
  for (const auto& call : calls) ids.push_back(call->id);
  std::vector<std::optional<Execution>> found;
  try {
    found = store_.find_all(name_space, ids);
  } catch (const Failure& failure) {
    // One that cannot be read must not affect the others.
    const bool one_by_one = calls.size() > 1 && !failure.safe_to_retry();
    for (const auto& call : calls) {
      one_by_one ? look(name_space, {&call, 1}) : end(call, std::current_exception());
    }
    return;
  } catch (...) {
    for (const auto& call : calls) end(call, std::current_exception());
    return;
  }
  for (std::size_t i = 0; i < calls.size(); ++i) {
    bool over;
    {
      std::lock_guard lock(mutex_);
      over = calls[i]->over;
    }
    if (over || !found[i] || is_closed(found[i]->status)) end(calls[i], std::move(found[i]));
  }
}

void ResultDesk::end(const std::shared_ptr<Call>& call, Answer<std::optional<Execution>> answer) {
  {
    std::lock_guard lock(mutex_);
    if (call->ended) return;
    call->ended = true;
    if (call->deadline) timer_.cancel(*call->deadline);
    const auto [first, last] = calls_.equal_range(call->id);
    calls_.erase(std::find_if(first, last, [&](const auto& entry) { return entry.second == call; }));
  }
  call->reply(std::move(answer));
}

void ResultDesk::end_wait(const std::shared_ptr<Call>& call) {
  {
    std::lock_guard lock(mutex_);
    call->over = true;
  }
  look_soon(call);
}

ResultDesk::Mark ResultDesk::mark() const {
  std::lock_guard lock(mutex_);
  return closings_;
}

bool ResultDesk::may_be_closed_since(Mark mark, const ExecutionId& id) const {
  const Mark since = closings_ - mark;
  if (since > latest_.size()) return true;
  return std::find(latest_.end() - static_cast<std::ptrdiff_t>(since), latest_.end(), id) != latest_.end();
}

void ResultDesk::created_run(const Execution& run, Mark before) {
  std::lock_guard lock(mutex_);
  if (runs_.size() >= kLatest) runs_.clear();  // most of them are closed by now
  runs_.insert_or_assign({run.name_space, run.idempotency_key.value_or("")}, OpenRun{run.id, before});
}

void ResultDesk::forget_runs() {
  std::lock_guard lock(mutex_);
  runs_.clear();
}

std::optional<ResultDesk::OpenRun> ResultDesk::open_run(const std::string& name_space,
                                                        const std::string& workflow_id) const {
  std::lock_guard lock(mutex_);
  const auto found = runs_.find({name_space, workflow_id});
  if (found == runs_.end() || may_be_closed_since(found->second.since, found->second.id)) return std::nullopt;
  return found->second;
}

// Gives back who waits for it.
ResultDesk::Calls ResultDesk::note_closed(const ExecutionId& id) {
  Calls calls;
  std::lock_guard lock(mutex_);
  ++closings_;
  latest_.push_back(id);
  if (latest_.size() > kLatest) latest_.pop_front();
  const auto [first, last] = calls_.equal_range(id);
  for (auto entry = first; entry != last; ++entry) calls.push_back(entry->second);
  return calls;
}

void ResultDesk::closed(const ExecutionId& id, std::optional<Execution> known) {
  for (const auto& call : note_closed(id)) {
    if (known && known->name_space == call->name_space) {
      end(call, known);
    } else {
      look_soon(call);
    }
  }
}

void ResultDesk::closed_now(const ExecutionId& id) { look(note_closed(id)); }

void ResultDesk::look_again() {
  Calls calls;
  {
    std::lock_guard lock(mutex_);
    ++closings_;
    latest_.clear();
    for (const auto& [id, call] : calls_) calls.push_back(call);
  }
  look(calls);
}

void ResultDesk::stop() {
  Calls calls;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    for (const auto& [id, call] : calls_) {
      call->over = true;
      calls.push_back(call);
    }
  }
  look(calls);
}

std::int64_t ResultDesk::waiting() const {
  std::lock_guard lock(mutex_);
  return static_cast<std::int64_t>(calls_.size());
}

}  // namespace hapax
