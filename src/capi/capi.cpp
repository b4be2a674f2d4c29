// The functions of hapax/capi.h. Nothing is thrown out of here.
#include "hapax/capi.h"

#include <pthread.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "capi/app.h"
#include "capi/handles.h"
#include "core/field.h"
#include "core/json_writer.h"
#include "http/error.h"

namespace hapax::capi {

namespace {

constexpr std::int32_t kVersion = 1;

// Its app keeps it.
struct WorkerOfApp {
  std::weak_ptr<Worker> worker;
};

// Everything that this process has open. Never destroyed: other threads may still call while the process ends.
struct Library {
  Handles<App> apps{HandleKind::app};
  Handles<CompletionQueue> queues{HandleKind::queue};
  Handles<WorkerOfApp> workers{HandleKind::worker};
};

// A child has its own, and leaves that of its parent alone.
Library& library() {
  static std::atomic<Library*> current = nullptr;
  static const int registered = pthread_atfork(nullptr, nullptr, [] { current = nullptr; });
  static_cast<void>(registered);
  Library* found = current;
  if (found != nullptr) return *found;
  auto* made = new Library;
  if (current.compare_exchange_strong(found, made)) return *made;
  delete made;
  return *found;
}

template <class Handle>
std::uintptr_t number(const Handle* handle) {
  return reinterpret_cast<std::uintptr_t>(handle);
}

template <class Handle>
Handle* pointer(std::uintptr_t number) {
  return reinterpret_cast<Handle*>(number);  // never dereferenced
}

std::shared_ptr<Worker> find_worker(const hapax_worker* handle) {
  const auto found = library().workers.find(number(handle)).first;
  return found ? found->worker.lock() : nullptr;
}

http::Response describe(Trouble trouble) {
  switch (trouble) {
    case Trouble::closed: return no_answer("Closed", "The handle was closed.", false);
    case Trouble::forked:
      return no_answer("ForkError",
                       "The handle was opened before fork(): it belongs to the parent process. Open another one here.",
                       false);
    default: return no_answer("InvalidHandle", "The handle is NULL, or is none of this kind.", false);
  }
}

// The answer to a call that cannot be made.
http::Response describe(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const InvalidField& error) {
    return no_answer("InvalidCall", error.sentence(), false);
  } catch (const std::exception& error) {
    return no_answer("InvalidCall", error.what(), false);
  }
}

MakeAnswer always(http::Response response) {
  return [response = std::move(response)] { return response; };
}

std::string error_json(std::string_view code, std::string_view message, std::string_view at) {
  JsonWriter out;
  out.begin_object().key("error").string(code).key("message").string(message);
  if (!at.empty()) out.key("pointer").string(at);
  out.end_object();
  return out.take();
}

std::string describe_open_failure(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const InvalidField& error) {
    return error_json(error.code(), error.sentence(), error.pointer());
  } catch (const Failure& failure) {
    const bool may_try_again = failure.safe_to_retry();
    return error_json(may_try_again ? "StoreUnavailable" : "InvalidRequest", failure.what(), {});
  } catch (const std::exception& error) {
    return error_json("InvalidRequest", error.what(), {});
  }
}

// While it lives, new threads block all signals: they are for the program's own threads.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

