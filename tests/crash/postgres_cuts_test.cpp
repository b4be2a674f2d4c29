// Cuts the connection to PostgreSQL in the middle of an exchange, in either direction, at every few bytes from the
// first to the last: enumerated, not sampled. Sending the same batch again then gives exactly one execution and the
// answer of the first try. HAPAX_CUT_STEP=1 cuts after every byte.

#include <gmock/gmock.h>

#include <cstdlib>
#include <functional>

#include "store/postgres/postgres_store.h"
#include "support/cutting_proxy.h"
#include "support/describe.h"
#include "support/manual_clock.h"
#include "support/postgres_server.h"
#include "support/task.h"

namespace hapax {
namespace {

using Direction = CuttingProxy::Direction;

std::string through(const CuttingProxy& proxy, const std::string& url) {
  const std::size_t colon = url.rfind(':'), slash = url.rfind('/');
  return url.substr(0, colon + 1) + std::to_string(proxy.port()) + url.substr(slash);
}

class Cuts : public testing::Test {
 protected:
  // Sends until the outcome is known, as the engine does. Counts the failures.
  template <class Verb>
  auto until_known(Verb verb) {
    for (;;) {
      try {
        return verb();
      } catch (const Failure& failure) {
        EXPECT_TRUE(failure.safe_to_retry()) << failure.what();
        EXPECT_LT(++failures_, 1000) << failure.what();
      }
    }
  }

  static std::int64_t step_or(std::int64_t otherwise) {
    const char* text = std::getenv("HAPAX_CUT_STEP");
    return text ? std::stoll(text) : otherwise;
  }

  // Each round cuts the verb a little later, until the cut comes after its end.
  void cut_everywhere(std::int64_t usual_step, const std::function<void()>& prepare, const std::function<void()>& verb,
                      const std::function<void()>& verify) {
    for (const Direction direction : {Direction::to_server, Direction::to_client}) {
      const std::int64_t step = step_or(usual_step);
      std::int64_t longest = 0;
      for (std::int64_t bytes = 0;; bytes += step) {
        prepare();
        proxy_.cut_after(direction, bytes);
        verb();
        const bool was_cut = proxy_.has_cut();
        proxy_.never_cut();
        verify();
        if (HasFailure())
          FAIL() << "cut after " << bytes << " bytes "
                 << (direction == Direction::to_client ? "to the client" : "to the server");
        if (!was_cut) break;
        longest = bytes;
      }
      EXPECT_GT(longest, 50) << "the exchange was never cut in the middle";
    }
    EXPECT_GT(failures_, 0);
  }

  Submission keyed() {
    const std::uint64_t n = ++number_;
    return Task().key("key-" + std::to_string(n)).id(test_id(n)).retry({Duration(0), 1, Duration(0)});
  }

  std::vector<Execution> all_of(const Submission& submission) {
    ListFilter filter;
    filter.name_space = "default";
    filter.idempotency_key = submission.execution.idempotency_key;
    return store_->list(filter);
  }

  Execution running() {
    Submission submission = keyed();
    submission.execution.queue = "queue-" + std::to_string(number_);
    store_->submit({&submission, 1});
    ClaimRequest request;
    request.name_space = "default";
    request.queues = {submission.execution.queue};
    request.secret = test_secret(++number_);
    return store_->claim({&request, 1}).at(0).executions.at(0);
  }

