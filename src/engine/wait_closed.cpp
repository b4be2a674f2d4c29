#include "engine/wait_closed.h"

#include <algorithm>

namespace hapax {

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
  bool over = false;  // the wait has ended: the next look is the last
  std::optional<Timer::Key> deadline;
};

std::shared_ptr<Waiting> ResultDesk::wait(const std::string& name_space, const ExecutionId& id, Duration wait,
                                          Reply<std::optional<Execution>> reply) {
  auto call = std::make_shared<Call>(*this, name_space, id, std::move(reply));
  {
    // Known before it looks, so that no closing falls between the two.
    std::lock_guard lock(mutex_);
    calls_.emplace(id, call);
    call->over = wait.count() == 0 || stopping_;
    if (!call->over) {
      call->deadline = timer_.after(wait, [weak = std::weak_ptr(call)] {
        if (auto waiting = weak.lock()) waiting->desk.end_wait(waiting);
      });
    }
  }
  if (stopping_) {
    look(call);  // the reader may be gone already
  } else {
    reader_.soon([this, call] { look(call); });
  }
  return call;
}

void ResultDesk::look(const std::shared_ptr<Call>& call) {
  try {
    std::optional<Execution> execution = store_.find(call->name_space, call->id);
    bool over;
    {
      std::lock_guard lock(mutex_);
      over = call->over;
    }
    if (over || !execution || is_closed(execution->status)) end(call, std::move(execution));
  } catch (...) {
    end(call, std::current_exception());
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
  reader_.soon([this, call] { look(call); });
}

std::vector<std::shared_ptr<ResultDesk::Call>> ResultDesk::calls_for(const ExecutionId& id) const {
  std::vector<std::shared_ptr<Call>> calls;
  std::lock_guard lock(mutex_);
  const auto [first, last] = calls_.equal_range(id);
  for (auto entry = first; entry != last; ++entry) calls.push_back(entry->second);
  return calls;
}

void ResultDesk::closed(const ExecutionId& id, std::optional<Execution> purged) {
  for (const auto& call : calls_for(id)) {
    if (purged && purged->name_space == call->name_space) {
      end(call, purged);
    } else {
      reader_.soon([this, call] { look(call); });
    }
  }
}

void ResultDesk::closed_now(const ExecutionId& id) {
  for (const auto& call : calls_for(id)) look(call);
}

void ResultDesk::look_again() {
  std::vector<std::shared_ptr<Call>> calls;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [id, call] : calls_) calls.push_back(call);
  }
  for (const auto& call : calls) look(call);
}

void ResultDesk::stop() {
  std::vector<std::shared_ptr<Call>> calls;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    for (const auto& [id, call] : calls_) {
      call->over = true;
      calls.push_back(call);
    }
  }
  for (const auto& call : calls) look(call);
}

std::int64_t ResultDesk::waiting() const {
  std::lock_guard lock(mutex_);
  return static_cast<std::int64_t>(calls_.size());
}

}  // namespace hapax
