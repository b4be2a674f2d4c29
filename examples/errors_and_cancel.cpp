// What a handler can report besides a result: retry, give up, cancelled.
//
//   errors_and_cancel [URL]        memory: unless given
#include <hapax/hapax.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>

using namespace std::chrono_literals;

// A payment provider with idempotency keys: the same key again is the same payment.
class Provider {
 public:
  std::size_t pay(const std::string& idempotency_key) {
    std::lock_guard lock(mutex_);
    payments_.insert(idempotency_key);
    return payments_.size();
  }

 private:
  std::mutex mutex_;
  std::set<std::string> payments_;
};

Provider provider;

// Any exception: try again later. With the same effect key the second attempt makes no second payment.
std::size_t pay(hapax::TaskContext& context) {
  const std::size_t payments = provider.pay(context.effect_key());
  if (context.attempt() == 1) throw std::runtime_error("the provider's answer was lost");
  return payments;
}

// FinalError: no attempt would succeed.
void refuse() { throw hapax::FinalError("the card was declined"); }

// A long handler checks now and then whether it was cancelled.
void count_sheep(hapax::TaskContext& context) {
  while (!context.cancel_requested()) std::this_thread::sleep_for(10ms);
  throw hapax::Cancelled();
}

std::string how_it_ended(const hapax::AnyHandle& handle) {
  try {
    handle.result_json();
    return "completed";
  } catch (const hapax::TaskFailed& error) {
    std::cout << error.code() << ": " << error.what() << "\n";
    return error.code();
  }
}

int main(int argc, char** argv) try {
  auto app = hapax::open(argc > 1 ? argv[1] : "memory:");
  app.task("pay", pay);
  app.task("refuse", refuse);
  app.task("count_sheep", count_sheep);
  const std::jthread worker([&](std::stop_token stop) {
    const std::stop_callback on_stop(stop, [&] { app.stop(); });
    app.work({.lease = 1s, .handle_signals = false});
  });

  const auto paid = app.submit_json("pay", "", {.retry = {.initial = 10ms}});
  const bool once = paid.result<std::size_t>() == 1;

  const bool refused = how_it_ended(app.submit_json("refuse", "")) == "TaskFailed";

  const auto sheep = app.submit_json("count_sheep", "");
  while (sheep.status() == "pending") std::this_thread::sleep_for(10ms);
  const bool changed = sheep.cancel("enough-" + sheep.id());
  const bool cancelled = changed && how_it_ended(sheep) == "TaskCancelled";

  return once && refused && cancelled ? EXIT_SUCCESS : EXIT_FAILURE;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return EXIT_FAILURE;
}
