#include "engine/update.h"

#include <algorithm>
#include <optional>

#include "core/update.h"

namespace hapax {

namespace {

constexpr std::int32_t kPage = 1000;
// Answers that another server commits are found no later than this, where the store tells nobody of them.
constexpr std::chrono::milliseconds kLookEvery{500};

ControlRequest delivery_of(const UpdateRequest& update) {
  ControlRequest request;
  request.name_space = update.name_space;
  request.request_key = update.request_key;
  request.action = ControlRequest::Action::signal;
  request.workflow_id = update.workflow_id;
  request.signal = update_signal(update.name);
  request.payload = write_update(update.request_key, update.payload);
  return request;
}

}  // namespace

struct UpdateDesk::Call : Waiting, std::enable_shared_from_this<Call> {
  using Steady = std::chrono::steady_clock;

  Call(UpdateDesk& d, std::string space, std::string key, Duration wait, Reply<UpdateOutcome> r)
      : desk(d),
        name_space(std::move(space)),
        answer_name(update_answer(key)),
        until(Steady::now() + wait),
        reply(std::move(r)) {}

  void cancel() override {
    over = true;
    if (is_delivered) desk.look_soon(shared_from_this());
  }

  UpdateDesk& desk;
  const std::string name_space, answer_name;
  const Steady::time_point until;
  const Reply<UpdateOutcome> reply;
  std::atomic<bool> over = false;  // its caller has hung up
  std::atomic<bool> is_delivered = false;

  // Used by the reader's thread only, once it was delivered.
  UpdateOutcome outcome;
  ExecutionId run;         // that has it now
  std::int64_t after = 0;  // of its history, this much was read
  std::optional<Timer::Key> next_look;
  bool ended = false;
};

std::shared_ptr<Waiting> UpdateDesk::update(UpdateRequest request, Duration wait, Reply<UpdateOutcome> reply) {
  auto call = std::make_shared<Call>(*this, request.name_space, request.request_key, wait, std::move(reply));
  control_(delivery_of(request), [this, call](Answer<ControlOutcome> answer) { delivered(call, std::move(answer)); });
  return call;
}

void UpdateDesk::delivered(const std::shared_ptr<Call>& call, Answer<ControlOutcome> answer) {
  try {
    call->outcome.delivery = std::move(answer).get();
  } catch (...) {
    return call->reply(std::current_exception());
  }
  if (call->outcome.delivery.kind != ControlOutcome::Kind::done) return call->reply(call->outcome);
  call->run = call->outcome.delivery.execution.value();
  {
    const std::lock_guard lock(mutex_);
    calls_.emplace(call->run, call);
  }
  call->is_delivered = true;
  look_soon(call);
}

void UpdateDesk::look_soon(const std::shared_ptr<Call>& call) {
  reader_.soon([this, call] { look(call); });
}

void UpdateDesk::look(const std::shared_ptr<Call>& call) {
  if (call->ended) return;
  if (call->next_look) reader_.cancel(*std::exchange(call->next_look, std::nullopt));
  try {
    const bool is_known = find_answer(*call, call->outcome);
    const auto left = call->until - Call::Steady::now();
    if (is_known || call->over || stopping_ || left <= left.zero()) return end(call, call->outcome);
    const auto pause = std::min(kLookEvery, std::chrono::ceil<std::chrono::milliseconds>(left));
    call->next_look = reader_.after(pause, [this, call] {
      call->next_look.reset();
      look(call);
    });
  } catch (...) {
    end(call, std::current_exception());
  }
}

// The run is read first: of a closed one, the history that is read after it is complete.
bool UpdateDesk::find_answer(Call& call, UpdateOutcome& outcome) {
  for (;;) {
    const std::optional<Execution> run = store_.find(call.name_space, call.run);
    if (!run) {
      outcome.state = UpdateOutcome::State::closed;
      return true;
    }
    for (;;) {
      const std::vector<Event> page = store_.history(call.run, call.after, kPage);
      if (page.empty()) break;
      for (const Event& event : page) {
        if (event.kind != Event::Kind::publish || event.name != call.answer_name) continue;
        const auto answer = read_answer(event.value.value_or(""));
        if (!answer) throw Failure(Failure::Code::corrupt, "the answer to the update is not in the form of one");
        outcome.state = answer->error ? UpdateOutcome::State::refused : UpdateOutcome::State::answered;
        outcome.result = answer->result;
        outcome.error = answer->error;
        return true;
      }
      call.after = page.back().no;
    }
    if (!run->run.continued_as) {
      const bool is_over = is_closed(run->status);
      if (is_over) outcome.state = UpdateOutcome::State::closed;
      return is_over;
    }
    const std::lock_guard lock(mutex_);
    const auto shared = call.shared_from_this();
    std::erase_if(calls_, [&](const auto& entry) { return entry.second == shared; });
    call.run = *run->run.continued_as;
    call.after = 0;
    calls_.emplace(call.run, shared);
  }
}

void UpdateDesk::end(const std::shared_ptr<Call>& call, Answer<UpdateOutcome> answer) {
  call->ended = true;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(calls_, [&](const auto& entry) { return entry.second == call; });
  }
  call->reply(std::move(answer));
}

void UpdateDesk::may_be_answered(const ExecutionId& run) {
  Calls waiting;
  {
    const std::lock_guard lock(mutex_);
    const auto [first, last] = calls_.equal_range(run);
    for (auto call = first; call != last; ++call) waiting.push_back(call->second);
  }
  for (const auto& call : waiting) look_soon(call);
}

void UpdateDesk::look_again() {
  Calls waiting;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [run, call] : calls_) waiting.push_back(call);
  }
  for (const auto& call : waiting) look_soon(call);
}

void UpdateDesk::stop() {
  stopping_ = true;
  look_again();
}

}  // namespace hapax
