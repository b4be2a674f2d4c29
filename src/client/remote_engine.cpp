#include "client/remote_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <list>
#include <mutex>
#include <thread>

#include "client/http_client.h"
#include "core/field.h"
#include "wire/read_answer.h"
#include "wire/write_request.h"

namespace hapax {

namespace {

using namespace std::chrono_literals;

constexpr auto kTimeout = 30s;        // of an exchange that does not wait
constexpr int kMaxRepeats = 3;        // of one whose answer was lost
constexpr std::size_t kMaxItems = 1000;

std::vector<std::string> headers_of(const RemoteOptions& options) {
  std::vector<std::string> headers{"Hapax-Namespace: " + options.name_space};
  if (!options.token.empty()) headers.push_back("Authorization: Bearer " + options.token);
  return headers;
}

std::string without_slash(std::string url) {
  while (url.ends_with('/')) url.pop_back();
  return url;
}

// A query string of the members that are set.
class Query {
 public:
  Query& add(std::string_view name, const std::optional<std::string>& value) {
    if (value) text_ += fmt::format("{}{}={}", text_.empty() ? '?' : '&', name, percent_encode(*value));
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// A claim that waits: its thread, and the flag that ends it.
struct WaitingClaim : Waiting {
  void cancel() override { cancelled = true; }
  std::atomic<bool> cancelled = false;
};

class RemoteEngine final : public Engine {
 public:
  explicit RemoteEngine(const RemoteOptions& options) : http_(without_slash(options.url), headers_of(options)) {}
  ~RemoteEngine() override;

  void submit(const std::string& name_space, std::vector<SubmitRequest> requests,
              Reply<std::vector<SubmitResult>> reply) override;
  std::shared_ptr<Waiting> claim(ClaimCall call, Reply<std::vector<Execution>> reply) override;
  void heartbeat(std::vector<Extension> extensions, Reply<std::vector<ExtendOutcome>> reply) override;
  void finish(std::vector<Report> reports, Reply<std::vector<FinishOutcome>> reply) override;
  void control(ControlRequest request, Reply<ControlOutcome> reply) override;
  std::shared_ptr<Waiting> wait_closed(const std::string& name_space, const ExecutionId& id, Duration wait,
                                       Reply<std::optional<Execution>> reply) override;

  std::optional<Execution> find(const std::string& name_space, const ExecutionId& id) override;
  std::vector<Execution> list(const ListFilter& filter) override;
  std::optional<FoundIdentity> find_identity(const std::string& name_space, const std::string& type,
                                             const std::optional<Scope>& scope, const std::optional<std::string>& queue,
                                             const std::string& key) override;
  bool release_identity(const std::string& name_space, const IdentityHash& hash) override;

  QueueView queue(const std::string& name_space, const std::string& name) override;
  std::vector<QueueView> queues(const std::string& name_space) override;
  QueueView put_queue(const std::string& name_space, const std::string& name, const QueueSettings& settings) override;
  QueueView set_paused(const std::string& name_space, const std::string& name, bool paused) override;
  TypeView type(const std::string& name_space, const std::string& name) override;
  std::vector<TypeView> types(const std::string& name_space) override;
  TypeView put_type(const std::string& name_space, const std::string& name, const TypeSettings& settings) override;

  void check_ready() override;
  EngineCounters counters() override { return {}; }  // they are the server's, at /metrics
  std::vector<QueueCount> queue_counts() override;

 private:
  struct Exchanged {
    int status;
    Json body;
  };

  Exchanged exchange(const std::string& method, const std::string& path, const std::string& body = {},
                     const std::vector<std::string>& headers = {}, Duration wait = {},
                     const std::atomic<bool>* cancelled = nullptr);
  Exchanged exchange_repeatedly(const std::string& method, const std::string& path, const std::string& body = {},
                                const std::vector<std::string>& headers = {}, Duration wait = {});
  std::vector<Execution> claim_once(const ClaimCall& call, const std::atomic<bool>* cancelled);
  void end_claims();

  HttpClient http_;
  std::mutex mutex_;
  std::list<std::pair<std::shared_ptr<WaitingClaim>, std::thread>> claims_;
};

[[noreturn]] void throw_answered_error(int status, const Json& body) {
  const Json* code = body.find("error");
  const Json* message = body.find("message");
  const std::string sentence = message ? message->text : fmt::format("the server answered with status {}", status);
  if (status == 503) {
    const bool stopped = code && code->text == "ShuttingDown", corrupt = code && code->text == "StoreCorrupt";
    throw Failure(stopped ? Failure::Code::stopped : corrupt ? Failure::Code::corrupt : Failure::Code::unavailable,
                  sentence);
  }
  if (status >= 500) throw Failure(Failure::Code::outcome_unknown, sentence);
  throw RemoteRefusal(code ? code->text : "InvalidRequest", sentence);
}

// Answers with what `compute` gives or throws, on this thread.
template <class T, class Compute>
void answer(const Reply<T>& reply, Compute compute) {
  std::optional<Answer<T>> answered;
  try {
    answered.emplace(compute());
  } catch (...) {
    answered.emplace(std::current_exception());
  }
  reply(*std::move(answered));
}

RemoteEngine::~RemoteEngine() { end_claims(); }

void RemoteEngine::end_claims() {
  std::list<std::pair<std::shared_ptr<WaitingClaim>, std::thread>> claims;
  {
    std::lock_guard lock(mutex_);
    claims.swap(claims_);
  }
  for (auto& [waiting, thread] : claims) waiting->cancel();
  for (auto& [waiting, thread] : claims) thread.join();
}

RemoteEngine::Exchanged RemoteEngine::exchange(const std::string& method, const std::string& path,
                                               const std::string& body, const std::vector<std::string>& headers,
                                               Duration wait, const std::atomic<bool>* cancelled) {
  HttpAnswer http = http_.send(method, path, body, headers, kTimeout + wait, cancelled);
  try {
    return {http.status, parse_json(http.body)};
  } catch (const InvalidJson&) {
    throw Failure(Failure::Code::misuse,
                  fmt::format("{} answered with something that is no JSON: is it a Hapax server?", http_.base_url()));
  }
}

// For what the server recognises when it comes again.
RemoteEngine::Exchanged RemoteEngine::exchange_repeatedly(const std::string& method, const std::string& path,
                                                          const std::string& body,
                                                          const std::vector<std::string>& headers, Duration wait) {
  for (int repeats = 0;; ++repeats) {
    try {
      return exchange(method, path, body, headers, wait);
    } catch (const Failure& failure) {
      if (failure.code() != Failure::Code::outcome_unknown || repeats == kMaxRepeats) throw;
    }
  }
}

// ---- submit

void RemoteEngine::submit(const std::string&, std::vector<SubmitRequest> requests,
                          Reply<std::vector<SubmitResult>> reply) {
  answer(reply, [&] {
    // A key, or a strategy that is one: then the second sending finds what the first has done.
    const bool repeatable = std::all_of(requests.begin(), requests.end(), [](const SubmitRequest& request) {
      return request.idempotency_key || (request.identity && *request.identity != Strategy::always_unique);
    });
    const auto post = [&](const std::string& path, const std::string& body) {
      return repeatable ? exchange_repeatedly("POST", path, body) : exchange("POST", path, body);
    };
    std::vector<SubmitResult> results;
    if (requests.size() == 1) {
      const auto [status, body] = post("/v1/tasks", wire::write_submit(requests[0]));
      if (status >= 400 && status != 409 && !(status == 400 && body.find("pointer"))) throw_answered_error(status, body);
      results.push_back(wire::read_submit_result(body));
    } else {
      const auto [status, body] = post("/v1/tasks/batch", wire::write_batch(requests));
      if (status != 200) throw_answered_error(status, body);
      results = wire::read_all(body, "receipts", wire::read_submit_result);
      if (results.size() != requests.size()) throw Failure(Failure::Code::corrupt, "the server answered too few receipts");
    }
    return results;
  });
}

// ---- claim, heartbeat, finish, control

std::vector<Execution> RemoteEngine::claim_once(const ClaimCall& call, const std::atomic<bool>* cancelled) {
  const auto [status, body] = exchange("POST", "/v1/claims", wire::write_claim_call(call), {}, call.wait, cancelled);
  if (status != 200) throw_answered_error(status, body);
  return wire::read_all(body, "claims", wire::read_claim);
}

std::shared_ptr<Waiting> RemoteEngine::claim(ClaimCall call, Reply<std::vector<Execution>> reply) {
  if (call.wait <= Duration(0)) {
    answer(reply, [&] { return claim_once(call, nullptr); });
    return nullptr;
  }
  auto waiting = std::make_shared<WaitingClaim>();
  std::lock_guard lock(mutex_);
  claims_.remove_if([](auto& entry) {
    if (!entry.first->cancelled.load()) return false;
    entry.second.join();
    return true;
  });
  std::thread thread([this, waiting, call = std::move(call), reply = std::move(reply)] {
    answer(reply, [&]() -> std::vector<Execution> {
      try {
        auto executions = claim_once(call, &waiting->cancelled);
        waiting->cancelled = true;  // over: the next claim clears it away
        return executions;
      } catch (const Failure& failure) {
        const bool taken_back = waiting->cancelled && failure.code() == Failure::Code::stopped;
        waiting->cancelled = true;
        if (taken_back) return {};
        throw;
      }
    });
  });
  claims_.emplace_back(waiting, std::move(thread));
  return waiting;
}

void RemoteEngine::heartbeat(std::vector<Extension> extensions, Reply<std::vector<ExtendOutcome>> reply) {
  answer(reply, [&] {
    std::vector<ExtendOutcome> outcomes;
    const std::span<const Extension> all(extensions);
    for (std::size_t at = 0; at < all.size(); at += kMaxItems) {
      const auto part = all.subspan(at, std::min(kMaxItems, all.size() - at));
      const auto [status, body] =
          exchange_repeatedly("POST", "/v1/claims/heartbeat", wire::write_heartbeat(part, part.front().lease));
      if (status != 200) throw_answered_error(status, body);
      for (auto& outcome : wire::read_all(body, "leases", wire::read_extend_outcome)) outcomes.push_back(outcome);
    }
    return outcomes;
  });
}

void RemoteEngine::finish(std::vector<Report> reports, Reply<std::vector<FinishOutcome>> reply) {
  answer(reply, [&] {
    std::vector<FinishOutcome> outcomes;
    const std::span<const Report> all(reports);
    for (std::size_t at = 0; at < all.size(); at += kMaxItems) {
      const auto part = all.subspan(at, std::min(kMaxItems, all.size() - at));
      const auto [status, body] = exchange_repeatedly("POST", "/v1/claims/finish", wire::write_finish(part));
      if (status != 200 && status != 409) throw_answered_error(status, body);
      for (auto& outcome : wire::read_all(body, "outcomes", wire::read_finish_outcome)) outcomes.push_back(outcome);
    }
    return outcomes;
  });
}

void RemoteEngine::control(ControlRequest request, Reply<ControlOutcome> reply) {
  answer(reply, [&] {
    const char* action = request.action == ControlRequest::Action::cancel ? "cancel" : "retry";
    const auto [status, body] =
        exchange_repeatedly("POST", fmt::format("/v1/tasks/{}/{}", request.target.to_string(), action), "",
                            {"Idempotency-Key: " + request.request_key});
    if (!body.find("idempotency_replayed")) throw_answered_error(status, body);
    return wire::read_control_outcome(body);
  });
}

std::shared_ptr<Waiting> RemoteEngine::wait_closed(const std::string&, const ExecutionId& id, Duration wait,
                                                   Reply<std::optional<Execution>> reply) {
  answer(reply, [&]() -> std::optional<Execution> {
    const auto [status, body] = exchange_repeatedly(
        "GET", fmt::format("/v1/tasks/{}/result?wait={}", id.to_string(), format_duration(wait)), "", {}, wait);
    if (status == 404) return {};
    if (status >= 400) throw_answered_error(status, body);
    const Json* execution = body.find("execution");
    return wire::read_execution(execution ? *execution : body);
  });
  return nullptr;
}

// ---- read

std::optional<Execution> RemoteEngine::find(const std::string&, const ExecutionId& id) {
  const auto [status, body] = exchange_repeatedly("GET", "/v1/tasks/" + id.to_string());
  if (status == 404) return {};
  if (status != 200) throw_answered_error(status, body);
  return wire::read_execution(body);
}

std::vector<Execution> RemoteEngine::list(const ListFilter& filter) {
  const auto id_text = [](const std::optional<ExecutionId>& id) {
    return id ? std::optional(id->to_string()) : std::nullopt;
  };
  Query query;
  query.add("queue", filter.queue).add("type", filter.type).add("idempotency_key", filter.idempotency_key);
  if (filter.status) query.add("status", std::string(to_string(*filter.status)));
  query.add("parent", id_text(filter.parent)).add("cursor", id_text(filter.before));
  query.add("limit", std::to_string(filter.limit));
  const auto [status, body] = exchange_repeatedly("GET", "/v1/tasks" + query.text());
  if (status != 200) throw_answered_error(status, body);
  return wire::read_all(body, "executions", wire::read_execution);
}

std::optional<FoundIdentity> RemoteEngine::find_identity(const std::string&, const std::string& type,
                                                         const std::optional<Scope>& scope,
                                                         const std::optional<std::string>& queue,
                                                         const std::string& key) {
  Query query;
  query.add("type", type).add("queue", queue).add("key", key);
  if (scope) query.add("scope", scope->to_string());
  const auto [status, body] = exchange_repeatedly("GET", "/v1/identities" + query.text());
  if (status == 404) return {};
  if (status != 200) throw_answered_error(status, body);
  return wire::read_identity(body);
}

bool RemoteEngine::release_identity(const std::string&, const IdentityHash& hash) {
  const auto [status, body] = exchange("DELETE", "/v1/identities/" + hash.to_string());
  if (status != 200) throw_answered_error(status, body);
  const Json* released = body.find("released");
  return released && released->boolean;
}

// ---- settings

QueueView RemoteEngine::queue(const std::string&, const std::string& name) {
  const auto [status, body] = exchange_repeatedly("GET", "/v1/queues/" + percent_encode(name));
  if (status != 200) throw_answered_error(status, body);
  return wire::read_queue(body);
}

std::vector<QueueView> RemoteEngine::queues(const std::string&) {
  const auto [status, body] = exchange_repeatedly("GET", "/v1/queues");
  if (status != 200) throw_answered_error(status, body);
  return wire::read_all(body, "queues", wire::read_queue);
}

QueueView RemoteEngine::put_queue(const std::string&, const std::string& name, const QueueSettings& settings) {
  const auto [status, body] = exchange_repeatedly("PUT", "/v1/queues/" + percent_encode(name), settings.to_json());
  if (status != 200) throw_answered_error(status, body);
  return wire::read_queue(body);
}

QueueView RemoteEngine::set_paused(const std::string&, const std::string& name, bool paused) {
  const auto [status, body] = exchange_repeatedly(
      "POST", fmt::format("/v1/queues/{}/{}", percent_encode(name), paused ? "pause" : "unpause"));
  if (status != 200) throw_answered_error(status, body);
  return wire::read_queue(body);
}

TypeView RemoteEngine::type(const std::string&, const std::string& name) {
  const auto [status, body] = exchange_repeatedly("GET", "/v1/types/" + percent_encode(name));
  if (status != 200) throw_answered_error(status, body);
  return wire::read_type(body);
}

std::vector<TypeView> RemoteEngine::types(const std::string&) {
  const auto [status, body] = exchange_repeatedly("GET", "/v1/types");
  if (status != 200) throw_answered_error(status, body);
  return wire::read_all(body, "types", wire::read_type);
}

TypeView RemoteEngine::put_type(const std::string&, const std::string& name, const TypeSettings& settings) {
  const auto [status, body] = exchange_repeatedly("PUT", "/v1/types/" + percent_encode(name), settings.to_json());
  if (status != 200) throw_answered_error(status, body);
  return wire::read_type(body);
}

// ---- operations

void RemoteEngine::check_ready() {
  const auto [status, body] = exchange("GET", "/ready");
  if (status != 200) throw_answered_error(status, body);
}

std::vector<QueueCount> RemoteEngine::queue_counts() {
  std::vector<QueueCount> counts;
  for (QueueView& view : queues("")) counts.push_back(std::move(view.count));
  return counts;
}

}  // namespace

std::unique_ptr<Engine> connect_engine(RemoteOptions options) { return std::make_unique<RemoteEngine>(options); }

}  // namespace hapax
