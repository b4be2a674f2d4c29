// What a program's code declares of its types and queues, embedded and on a server alike.
#include <gmock/gmock.h>

#include <thread>

#include "doors/doors.h"
#include "open/open_engine.h"
#include "support/temp_dir.h"

namespace hapax::doors {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

// Over a store that the test can look into, or a server over one.
class DeclaredTypes : public testing::TestWithParam<std::string> {
 protected:
  TempDir dir_;
  const std::string store_ = "sqlite:" + (dir_.path() / "app.db").string();
  EngineOptions options() const {
    EngineOptions options;
    options.types["from_file"].max_attempts = 9;
    options.types["from_file"].identity = Strategy::always_unique;
    return options;
  }
  const std::shared_ptr<Engine> engine_ = open_engine(store_, {.engine = options()}).engine;
  const std::unique_ptr<Server> server_ = start_server(*engine_, any_port());
  const std::string url_ = GetParam() == "embedded" ? store_ : "http://127.0.0.1:" + std::to_string(server_->port());
  App app_ = open(url_);

  static ServerOptions any_port() {
    ServerOptions options;
    options.port = 0;
    return options;
  }

  // As the engine that the app did not use sees it, once it has heard of it.
  TypeView type_with(const std::string& name, std::int32_t max_attempts) {
    TypeView view = engine_->type("default", name);
    for (int tries = 0; tries < 1000 && view.settings.max_attempts != max_attempts; ++tries) {
      std::this_thread::sleep_for(10ms);
      view = engine_->type("default", name);
    }
    return view;
  }
};

int add(int number) { return number + 1; }

TEST_P(DeclaredTypes, OptionsAreKeptWithTheType) {
  app_.task("t", add,
            {.queue = "payments",
             .max_attempts = 5,
             .retry = {.initial = 100ms, .max = 2s},
             .timeout = 30s,
             .identity = contextual("/id"),
             .reuse = "reject"});
  app_.submit_json("t", R"({"id":1})");
  const TypeView view = type_with("t", 5);
  EXPECT_EQ(view.settings.queue, "payments");
  EXPECT_EQ(view.settings.max_attempts, 5);
  EXPECT_EQ(view.settings.retry.initial, Duration(100));
  EXPECT_EQ(view.settings.retry.max, Duration(2000));
  EXPECT_EQ(view.settings.timeout, Duration(30'000));
  EXPECT_EQ(view.settings.identity, Strategy::contextual);
  EXPECT_EQ(view.settings.reuse, Reuse::reject);
  EXPECT_EQ(view.identity, (TypeIdentity{Strategy::contextual, TypeIdentity::Source::code}));
  EXPECT_EQ(view.identity.of_steps(), Strategy::contextual);
  EXPECT_FALSE(view.declared);
  EXPECT_THAT(view.from_file, IsEmpty());
  EXPECT_THAT(view.from_code,
              ElementsAre("queue", "identity", "identity_fields", "reuse", "max_attempts", "retry", "timeout"));
}

TEST_P(DeclaredTypes, TheDeclaredIdentityMergesWhatIsTheSame) {
  app_.task("t", [](const std::string&) {}, {.identity = strict()});
  const AnyHandle first = app_.submit("t", std::string("a"));
  EXPECT_EQ(app_.submit("t", std::string("a")).id(), first.id());
  EXPECT_TRUE(app_.submit("t", std::string("b")).created());
}

TEST_P(DeclaredTypes, TuningNeverChangesWhatIsTheSame) {
  app_.task("t", add, {.max_attempts = 5});
  EXPECT_TRUE(app_.submit("t", 1).created());
  EXPECT_TRUE(app_.submit("t", 1).created());
  EXPECT_EQ(type_with("t", 5).identity, (TypeIdentity{Strategy::always_unique, TypeIdentity::Source::undeclared}));
}

TEST_P(DeclaredTypes, TheFileAndTheApiWin) {
  engine_->patch_type("default", "from_api", parse_json(R"({"max_attempts":8})"));
  app_.task("from_file", add, {.max_attempts = 5, .timeout = 5s, .identity = strict()});
  app_.task("from_api", [](int) {}, {.max_attempts = 5, .timeout = 5s, .identity = strict()});
  app_.submit("from_api", 1);
  const TypeView file = type_with("from_file", 9), api = type_with("from_api", 8);
  for (int tries = 0; tries < 1000 && engine_->type("default", "from_api").from_code.empty(); ++tries) {
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_EQ(file.identity, (TypeIdentity{Strategy::always_unique, TypeIdentity::Source::file}));
  EXPECT_EQ(engine_->type("default", "from_file").settings.max_attempts, 9);
  EXPECT_THAT(engine_->type("default", "from_file").from_code, ElementsAre("timeout"));
  EXPECT_EQ(engine_->type("default", "from_api").settings.max_attempts, 8);
  EXPECT_EQ(engine_->type("default", "from_api").settings.timeout, Duration(5000));
  EXPECT_THAT(engine_->type("default", "from_api").from_code, ElementsAre("identity", "timeout"));
}

TEST_P(DeclaredTypes, ATaskWithoutOptionsLeavesTheTypeAsItIs) {
  app_.task("t", add, {.max_attempts = 5});
  app_.submit("t", 1);
  App another = open(url_);
  another.task("t", add);
  another.submit("t", 1);
  EXPECT_EQ(type_with("t", 5).settings.max_attempts, 5);
}

TEST_P(DeclaredTypes, AnotherDeclarationTakesThePlaceOfTheOneBefore) {
  app_.task("t", add, {.max_attempts = 5, .timeout = 5s});
  app_.submit("t", 1);
  App another = open(url_);
  another.task("t", add, {.max_attempts = 6});
  another.submit("t", 1);
  const TypeView view = type_with("t", 6);
  EXPECT_EQ(view.settings.timeout, std::nullopt);
  EXPECT_THAT(view.from_code, ElementsAre("max_attempts"));
}

TEST_P(DeclaredTypes, AWorkerTellsThemToo) {
  app_.task("t", add, {.max_attempts = 5});
  app_.work({.handle_signals = false, .until_idle_for = 10ms});
  EXPECT_EQ(type_with("t", 5).settings.max_attempts, 5);
}

TEST_P(DeclaredTypes, AQueueIsConfigured) {
  app_.configure_queue("payments", {.retention = 30d, .rate_limit = "100/sec", .burst = 5, .max_running = 7});
  app_.configure_queue("mails", {.retention = 12h});
  QueueSettings settings;
  for (int tries = 0; tries < 1000 && !engine_->queue("default", "mails").settings.retention; ++tries) {
    std::this_thread::sleep_for(10ms);
  }
  settings = engine_->queue("default", "payments").settings;
  EXPECT_EQ(settings.retention, Duration(std::chrono::days(30)));
  EXPECT_EQ(format_rate(settings.rate_limit.value()), "100/sec");
  EXPECT_EQ(settings.burst, 5);
  EXPECT_EQ(settings.max_running, 7);
  EXPECT_EQ(engine_->queue("default", "mails").settings.retention, Duration(12h));
}

INSTANTIATE_TEST_SUITE_P(Ways, DeclaredTypes, testing::Values("embedded", "remote"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace hapax::doors
