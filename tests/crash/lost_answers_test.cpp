// A submission that is sent again after a lost answer makes one task, with the same receipt as an undisturbed one.
// Tested for every strategy, reuse policy and on_duplicate, for every owner it may meet, with the answer lost before or
// after the work was done; over HTTP, and embedded on PostgreSQL.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <map>
#include <thread>

#include "client/remote_engine.h"
#include "engine/local_engine.h"
#include "http/server.h"
#include "store/memory/memory_store.h"
#include "store/postgres/postgres_store.h"
#include "support/cutting_proxy.h"
#include "support/fault_proxy.h"
#include "support/postgres_server.h"
#include "wire/error_code.h"

namespace hapax {
namespace {

using namespace std::chrono_literals;

// What holds the identity when the submission arrives.
enum class Owner : std::uint8_t { none, pending, running, completed, failed };
enum class Form : std::uint8_t { single, batch, workflow };

struct Case {
  Strategy strategy = Strategy::always_unique;
  std::optional<Reuse> reuse;
  std::optional<OnDuplicate> on_duplicate;
  Owner owner = Owner::none;
  Form form = Form::single;

  std::string describe() const {
    constexpr const char* kOwners[] = {"none", "pending", "running", "completed", "failed"};
    constexpr const char* kForms[] = {"single", "batch", "workflow"};
    return fmt::format("{}, reuse {}, on_duplicate {}, owner {}, {}", to_string(strategy),
                       reuse ? to_string(*reuse) : "default", on_duplicate ? to_string(*on_duplicate) : "default",
                       kOwners[static_cast<int>(owner)], kForms[static_cast<int>(form)]);
  }
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const Form form : {Form::single, Form::batch, Form::workflow}) {
    for (const Strategy strategy :
         {Strategy::caller_provided, Strategy::strict, Strategy::contextual, Strategy::always_unique}) {
      if (form == Form::workflow && strategy != Strategy::caller_provided) continue;
      for (const Owner owner : {Owner::none, Owner::pending, Owner::running, Owner::completed, Owner::failed}) {
        if (strategy == Strategy::always_unique && owner != Owner::none) continue;
        for (const Reuse reuse : {Reuse::allow_failed, Reuse::reject, Reuse::allow_closed, Reuse::replace}) {
          for (const OnDuplicate on_duplicate : {OnDuplicate::give_back, OnDuplicate::error}) {
            cases.push_back({strategy, reuse, on_duplicate, owner, form});
          }
        }
      }
    }
  }
  return cases;
}

// Each case has its own type, queue and key.
class Scene {
 public:
  Scene(Engine& engine, const Case& of, int number) : engine_(engine), case_(of), name_(fmt::format("n{}", number)) {}

  // Over an undisturbed connection.
  void prepare() {
    if (case_.owner == Owner::none) return;
    owner_ = std::get<Receipt>(submit(engine_, {request()}).at(0)).execution.id;
    if (case_.owner == Owner::pending) return;
    ClaimCall call;
    call.name_space = "default";
    call.queues = {name_};
    call.workflows = case_.form == Form::workflow;
    call.worker = "w";
    const auto claimed =
        await<std::vector<Claimed>>([&](auto reply) { engine_.claim(std::move(call), std::move(reply)); });
    ASSERT_EQ(claimed.size(), 1U);
    if (case_.owner != Owner::running) close(claimed[0].execution);
  }

  std::vector<SubmitRequest> requests() const {
    std::vector<SubmitRequest> requests{request()};
    if (case_.form == Form::batch) requests.push_back(request());  // finds the first of them, or is another
    return requests;
  }

  static std::vector<SubmitResult> submit(Engine& engine, std::vector<SubmitRequest> requests) {
    return await<std::vector<SubmitResult>>(
        [&](auto reply) { engine.submit("default", std::move(requests), std::move(reply)); });
  }

  // The answer and the stored executions, with numbers for ids and without times.
  std::string ending(const std::vector<SubmitResult>& results) const {
    std::map<ExecutionId, std::size_t> numbers;
    const auto meet = [&](const ExecutionId& id) { numbers.emplace(id, numbers.size()); };
    if (owner_) meet(*owner_);
    for (const SubmitResult& result : results) {
      if (const auto* receipt = std::get_if<Receipt>(&result)) meet(receipt->execution.id);
    }
    ListFilter filter;
    filter.name_space = "default";
    filter.queue = name_;
    filter.kind = case_.form == Form::workflow ? Kind::workflow : Kind::task;
    std::map<std::size_t, std::string> stored;
    for (const Execution& execution : engine_.list(filter)) {
      meet(execution.id);
      stored[numbers.at(execution.id)] =
          fmt::format("{}{}", to_string(execution.status), execution.cancel_requested_at ? ", to be cancelled" : "");
    }
    std::string text;
    for (const auto& [n, how] : stored) text += fmt::format("{} {}\n", n, how);
    const auto number = [&](const ExecutionId& id) {
      const auto found = numbers.find(id);
      return found == numbers.end() ? std::string("unknown") : std::to_string(found->second);
    };
    for (const SubmitResult& result : results) {
      if (const auto* refusal = std::get_if<Refusal>(&result)) {
        text += fmt::format("{} {}\n", wire::to_string(refusal->code, Kind::task),
                            refusal->existing ? number(refusal->existing->id) : "");
        continue;
      }
      const auto& receipt = std::get<Receipt>(result);
      text += fmt::format("{} {}", receipt.created ? "created" : "duplicate of", number(receipt.execution.id));
      if (receipt.match && receipt.match->superseded) text += ", superseded " + number(*receipt.match->superseded);
      text += "\n";
    }
    return text;
  }

