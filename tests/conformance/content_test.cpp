#include "conformance/store_test.h"
#include "support/filled.h"

namespace hapax {
namespace {

// Names and keys that have tripped others: quotes, wildcards, separators, other scripts, a NUL inside.
const std::vector<std::string> kOddTexts = {
    "it's",
    "\"quoted\"",
    "100%_sure",
    "a/b:c|d",
    "Grüße, 世界 🚀",
    "e\u0301 is not \u00e9",
    " blanks around ",
    "\\",
    "NULL",
    "0",
    "1e3",
    "-1",
    "x'41'",
    "; DROP TABLE executions; --",
    std::string("nul\0inside", 10),
};

class Content : public StoreTest {};
HAPAX_FOR_ALL_STORES(Content);

TEST_P(Content, OddKeysStayApartAndComeBackUnchanged) {
  for (const std::string& text : kOddTexts) {
    SCOPED_TRACE(text);
    const Execution task = submitted(Task().key(text));
    EXPECT_EQ(find(task.id)->idempotency_key, text);
    EXPECT_EQ(submit(Task().key(text)).execution.id, task.id);
    EXPECT_THAT(ids_of(store().list({.name_space = "default", .idempotency_key = text})),
                testing::ElementsAre(task.id));
  }
}

// Of every field that is fixed when an execution is created. A store that forgets one cannot give it back.
TEST_P(Content, EveryFactOfASubmissionComesBack) {
  Submission submission = Task("t").key("k");
  Execution& e = submission.execution;
  const Identity identity = *e.identity;
  const ExecutionId id = e.id;
  ruling_fields(Fill{}, e);
  telling_fields(Fill{}, e);
  rare_fields(Fill{}, e);
  e.id = id;
  e.identity->hash = identity.hash;
  e.parent.reset();  // there is no such run
  e.step = 0;
  e.parent_workflow_id.clear();
  e.superseded.reset();
  e.input = R"({"n":1})";
  e.input_hash = hash_input(e.input);
  e.attempt_limit = e.max_attempts;
  const Execution created = submit(submission).execution;
  Execution wanted = e;
  wanted.created_at = created.created_at;
  wanted.run_at = created.run_at;
  EXPECT_EQ(created, wanted);
  EXPECT_EQ(find(id), wanted);
  EXPECT_EQ(claim_one().priority, wanted.priority);
}

TEST_P(Content, OddNamesOfQueuesNamespacesTypesAndWorkersComeBackUnchanged) {
  for (const std::string& text : kOddTexts) {
    SCOPED_TRACE(text);
    const Execution task = submitted(Task(text).name_space(text).queue(text).concurrency_key(text));
    ClaimRequest request = claim_request({text}, 10);
    request.name_space = request.worker = text;
    const ClaimOutcome outcome = store().claim({&request, 1}).at(0);
    ASSERT_THAT(ids_of(outcome.executions), testing::ElementsAre(task.id));
    const Execution stored = find(task.id, text).value();
    EXPECT_EQ(stored, outcome.executions[0]);
    EXPECT_EQ(stored.type, text);
    EXPECT_EQ(stored.worker, text);
    EXPECT_EQ(stored.concurrency_key, text);
  }
}

TEST_P(Content, OddInputsResultsAndErrorsComeBackUnchanged) {
  for (const std::string& text : kOddTexts) {
    SCOPED_TRACE(text);
    const Execution task = submitted(Task().input(text).max_attempts(2).retry({0ms, 1, 0ms}));
    const Report failed{token_of(claim_one()), Report::Failed{{text, text}, true}};
    store().finish({&failed, 1});
    complete(token_of(claim_one()), text);
    const Execution stored = find(task.id).value();
    EXPECT_EQ(stored.input, text);
    EXPECT_EQ(stored.result, text);
    EXPECT_EQ(stored.failed_attempts.at(0).error, (AttemptError{text, text}));
  }
}

TEST_P(Content, OddRequestKeysAreReplayed) {
  for (const std::string& text : kOddTexts) {
    SCOPED_TRACE(text);
    const auto id = submitted(Task()).id;
    EXPECT_FALSE(control(ControlRequest::Action::cancel, id, text).replayed);
    EXPECT_TRUE(control(ControlRequest::Action::cancel, id, text).replayed);
  }
}

TEST_P(Content, OddSettingsComeBackUnchanged) {
  for (const std::string& text : kOddTexts) {
    store().put_setting({text, SettingDocument::Kind::type, text, text});
  }
  const auto settings = store().settings();
  EXPECT_EQ(settings.size(), kOddTexts.size());
  for (const std::string& text : kOddTexts) {
    EXPECT_THAT(settings, testing::Contains(SettingDocument{text, SettingDocument::Kind::type, text, text}));
  }
}

TEST_P(Content, EmptyResultTextIsNotAbsent) {
  const auto id = submitted(Task()).id;
  complete(token_of(claim_one()), "");
  EXPECT_EQ(find(id)->result, "");
}

TEST_P(Content, MegabyteInputsAndResultsComeBackWhole) {
  const std::string large = "\"" + std::string(1 << 20, 'x') + "\"";
  const auto id = submitted(Task().key("k").input(large)).id;
  const Execution claimed = claim_one();
  EXPECT_EQ(claimed.input, large);
  complete(token_of(claimed), large);
  EXPECT_EQ(find(id)->result, large);
  EXPECT_EQ(submit(Task().key("k").input(large)).kind, SubmitOutcome::Kind::duplicate);
}

TEST_P(Content, ScopesAndStrategiesComeBackUnchanged) {
  for (const Strategy strategy : {Strategy::caller_provided, Strategy::strict, Strategy::contextual}) {
    for (const char* scope : {"type", "queue", "global", "tenant 7"}) {
      Submission submission = Task().key(std::string(to_string(strategy)) + scope);
      submission.execution.identity->strategy = strategy;
      submission.execution.identity->scope = Scope::parse(scope);
      submitted(submission);
      EXPECT_EQ(find(submission.execution.id)->identity, submission.execution.identity);
      EXPECT_EQ(store().find_identity(submission.execution.identity->hash)->entry.identity,
                submission.execution.identity);
    }
  }
}

TEST_P(Content, ExtremeNumbersComeBackUnchanged) {
  const Time far = from_ms(253'402'300'799'999);
  const RetryPolicy retry{std::chrono::hours(24 * 365), 1.000000001, std::chrono::hours(24 * 36500)};
  const Execution task = submitted(
      Task().priority(-1000).max_attempts(1000).retry(retry).run_at(far).deadline_at(far).timeout(24h * 36500));
  const Execution stored = find(task.id).value();
  EXPECT_EQ(stored, task);
  EXPECT_EQ(stored.run_at, far);
  EXPECT_EQ(stored.retry, retry);
}

}  // namespace
}  // namespace hapax
