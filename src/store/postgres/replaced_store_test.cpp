// The data under an open store becomes another's: the schema is created anew, a dump is restored, the tables are
// emptied. Nothing that the store remembered may reach what is there then.
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>
#include <utility>

#include "store/postgres/postgres_store.h"
#include "support/postgres_server.h"
#include "support/task.h"
#include "support/temp_dir.h"

namespace hapax {
namespace {

using testing::HasSubstr;

struct Place {
  const char *name_space, *queue;
};
constexpr Place kPlaces[] = {{"shop", "alpha"}, {"shop", "beta"}, {"other", "alpha"}, {"other", "gamma"}};

Submission task_in(const Place& place) {
  return Task()
      .name_space(place.name_space)
      .queue(place.queue)
      .input(std::string("\"") + place.name_space + "/" + place.queue + "\"");
}

ListFilter all_in(std::string name_space) {
  ListFilter filter;
  filter.name_space = std::move(name_space);
  return filter;
}

std::vector<Execution> claim_in(Store& store, const Place& place, std::int32_t limit = 10) {
  ClaimRequest request;
  request.name_space = place.name_space;
  request.queues = {place.queue};
  request.limit = limit;
  request.secret = LeaseSecret::generate();
  return store.claim({&request, 1}).at(0).executions;
}

// What its submitter wrote into it.
bool is_at_home(const Execution& task) { return task.input == "\"" + task.name_space + "/" + task.queue + "\""; }

// Waits for calls of watch().
class Calls {
 public:
  void count() {
    {
      const std::lock_guard lock(mutex_);
      ++count_;
    }
    counted_.notify_all();
  }
  bool wait_for_more() {
    std::unique_lock lock(mutex_);
    const int before = count_;
    return counted_.wait_for(lock, std::chrono::seconds(20), [&] { return count_ > before; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable counted_;
  int count_ = 0;
};

class ReplacedStore : public testing::TestWithParam<bool> {
 protected:
  ~ReplacedStore() override {
    store_.reset();
    server_.drop_database(url_);
  }

  std::unique_ptr<Store> open() {
    PostgresOptions options;
    options.url = GetParam() ? server_.pooled(url_) : url_;
    return open_postgres_store(options);
  }

  void submit_everywhere(Store& store, bool backwards = false) {
    std::vector<Submission> submissions;
    for (const Place& place : kPlaces) submissions.push_back(task_in(place));
    if (backwards) std::reverse(submissions.begin(), submissions.end());
    for (const Submission& submission : submissions) store.submit({&submission, 1});
  }

  // Every transaction has the identity locked before anything else: who takes that first is in nobody's way.
  void drop() {
    server_.run(url_,
                "SET client_min_messages TO warning; BEGIN; REFRESH MATERIALIZED VIEW hapax.store_identity;"
                " DROP SCHEMA hapax CASCADE; COMMIT");
  }

  // Others may be at work, and keep it waiting.
  void recreate(bool backwards) {
    for (bool dropped = false;;) {
      try {
        if (!std::exchange(dropped, true)) drop();
        return submit_everywhere(*open(), backwards);
      } catch (const Failure& failure) {
        EXPECT_TRUE(failure.safe_to_retry()) << failure.what();
      }
    }
  }

  // Every verb that the engine calls.
  void expect_refused(const std::function<void(Store&)>& verb, const char* name) {
    try {
      verb(*store_);
      ADD_FAILURE() << name << " was answered by a store that is another by now";
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.code(), Failure::Code::unavailable) << name << ": " << failure.what();
    }
    EXPECT_TRUE(store_->is_replaced());
  }

  void expect_all_refused() {
    const Submission submission = task_in(kPlaces[0]);
    expect_refused([&](Store& store) { store.submit({&submission, 1}); }, "submit");
    expect_refused([&](Store& store) { claim_in(store, kPlaces[0]); }, "claim");
    expect_refused([&](Store& store) { store.find("shop", submission.execution.id); }, "find");
    expect_refused([&](Store& store) { store.list(all_in("shop")); }, "list");
    expect_refused([&](Store& store) { store.count(std::nullopt); }, "count");
    expect_refused([&](Store& store) { store.sweep(10); }, "sweep");
    expect_refused([&](Store& store) { store.purge(10); }, "purge");
    expect_refused([&](Store& store) { store.settings(); }, "settings");
    expect_refused([&](Store& store) { store.activities().due(1); }, "activities");
    expect_refused([&](Store& store) { store.check(); }, "check");
  }

  void expect_everything_at_home(Store& store) {
    for (const Place& place : kPlaces) {
      for (const Execution& task : claim_in(store, place)) {
        EXPECT_TRUE(is_at_home(task)) << task.input << " in " << task.name_space << "/" << task.queue;
        EXPECT_EQ(task.name_space, place.name_space);
        EXPECT_EQ(task.queue, place.queue);
      }
    }
  }

  PostgresServer& server_ = PostgresServer::shared();
  const std::string url_ = server_.create_database();
  std::unique_ptr<Store> store_ = open();
};

INSTANTIATE_TEST_SUITE_P(, ReplacedStore, testing::Values(false, true),
                         [](const auto& info) { return info.param ? "Pooled" : "Direct"; });

TEST_P(ReplacedStore, SchemaCreatedAnewIsNotTakenForTheOneBefore) {
  submit_everywhere(*store_);
  Calls calls;
  store_->watch([&] { calls.count(); });
  const std::string before = store_->identity();
  drop();
  submit_everywhere(*open(), true);  // so that the numbers of the queues are others'

  const Submission alpha = task_in(kPlaces[0]);
  EXPECT_THROW(store_->submit({&alpha, 1}), Failure);
  EXPECT_TRUE(calls.wait_for_more());
  expect_all_refused();
  store_->reopen();
  EXPECT_FALSE(store_->is_replaced());
  EXPECT_NE(store_->identity(), before);
  EXPECT_EQ(store_->submit({&alpha, 1}).at(0).kind, SubmitOutcome::Kind::created);
  expect_everything_at_home(*store_);
  store_->watch({});
}

TEST_P(ReplacedStore, ClaimsAndReadsNoticeItThemselves) {
  submit_everywhere(*store_);
  const Execution running = claim_in(*store_, kPlaces[0]).at(0);
  const auto replace = [&] {
    drop();
    submit_everywhere(*open(), true);
    store_->is_replaced() ? store_->reopen() : void();
  };
  const Report report{token_of(running), Report::Completed{"1"}, ""};
  const std::vector<std::pair<const char*, std::function<void(Store&)>>> verbs{
      {"claim", [&](Store& store) { claim_in(store, kPlaces[0]); }},
      {"list", [&](Store& store) { store.list(all_in("shop")); }},
      {"finish", [&](Store& store) { store.finish({&report, 1}); }},
      {"count", [&](Store& store) { store.count(std::nullopt); }},
  };
  for (const auto& [name, verb] : verbs) {
    replace();
    expect_refused(verb, name);
    store_->reopen();
  }
}

TEST_P(ReplacedStore, MissingSchemaIsRefusedUntilThereIsOne) {
  submit_everywhere(*store_);
  drop();
  expect_all_refused();
  try {
    store_->reopen();
    FAIL() << "there is no store";
  } catch (const Failure& failure) {
    EXPECT_THAT(failure.what(), HasSubstr("hapax migrate"));
  }
  expect_all_refused();
  open();
  store_->reopen();
  submit_everywhere(*store_);
  expect_everything_at_home(*store_);
}

TEST_P(ReplacedStore, RestoredDumpIsNotTakenForWhatItWasMadeOf) {
  const TempDir dir;
  const std::string file = dir.file("dump");
  std::ofstream(file).close();
  std::filesystem::permissions(dir.path(), std::filesystem::perms::all);
  std::filesystem::permissions(file, std::filesystem::perms::all);
  const Submission kept = task_in(kPlaces[0]);
  store_->submit({&kept, 1});
  server_.dump(url_, file);
  const std::string before = store_->identity();
  submit_everywhere(*store_);  // queues that the dump does not have

  server_.restore(url_, file);
  submit_everywhere(*open(), true);  // their numbers are others' there
  expect_all_refused();
  store_->reopen();
  EXPECT_NE(store_->identity(), before);
  EXPECT_TRUE(store_->find("shop", kept.execution.id));
  expect_everything_at_home(*store_);
}

// The state in which a dump is while it is being restored: everything is there but the last step.
TEST_P(ReplacedStore, StoreThatIsStillBeingRestoredIsNotUsed) {
  server_.run(url_, "REFRESH MATERIALIZED VIEW hapax.store_identity WITH NO DATA");
  expect_all_refused();
  EXPECT_THROW(store_->reopen(), Failure);
  server_.run(url_, "REFRESH MATERIALIZED VIEW hapax.store_identity");
  store_->reopen();
  submit_everywhere(*store_);
}

TEST_P(ReplacedStore, EmptiedTablesAreNoticed) {
  submit_everywhere(*store_);
  server_.run(url_, "TRUNCATE hapax.queues, hapax.executions, hapax.open, hapax.closed RESTART IDENTITY");
  expect_all_refused();
  store_->reopen();
  submit_everywhere(*store_, true);
  expect_everything_at_home(*store_);
}

// Several threads submit and claim while the schema is dropped and created anew again and again.
TEST_P(ReplacedStore, NothingCrossesUnderLoad) {
  std::atomic<bool> stopping = false;
  std::atomic<int> strays = 0, submitted = 0, claimed = 0, wrong = 0;
  const auto loop = [&](const std::function<void()>& work) {
    while (!stopping) {
      try {
        work();
      } catch (const Failure& failure) {
        // Between the drop and the migration the store is of no use at all.
        if (!failure.safe_to_retry() && failure.code() != Failure::Code::misuse) ++wrong;
        std::this_thread::yield();
      }
    }
  };
  std::vector<std::thread> threads;
  for (const Place& place : kPlaces) {
    threads.emplace_back([&] {
      loop([&] {
        const Submission submission = task_in(place);
        store_->submit({&submission, 1});
        ++submitted;
      });
    });
    threads.emplace_back([&] {
      loop([&] {
        for (const Execution& task : claim_in(*store_, place)) {
          ++claimed;
          if (!is_at_home(task) || task.name_space != place.name_space || task.queue != place.queue) ++strays;
        }
      });
    });
  }
  threads.emplace_back([&] {
    loop([&] {
      if (store_->is_replaced()) store_->reopen();
      std::this_thread::yield();
    });
  });
  for (int round = 0; round < 8; ++round) {
    const int submitted_before = submitted, claimed_before = claimed;
    while (submitted < submitted_before + 50 || claimed < claimed_before + 20) std::this_thread::yield();
    recreate(round % 2 == 0);
  }
  stopping = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(strays, 0);
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace hapax