 private:
  SubmitRequest request() const {
    SubmitRequest request;
    request.kind = case_.form == Form::workflow ? Kind::workflow : Kind::task;
    request.type = request.queue.emplace(name_);
    request.input = parse_json(R"({"order":1})");
    if (case_.strategy == Strategy::caller_provided) request.idempotency_key = "key-" + name_;
    if (case_.strategy != Strategy::caller_provided) request.identity = case_.strategy;
    if (case_.strategy == Strategy::contextual) request.identity_fields = {{"/order"}};
    request.reuse = case_.reuse;
    request.on_duplicate = case_.on_duplicate;
    request.id = ids_.next(SystemClock().now());
    return request;
  }

  void close(const Execution& claimed) {
    const LeaseToken token{claimed.id, claimed.attempt, *claimed.lease_secret};
    const bool fails = case_.owner == Owner::failed;
    if (claimed.kind == Kind::workflow) {
      TurnRequest turn;
      turn.token = token;
      turn.name_space = "default";
      turn.seen = claimed.run.events;
      if (fails) {
        turn.end = Turn::Failed{{"E", "m"}};
      } else {
        turn.end = Turn::Completed{"1"};
      }
      const auto outcomes = await<std::vector<TurnOutcome>>(
          [&](auto reply) { engine_.commit_turns({std::move(turn)}, std::move(reply)); });
      ASSERT_TRUE(outcomes.at(0).accepted);
      return;
    }
    Report report{token, Report::Completed{"1"}};
    if (fails) report.outcome = Report::Failed{{"E", "m"}, false};
    const auto outcomes =
        await<std::vector<FinishOutcome>>([&](auto reply) { engine_.finish({report}, std::move(reply)); });
    ASSERT_TRUE(outcomes.at(0).accepted);
  }

  Engine& engine_;
  const Case case_;
  const std::string name_;
  std::optional<ExecutionId> owner_;
  static inline IdGenerator ids_;
};

// Sends the same again after a failure that is safe to retry, as a caller does.
std::vector<SubmitResult> submit_until_known(Engine& engine, const std::vector<SubmitRequest>& requests) {
  for (int tries = 0;; ++tries) {
    try {
      return Scene::submit(engine, requests);
    } catch (const Failure& failure) {
      if (!failure.safe_to_retry() || tries == 20) throw;
      std::this_thread::sleep_for(tries * 10ms);  // the store waits before it reconnects
    }
  }
}

// Runs every case once undisturbed and once for each disturbance: the results are equal.
void compare_all(Engine& undisturbed, Engine& disturbed, const std::vector<std::function<void()>>& disturbances,
                 const std::function<bool()>& was_disturbed) {
  int number = 0, disturbed_cases = 0;
  for (const Case& one : all_cases()) {
    Scene plain(undisturbed, one, ++number);
    plain.prepare();
    const std::string expected = plain.ending(Scene::submit(undisturbed, plain.requests()));
    for (std::size_t i = 0; i < disturbances.size(); ++i) {
      Scene scene(undisturbed, one, ++number);
      scene.prepare();
      disturbances[i]();
      const auto results = submit_until_known(disturbed, scene.requests());
      disturbed_cases += was_disturbed();
      ASSERT_EQ(scene.ending(results), expected) << one.describe() << ", disturbance " << i;
    }
  }
  EXPECT_GT(disturbed_cases, number / 3) << "hardly anything was disturbed";
}

TEST(LostAnswers, OverHttpAreRepeated) {
  const SystemClock clock;
  const std::unique_ptr<LocalEngine> local = start_engine(open_memory_store(clock), {});
  ServerOptions options;
  options.port = 0;
  const std::unique_ptr<Server> server = start_server(*local, options);
  FaultProxy proxy(server->port());
  const auto remote =
      connect_engine({.url = "http://127.0.0.1:" + std::to_string(proxy.port()), .token = "", .name_space = "default"});
  bool hit = false;
  std::vector<std::function<void()>> disturbances;
  using Fault = FaultProxy::Fault;
  for (const Fault fault : {Fault::cut_before, Fault::cut_after}) {
    disturbances.emplace_back([&, fault] {
      hit = false;
      proxy.follow([&, fault](const FaultProxy::Request& request) {
        if (request.number != 1) return Fault::none;
        hit = true;
        return fault;
      });
    });
  }
  compare_all(*local, *remote, disturbances, [&] { return hit; });
}

TEST(LostAnswers, OfPostgresAreRepeated) {
  PostgresServer& server = PostgresServer::shared();
  const std::string url = server.create_database();
  CuttingProxy proxy(server.port());
  const auto open = [](const std::string& at) {
    return start_engine(
        open_postgres_store({.url = at, .connections = 2, .create = true, .migrate = false, .notify = false}), {});
  };
  const auto plain = open(url);
  const std::size_t colon = url.rfind(':'), slash = url.rfind('/');
  const auto disturbed = open(url.substr(0, colon + 1) + std::to_string(proxy.port()) + url.substr(slash));
  std::vector<std::function<void()>> disturbances;
  using Direction = CuttingProxy::Direction;
  for (const std::int64_t bytes : {0, 400, 1200}) {
    disturbances.emplace_back([&, bytes] { proxy.cut_after(Direction::to_server, bytes); });
  }
  for (const std::int64_t bytes : {0, 150}) {
    disturbances.emplace_back([&, bytes] { proxy.cut_after(Direction::to_client, bytes); });
  }
  compare_all(*plain, *disturbed, disturbances, [&] {
    const bool cut = proxy.has_cut();
    proxy.never_cut();
    return cut;
  });
}

}  // namespace
}  // namespace hapax