// Standard output is the program's.
void log_to_standard_error() {
  static const bool done = [] {
    auto logger = std::make_shared<spdlog::logger>("hapax", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    logger->set_level(spdlog::level::warn);
    spdlog::set_default_logger(std::move(logger));
    return true;
  }();
  static_cast<void>(done);
}

// Opens, and says why not in *error_json.
template <class Open>
hapax_app* open_app(char** error_json, Open open) {
  thread_local std::string error;
  const SignalsBlocked blocked;
  try {
    log_to_standard_error();
    return pointer<hapax_app>(library().apps.add(open()));
  } catch (...) {
    error = describe_open_failure(std::current_exception());
    if (error_json != nullptr) *error_json = error.data();
    return nullptr;
  }
}

// The answer of one call, for a thread that waits for it.
class Waiter {
 public:
  void answer(MakeAnswer make) {
    const std::lock_guard lock(mutex_);
    make_ = std::move(make);
    answered_.notify_one();
  }

  // Nothing if the time is over; negative: wait forever.
  std::optional<MakeAnswer> wait(std::int64_t timeout_ms) {
    std::unique_lock lock(mutex_);
    const auto is_there = [&] { return make_.has_value(); };
    if (timeout_ms < 0) {
      answered_.wait(lock, is_there);
    } else {
      answered_.wait_for(lock, std::chrono::milliseconds(timeout_ms), is_there);
    }
    return std::move(make_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable answered_;
  std::optional<MakeAnswer> make_;
};

void start_call(const std::shared_ptr<App>& app, const std::shared_ptr<CompletionQueue>& queue, std::uint64_t token,
                Message message) {
  // Only the answer keeps the app: what is left of a call may end on one of the app's own threads.
  const std::weak_ptr<App> maker = app;
  app->calls().start(token, std::move(message), [maker, queue, token](MakeAnswer make) {
    queue->answer({.token = token, .make = std::move(make), .maker = maker.lock()});
  });
}

// Tokens of calls that wait here, apart from those of the program.
std::uint64_t own_token() {
  static std::atomic<std::uint64_t> last = 0;
  return ~last.fetch_add(1, std::memory_order_relaxed);
}

MakeAnswer call_and_wait(const std::shared_ptr<App>& app, Message message, std::int64_t timeout_ms) {
  const auto waiter = std::make_shared<Waiter>();
  const std::uint64_t token = own_token();
  app->calls().start(token, std::move(message), [waiter](MakeAnswer make) { waiter->answer(std::move(make)); });
  if (auto make = waiter->wait(timeout_ms)) return *std::move(make);
  app->calls().cancel(token);
  return always(no_answer("Timeout", "There was no answer in time; whether the call was done is not known.", true));
}

}  // namespace

}  // namespace hapax::capi

using namespace hapax::capi;

extern "C" {

int32_t hapax_abi_version(void) { return kVersion; }

hapax_app* hapax_open(const char* url, const char* options_json, char** error_json) {
  return open_app(error_json, [&] {
    if (url == nullptr) throw std::invalid_argument("the URL is NULL");
    return std::make_shared<App>(url, read_app_options(options_json));
  });
}

hapax_app* hapax_test_open(const char* options_json, char** error_json) {
  return open_app(error_json, [&] { return std::make_shared<App>(read_app_options(options_json, true)); });
}

void hapax_test_advance(hapax_app* app, int64_t ms) {
  const auto found = library().apps.find(number(app)).first;
  if (found && found->test_time() != nullptr) found->test_time()->advance(hapax::Duration(ms));
}

void hapax_close(hapax_app* app) {
  if (const auto found = library().apps.remove(number(app))) found->close();
}

hapax_queue* hapax_queue_new(hapax_app* app) try {
  const auto found = library().apps.find(number(app)).first;
  return found ? pointer<hapax_queue>(library().queues.add(found->new_queue())) : nullptr;
} catch (const std::exception&) {
  return nullptr;
}

int hapax_queue_fd(hapax_queue* queue) {
  const auto found = library().queues.find(number(queue)).first;
  return found ? found->descriptor() : -1;
}

size_t hapax_queue_drain(hapax_queue* queue, hapax_completion* out, size_t max) {
  const auto found = library().queues.find(number(queue)).first;
  return found && out != nullptr ? found->drain(out, max) : 0;
}

void hapax_release(hapax_completion* completions, size_t n) {
  for (size_t i = 0; completions != nullptr && i < n; ++i) release(completions[i]);
}

void hapax_queue_free(hapax_queue* queue) {
  if (const auto found = library().queues.remove(number(queue))) found->end();
}

void hapax_call(hapax_app* app, hapax_queue* queue, uint64_t token, const char* method, const char* target,
                const char* headers_json, const char* body, size_t size) {
  const auto to = library().queues.find(number(queue)).first;
  if (!to) return;
  if (!to->begin_call()) return to->refuse(token);
  const auto [found, trouble] = library().apps.find(number(app));
  if (!found) return to->answer({.token = token, .make = always(describe(trouble))});
  try {
    start_call(found, to, token, read_message(method, target, headers_json, body, size));
  } catch (...) {
    to->answer({.token = token, .make = always(describe(std::current_exception()))});
  }
}

int32_t hapax_call_wait(hapax_app* app, const char* method, const char* target, const char* headers_json,
                        const char* body, size_t size, int64_t timeout_ms, hapax_completion* out) {
  if (out == nullptr) return 0;
  const auto [found, trouble] = library().apps.find(number(app));
  MakeAnswer make;
  try {
    make = found ? call_and_wait(found, read_message(method, target, headers_json, body, size), timeout_ms)
                 : always(describe(trouble));
  } catch (...) {
    make = always(describe(std::current_exception()));
  }
  hand_over({.make = std::move(make)}, *out);
  return out->status;
}

void hapax_cancel(hapax_app* app, uint64_t token) {
  if (const auto found = library().apps.find(number(app)).first) found->calls().cancel(token);
}

hapax_worker* hapax_worker_new(hapax_app* app, hapax_queue* queue, const char* options_json) {
  const auto to = library().queues.find(number(queue)).first;
  if (!to) return nullptr;
  const SignalsBlocked blocked;
  const auto [found, trouble] = library().apps.find(number(app));
  try {
    if (!found) {
      to->tell({.kind = HAPAX_WORKER_ENDED, .make = always(describe(trouble))});
      return nullptr;
    }
    const auto worker = found->new_worker(read_worker_options(options_json), to);
    auto* handle = pointer<hapax_worker>(library().workers.add(std::make_shared<WorkerOfApp>(WorkerOfApp{worker})));
    worker->start(handle);
    return handle;
  } catch (...) {
    to->tell({.kind = HAPAX_WORKER_ENDED, .make = always(hapax::http::error_response(std::current_exception()))});
    return nullptr;
  }
}

void hapax_worker_credit(hapax_worker* worker, int32_t tasks, int32_t turns) {
  if (const auto found = find_worker(worker)) found->credit(tasks, turns);
}

void hapax_worker_finish(hapax_worker* worker, uint64_t claim, const char* outcome_json, size_t size) {
  if (const auto found = find_worker(worker)) found->finish(claim, outcome_json, size);
}

void hapax_worker_turn(hapax_worker* worker, uint64_t claim, const char* turn_json, size_t size) {
  if (const auto found = find_worker(worker)) found->turn(claim, turn_json, size);
}

void hapax_worker_drain(hapax_worker* worker) {
  if (const auto found = find_worker(worker)) found->drain();
}

}  // extern "C"
