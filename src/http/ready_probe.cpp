#include "http/ready_probe.h"

#include "core/failure.h"
#include "http/error.h"

namespace hapax::http {

namespace {

constexpr std::chrono::milliseconds kTimeLimit{3000};
constexpr std::size_t kMaxQuestions = 256;

}  // namespace

ReadyProbe::ReadyProbe(Engine& engine) : engine_(engine), thread_([this] { run(); }) {}

void ReadyProbe::ask(const Responder& responder, Response ready) {
  responder.limit(kTimeLimit, [] { return late_response(false); });
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) throw Failure(Failure::Code::stopped, "the server is shutting down");
    if (questions_.size() >= kMaxQuestions) throw overloaded("Too many readiness checks are waiting.");
    questions_.emplace_back(responder, std::move(ready));
  }
  changed_.notify_one();
}

void ReadyProbe::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void ReadyProbe::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !questions_.empty(); });
    if (questions_.empty()) return;
    std::vector<Question> questions = std::exchange(questions_, {});
    lock.unlock();
    answer(std::move(questions));
    lock.lock();
  }
}

void ReadyProbe::answer(std::vector<Question> questions) {
  try {
    engine_.check_ready();
    for (auto& [responder, ready] : questions) responder.answer(std::move(ready));
  } catch (...) {
    const Response failure = error_response(std::current_exception());
    for (const auto& [responder, ready] : questions) responder.answer(failure);
  }
}

}  // namespace hapax::http
