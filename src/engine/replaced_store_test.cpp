// What an engine does when the store under it turns out to be another one, and when it does not answer at all.
#include <gmock/gmock.h>

#include <future>
#include <mutex>
#include <thread>

#include "engine/local_engine.h"
#include "store/call_deadline.h"
#include "store/forwarding_store.h"
#include "store/memory/memory_store.h"

namespace hapax {
namespace {

using namespace std::chrono_literals;

// A store that can be replaced by an empty one, or freeze.
class FragileStore final : public ForwardingStore {
 public:
  FragileStore() : ForwardingStore(open_memory_store(clock())) {}

  static const Clock& clock() {
    static const SystemClock clock;
    return clock;
  }

  void replace() {
    {
      const std::lock_guard lock(mutex_);
      next_ = open_memory_store(clock());
    }
    if (on_change_) on_change_();
  }
  void freeze() { frozen_ = true; }

  bool is_replaced() override {
    const std::lock_guard lock(mutex_);
    return next_ != nullptr;
  }
  void reopen() override {
    const std::lock_guard lock(mutex_);
    current_ = std::move(next_);
    ++reopened_;
  }
  void interrupt() override { interrupted_ = true; }
  int reopened() const { return reopened_; }

  void watch(std::function<void()> on_change) override { on_change_ = std::move(on_change); }
  std::vector<SubmitOutcome> submit(std::span<const Submission> submissions, WaitingClaims& waiters) override {
    return now_there()->submit(submissions, waiters);
  }
  std::vector<SettingDocument> settings() override { return now_there()->settings(); }
  void put_setting(const SettingDocument& setting) override { now_there()->put_setting(setting); }
  ActivityRows& activities() override { return now_there()->activities(); }
  SweepOutcome sweep(std::int32_t limit) override { return now_there()->sweep(limit); }
  std::optional<Execution> find(const std::string& name_space, const ExecutionId& id) override {
    return now_there()->find(name_space, id);
  }
  std::vector<std::optional<Execution>> find_all(const std::string& name_space,
                                                 std::span<const ExecutionId> ids) override {
    return now_there()->find_all(name_space, ids);
  }

 private:
  std::shared_ptr<Store> now_there() {
    while (frozen_ && !interrupted_ && !CallDeadline::is_over()) std::this_thread::yield();
    if (frozen_) throw Failure(Failure::Code::unavailable, "it has not answered in time");
    const std::lock_guard lock(mutex_);
    if (next_) throw Failure(Failure::Code::unavailable, "it is another one");
    return current_ ? current_ : store_;
  }

  std::mutex mutex_;
  std::shared_ptr<Store> current_, next_;
  std::atomic<int> reopened_ = 0;
  std::atomic<bool> frozen_ = false, interrupted_ = false;
  std::function<void()> on_change_;
};

class EngineOverAFragileStore : public ::testing::Test {
 protected:
  std::future<SubmitResult> submit(const std::string& type) {
    std::vector<SubmitRequest> requests(1);
    requests[0].type = type;
    auto promise = std::make_shared<std::promise<SubmitResult>>();
    engine_->submit("default", std::move(requests), [promise](Answer<std::vector<SubmitResult>> answer) {
      try {
        promise->set_value(std::move(std::move(answer).get().at(0)));
      } catch (...) {
        promise->set_exception(std::current_exception());
      }
    });
    return promise->get_future();
  }

  const std::shared_ptr<FragileStore> store_ = std::make_shared<FragileStore>();
  std::unique_ptr<LocalEngine> engine_;
};

TEST_F(EngineOverAFragileStore, GoesOnWithTheOneThatIsThereAndForgetsWhatItKnew) {
  EngineOptions options;
  options.activities["nightly"] = ActivitySettings::parse(
      parse_json(R"({"workflow":{"type":"report"},"trigger":{"cron":{"expression":"0 3 * * *"}}})"));
  engine_ = start_engine(store_, std::move(options));
  QueueSettings paused;
  paused.paused = true;
  engine_->put_queue("default", "q", paused);
  EXPECT_TRUE(engine_->queue("default", "q").settings.paused.value_or(false));
  const ExecutionId before = std::get<Receipt>(submit("t").get()).execution.id;

  store_->replace();
  while (store_->reopened() == 0 || engine_->queue("default", "q").settings.paused) std::this_thread::yield();
  EXPECT_FALSE(engine_->find("default", before));
  while (!store_->activities().find("default", "nightly")) std::this_thread::yield();
  EXPECT_TRUE(std::holds_alternative<Receipt>(submit("t").get()));
}

TEST_F(EngineOverAFragileStore, AnswersEverybodyByTheDeadlineThoughTheStoreDoesNot) {
  EngineOptions options;
  options.store_timeout = Duration(50);
  engine_ = start_engine(store_, std::move(options));
  store_->freeze();
  std::vector<std::future<SubmitResult>> answers;
  for (int i = 0; i < 20; ++i) answers.push_back(submit("t"));
  for (auto& answer : answers) EXPECT_THROW(answer.get(), Failure);
  engine_->stop(Duration(0));
}

TEST_F(EngineOverAFragileStore, StopsThoughTheStoreDoesNotAnswer) {
  EngineOptions options;
  options.store_timeout = Duration(1h);
  engine_ = start_engine(store_, std::move(options));
  store_->freeze();
  auto first = submit("t"), second = submit("t");
  engine_->stop(Duration(20));
  EXPECT_THROW(first.get(), Failure);
  EXPECT_THROW(second.get(), Failure);
}

}  // namespace
}  // namespace hapax