  ManualClock clock_;
  PostgresServer& server_ = PostgresServer::shared();
  const std::string url_ = server_.create_database();
  CuttingProxy proxy_{server_.port()};
  // One connection, so that the counted bytes are its own.
  const std::unique_ptr<Store> store_ = open_postgres_store(
      {.url = through(proxy_, url_), .connections = 1, .create = true, .migrate = false, .notify = false}, &clock_);
  int failures_ = 0;
  std::uint64_t number_ = 0;
};

TEST_F(Cuts, SubmissionSentAgainIsOneExecutionAndTheSameAnswer) {
  std::vector<Submission> batch;
  std::vector<SubmitOutcome> outcomes;
  cut_everywhere(
      11, [&] { batch = {keyed(), keyed()}; }, [&] { outcomes = until_known([&] { return store_->submit(batch); }); },
      [&] {
        for (std::size_t i = 0; i < batch.size(); ++i) {
          EXPECT_EQ(outcomes.at(i).kind, SubmitOutcome::Kind::created);
          EXPECT_THAT(all_of(batch[i]), testing::ElementsAre(outcomes[i].execution));
          EXPECT_EQ(outcomes[i].execution.id, batch[i].execution.id);
        }
      });
}

// The second of them takes over the identity of a failed one: the path with several round trips.
TEST_F(Cuts, TakeoverSentAgainIsOneExecutionAndTheSameAnswer) {
  std::vector<Submission> batch;
  std::vector<SubmitOutcome> outcomes;
  cut_everywhere(
      101,
      [&] {
        const Execution failing = running();
        const std::vector<Report> reports{{token_of(failing), Report::Failed{{"E", "m"}, false}}};
        store_->finish(reports);
        batch = {keyed(), Task().key(*failing.idempotency_key).id(test_id(++number_))};
      },
      [&] { outcomes = until_known([&] { return store_->submit(batch); }); },
      [&] {
        EXPECT_THAT(all_of(batch[0]), testing::SizeIs(1));
        EXPECT_THAT(all_of(batch[1]), testing::SizeIs(2));
        for (std::size_t i = 0; i < batch.size(); ++i) {
          EXPECT_EQ(outcomes.at(i).kind, SubmitOutcome::Kind::created);
          EXPECT_EQ(outcomes[i].execution.id, batch[i].execution.id);
        }
      });
}

TEST_F(Cuts, ReportOfSuccessSentAgainIsAcceptedOnce) {
  Execution task;
  std::vector<FinishOutcome> outcomes;
  cut_everywhere(
      11, [&] { task = running(); },
      [&] {
        const std::vector<Report> reports{{token_of(task), Report::Completed{"1"}}};
        outcomes = until_known([&] { return store_->finish(reports); });
      },
      [&] {
        EXPECT_TRUE(outcomes.at(0).accepted);
        EXPECT_EQ(outcomes.at(0).status, Status::completed);
        EXPECT_EQ(store_->find("default", task.id)->result, "1");
      });
}

TEST_F(Cuts, ReportOfFailureSentAgainIsCountedOnce) {
  Execution task;
  std::vector<FinishOutcome> outcomes;
  cut_everywhere(
      101, [&] { task = running(); },
      [&] {
        const std::vector<Report> reports{{token_of(task), Report::Failed{{"E", "m"}, true}}};
        outcomes = until_known([&] { return store_->finish(reports); });
      },
      [&] {
        EXPECT_TRUE(outcomes.at(0).accepted);
        EXPECT_EQ(outcomes.at(0).status, Status::pending);
        EXPECT_EQ(store_->find("default", task.id)->failed_attempts.size(), 1u);
      });
}

TEST_F(Cuts, CancelSentAgainUnderItsKeyRunsOnce) {
  Submission submission;
  std::vector<ControlOutcome> outcomes;
  cut_everywhere(
      101,
      [&] {
        submission = keyed();
        store_->submit({&submission, 1});
      },
      [&] {
        const std::vector<ControlRequest> cancel{{"default", *submission.execution.idempotency_key,
                                                  ControlRequest::Action::cancel, submission.execution.id}};
        outcomes = until_known([&] { return store_->control(cancel); });
      },
      [&] {
        EXPECT_EQ(outcomes.at(0).kind, ControlOutcome::Kind::done);
        EXPECT_TRUE(outcomes.at(0).changed);
        EXPECT_EQ(outcomes.at(0).status, Status::cancelled);
        EXPECT_THAT(all_of(submission), testing::SizeIs(1));
      });
}

TEST_F(Cuts, ChangeOfAnActivitySentAgainIsMadeOnceAndRecognised) {
  const auto row = [&](std::uint64_t n, std::int64_t revision, const char* document) {
    return ActivityRow{.name_space = "default",
                       .id = "activity-" + std::to_string(n),
                       .document = document,
                       .by_event = false,
                       .next_due = clock_.now(),
                       .revision = revision};
  };
  std::vector<bool> did;
  cut_everywhere(
      11,
      [&] {
        number_ += 2;
        const std::vector<ActivityChange> before{{row(number_ - 1, 0, "1"), false}, {row(number_, 0, "1"), false}};
        store_->activities().change(before);
      },
      [&] {
        const std::vector<ActivityChange> changes{{row(number_ - 1, 1, "2"), false},
                                                  {row(number_, 1, "2"), true},
                                                  {row(number_ + 1'000'000, 0, "2"), false},
                                                  {row(number_ - 1, 7, "3"), false}};
        did = until_known([&] { return store_->activities().change(changes); });
      },
      [&] {
        EXPECT_THAT(did, testing::ElementsAre(true, true, true, false));
        const auto find = [&](std::uint64_t n) {
          return store_->activities().find("default", "activity-" + std::to_string(n));
        };
        EXPECT_EQ(find(number_ - 1), row(number_ - 1, 2, "2"));
        EXPECT_EQ(find(number_), std::nullopt);
        EXPECT_EQ(find(number_ + 1'000'000), row(number_ + 1'000'000, 1, "2"));
      });
}

TEST_F(Cuts, RunOfAnActivityRecordedAgainIsRecordedOnce) {
  const auto run = [&](const char* occurrence, Disposition disposition) {
    return ActivityRun{.name_space = "default",
                       .activity = "activity-" + std::to_string(number_),
                       .occurrence = occurrence,
                       .at = clock_.now(),
                       .disposition = disposition,
                       .workflow_id = "w",
                       .why = "because",
                       .recorded_at = clock_.now()};
  };
  std::vector<ActivityRun> recorded;
  const auto expected = [&] {
    return std::vector<ActivityRun>{run("o2", Disposition::ran), run("o1", Disposition::caught_up)};
  };
  cut_everywhere(
      11,
      [&] {
        ++number_;
        const std::vector<ActivityRun> before{run("o1", Disposition::skipped)};
        store_->activities().record(before);
      },
      [&] {
        const std::vector<ActivityRun> runs = expected();
        recorded = until_known([&] { return store_->activities().record(runs); });
      },
      [&] {
        EXPECT_EQ(recorded, expected());
        RunFilter all;
        all.name_space = "default";
        all.activity = "activity-" + std::to_string(number_);
        EXPECT_EQ(store_->activities().runs(all), expected());
      });
}

// A store that answered a lost commit with "nothing happened" would be caught: this one sends under another id.
TEST_F(Cuts, PlantedBugIsFound) {
  Submission submission;
  bool found = false;
  for (std::int64_t bytes = 0; !found; ++bytes) {
    submission = Task().id(test_id(++number_)).input(std::to_string(bytes));
    proxy_.cut_after(Direction::to_client, bytes);
    try {
      store_->submit({&submission, 1});
      ASSERT_TRUE(proxy_.has_cut()) << "no cut made it look as if nothing had happened";
    } catch (const Failure&) {
      submission.execution.id = test_id(++number_);
      store_->submit({&submission, 1});
    }
    proxy_.never_cut();
    ListFilter filter;
    filter.name_space = "default";
    std::int64_t same = 0;
    for (const Execution& execution : store_->list(filter))
      same += execution.input == submission.execution.input ? 1 : 0;
    found = same > 1;
  }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace hapax
