#include "capi/app.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <utility>

#include "capi/local_calls.h"
#include "capi/remote_calls.h"
#include "core/field.h"
#include "core/json.h"
#include "core/name.h"
#include "engine/local_engine.h"

namespace hapax::capi {

namespace {

std::unique_ptr<Calls> calls_of(const std::string& url, const Opened& opened, const OpenEngineOptions& options) {
  if (opened.is_remote) return std::make_unique<RemoteCalls>(url, options.token, options.name_space);
  return std::make_unique<LocalCalls>(*opened.engine, options.name_space);
}

}  // namespace

AppOptions read_app_options(const char* json, bool for_test) {
  AppOptions options;
  if (json == nullptr || *json == '\0') return options;
  const Json document = parse_json(json);
  if (!document.is(Json::Kind::object)) throw InvalidField("", "the options must be a JSON object");
  FieldReader fields(document);
  if (auto name_space = fields.name("namespace")) options.open.name_space = *std::move(name_space);
  if (auto token = fields.string("token")) options.open.token = *std::move(token);
  options.open.store.create = fields.boolean("create").value_or(true);
  options.open.store.migrate = fields.boolean("migrate").value_or(false);
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (const auto calls = fields.integer("max_calls", 1, kMost)) options.max_calls = static_cast<std::size_t>(*calls);
  if (for_test) options.starts_at = fields.time("starts_at").value_or(options.starts_at);
  fields.done();
  return options;
}

App::App(const std::string& url, AppOptions options)
    : max_calls_(options.max_calls), name_space_(options.open.name_space), sqlite_(url) {
  refuse_inherited_sqlite(url);
  opened_ = open_engine(url, options.open);
  calls_ = calls_of(url, opened_, options.open);
}

App::App(AppOptions options)
    : max_calls_(options.max_calls),
      name_space_(options.open.name_space),
      sqlite_("memory:"),
      test_time_(std::make_unique<TestTime>(options.starts_at)),
      opened_(test_time_->opened()),
      calls_(calls_of("memory:", opened_, options.open)) {}

std::shared_ptr<CompletionQueue> App::new_queue() {
  auto queue = std::make_shared<CompletionQueue>(max_calls_);
  const std::lock_guard lock(mutex_);
  std::erase_if(queues_, [](const auto& each) { return each.expired(); });
  queues_.push_back(queue);
  return queue;
}

std::shared_ptr<Worker> App::new_worker(WorkerOptions options, std::shared_ptr<CompletionQueue> queue) {
  const auto lives = opened_.hold_worker ? opened_.hold_worker(options.name) : nullptr;
  auto worker =
      std::make_shared<Worker>(Workplace{opened_.engine, name_space_, lives}, std::move(options), std::move(queue));
  std::vector<std::shared_ptr<Worker>> ended;  // their threads are joined without the lock
  const std::lock_guard lock(mutex_);
  if (is_closed_) throw Failure(Failure::Code::stopped, "the handle was closed");
  std::copy_if(workers_.begin(), workers_.end(), std::back_inserter(ended),
               [](const auto& each) { return each->has_ended(); });
  std::erase_if(workers_, [](const auto& each) { return each->has_ended(); });
  workers_.push_back(worker);
  return worker;
}

void App::close() {
  std::vector<std::shared_ptr<Worker>> workers;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(is_closed_, true)) return;
    workers.swap(workers_);
  }
  for (const auto& worker : workers) worker->stop();
  calls_->stop();
  if (auto* local = dynamic_cast<LocalEngine*>(opened_.engine.get())) local->stop();
  calls_->wait_until_answered();
  const std::lock_guard lock(mutex_);
  for (const auto& each : queues_) {
    if (const auto queue = each.lock()) queue->settle();
  }
}

}  // namespace hapax::capi
