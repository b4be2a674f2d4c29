#include <atomic>
#include <exception>
#include <thread>

#include "hapax/worker.h"
#include "sdk/app_state.h"
#include "sdk/worker.h"

namespace hapax {

namespace {

WorkOptions without_signals(WorkOptions options) {
  options.handle_signals = false;
  return options;
}

}  // namespace

class Worker::Impl {
 public:
  Impl(std::shared_ptr<detail::AppState> app, WorkOptions options)
      : app_(std::move(app)), worker_(*app_, without_signals(std::move(options))), thread_([this] { run(); }) {}

  void stop() {
    worker_.stop();
    if (thread_.joinable()) thread_.join();
    if (const auto error = std::exchange(error_, nullptr)) std::rethrow_exception(error);
  }

  bool is_working() const { return !ended_; }
  const detail::Telling& telling() const { return app_->telling(); }

 private:
  void run() {
    try {
      worker_.run();
    } catch (...) {
      error_ = std::current_exception();
    }
    ended_ = true;
  }

  const std::shared_ptr<detail::AppState> app_;
  detail::Worker worker_;
  std::exception_ptr error_;
  std::atomic<bool> ended_ = false;
  std::thread thread_;  // last: it uses the rest
};

Worker::Worker(const App& app, WorkOptions options)
    : impl_(std::make_unique<Impl>(app.live().shared_from_this(), std::move(options))) {}

Worker::~Worker() {
  try {
    impl_->stop();
  } catch (const std::exception& error) {
    impl_->telling().line(std::string("a worker ended: ") + error.what());
  }
}

void Worker::stop() { impl_->stop(); }
bool Worker::is_working() const { return impl_->is_working(); }

}  // namespace hapax
