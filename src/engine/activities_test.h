// Activities over a memory store with a clock of the test's own: what their tests share.
#pragma once

#include <gmock/gmock.h>

#include <chrono>
#include <functional>
#include <map>
#include <thread>

#include "engine/activities.h"
#include "engine/activity_record.h"
#include "engine/local_engine.h"
#include "store/forwarding_store.h"
#include "store/memory/memory_store.h"
#include "support/manual_clock.h"

namespace hapax {

inline constexpr auto kLong =
    std::chrono::seconds(20);  // longer than any test takes; a test that waits this long has failed
inline const std::string kNamespace = "default";

// One server's view of a store that others use too: it hears no changes, and dies before the n-th write of a firing.
class Server final : public ForwardingStore {
 public:
  explicit Server(std::shared_ptr<Store> store) : ForwardingStore(std::move(store)), rows_(*this) {}

  void die_before(int writes) { left_ = writes; }
  void on_write(std::function<void()> function) { on_write_ = std::move(function); }
  bool dead() const { return left_ < 0; }

  void watch(std::function<void()>) override {}
  std::vector<SubmitOutcome> submit(std::span<const Submission> submissions, WaitingClaims& waiters) override {
    write();
    return store_->submit(submissions, waiters);
  }
  ActivityRows& activities() override { return rows_; }

 private:
  class Rows final : public ActivityRows {
   public:
    explicit Rows(Server& server) : server_(server) {}
    std::optional<ActivityRow> find(const std::string& name_space, const std::string& id) override {
      return real().find(name_space, id);
    }
    std::vector<ActivityRow> list(const ActivityFilter& filter) override { return real().list(filter); }
    std::vector<bool> change(std::span<const ActivityChange> changes) override {
      server_.write();
      return real().change(changes);
    }
    DueActivities due(std::int32_t limit) override {
      if (server_.dead()) throw Failure(Failure::Code::unavailable, "dead");
      return real().due(limit);
    }
    std::vector<ActivityRun> record(std::span<const ActivityRun> runs) override {
      server_.write();
      return real().record(runs);
    }
    std::vector<ActivityRun> runs(const RunFilter& filter) override { return real().runs(filter); }
    std::int64_t purge_runs(Time before, std::int32_t limit) override { return real().purge_runs(before, limit); }

   private:
    ActivityRows& real() { return server_.store_->activities(); }
    Server& server_;
  };

  void write() {
    if (on_write_) on_write_();
    if (left_ == kForever) return;
    if (--left_ < 0) throw Failure(Failure::Code::unavailable, "dead");
  }

  static constexpr int kForever = 1'000'000;
  std::atomic<int> left_ = kForever;
  std::function<void()> on_write_;  // set before the server starts
  Rows rows_;
};

class ActivitiesTest : public ::testing::Test {
 protected:
  void start() { engine_ = start_engine(std::make_shared<Server>(store_), options_); }
  void stop() { engine_.reset(); }

  static ActivitySettings settings(const std::string& trigger,
                                   const std::string& start = R"("workflow":{"type":"report"})") {
    return ActivitySettings::parse(parse_json("{" + start + R"(,"trigger":)" + trigger + "}"));
  }
  static ActivitySettings cron(const std::string& expression, const std::string& more = "") {
    return settings(R"({"cron":{"expression":")" + expression + "\"" + (more.empty() ? "" : "," + more) + "}}");
  }

  Activities& activities() { return engine_->activities(); }
  ActivityView put(const ActivitySettings& activity) { return activities().put(kNamespace, "a", activity); }

  std::vector<ActivityRun> runs() {
    const auto page = activities().runs(kNamespace, "a", "", 1000);
    return page ? page->runs : std::vector<ActivityRun>();
  }
  std::vector<ActivityRun> runs_once_there(std::size_t count) {
    eventually([&] { return runs().size() >= count; });
    return runs();
  }
  std::vector<Execution> workflows() {
    ListFilter filter;
    filter.name_space = kNamespace;
    filter.kind = Kind::workflow;
    filter.limit = 1000;
    return store_->list(filter);
  }
  std::vector<std::string> workflow_ids() {
    std::vector<std::string> ids;
    for (const Execution& run : workflows()) ids.push_back(*run.idempotency_key);
    std::sort(ids.begin(), ids.end());
    return ids;
  }
  // Nothing of a firing is under way.
  void settled() {
    eventually([&] {
      const auto due = store_->activities().due(100);
      const auto row = store_->activities().find(kNamespace, "a");
      return due.rows.empty() && row && row->document.find(R"("pending":[])") != std::string::npos;
    });
  }

  static void eventually(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + kLong;
    while (!condition()) {
      ASSERT_LT(std::chrono::steady_clock::now(), end) << "it never came";
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }

  void complete_all_workflows() {
    ClaimRequest request;
    request.name_space = kNamespace;
    request.queues = {"default"};
    request.tasks = false;
    request.workflows = true;
    request.limit = 100;
    const auto claimed = store_->claim(std::span(&request, 1));
    for (const Execution& run : claimed.front().executions) {
      Turn turn;
      turn.token = {run.id, run.attempt, *run.lease_secret};
      turn.end = Turn::Completed{};
      ASSERT_TRUE(store_->commit_turns(std::span(&turn, 1)).front().accepted);
    }
  }

  std::vector<EventReceipt> deliver(const std::vector<std::string>& texts) {
    std::vector<CloudEvent> events;
    for (const std::string& text : texts) events.push_back(CloudEvent::parse(parse_json(text)));
    return await<std::vector<EventReceipt>>(
        [&](auto reply) { activities().deliver(kNamespace, std::move(events), std::move(reply)); });
  }
  static std::string event(const std::string& id, const std::string& data = "1") {
    const std::string id_member = id.empty() ? "" : R"("id":")" + id + "\",";
    return R"({"specversion":"1.0",)" + id_member + R"("source":"/shop","type":"paid","data":)" + data + "}";
  }
  std::optional<std::vector<ActivityRun>> backfill(Time from, Time to, bool force = false) {
    return await<std::optional<std::vector<ActivityRun>>>(
        [&](auto reply) { activities().backfill(kNamespace, "a", {from, to, force}, std::move(reply)); });
  }
  // A schedule of every minute, and servers that were away for three firings.
  void miss_three(const std::string& policy) {
    start();
    put(cron("* * * * *", R"("misfire_grace":"1s","misfire_policy":")" + policy + "\""));
    settled();
    stop();
    clock_.advance(std::chrono::seconds(210));
    start();
    runs_once_there(3);
    settled();
  }
  std::optional<Triggered> trigger(const std::string& id, const std::optional<std::string>& key) {
    return await<std::optional<Triggered>>(
        [&](auto reply) { activities().trigger(kNamespace, id, key, std::move(reply)); });
  }

  ManualClock clock_;
  std::shared_ptr<Store> store_ = open_memory_store(clock_);
  EngineOptions options_;
  std::unique_ptr<LocalEngine> engine_;
};

inline auto disposed(Disposition disposition) {
  return testing::Field("disposition", &ActivityRun::disposition, disposition);
}

}  // namespace hapax
