// What a program sees of its tasks and workflows: steps, lists, why something does not run, what its workers report.
//
//   watching [URL]        memory: unless given
#include <hapax/hapax.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <thread>

using namespace std::chrono_literals;

inline constexpr hapax::Signal<std::string> approved{"approved"};

std::string check(const std::string& address) {
  if (address == "nowhere") throw hapax::FinalError("there is no such street");
  return address;
}

std::string deliver(hapax::Context& ctx, const std::string& address) {
  const std::string checked = ctx.run(check, address);
  return checked + ", approved by " + ctx.wait(approved);
}

int main(int argc, char** argv) try {
  std::atomic<int> failures = 0;
  auto app = hapax::open(argc > 1 ? argv[1] : "memory:", {.log = [](std::string_view) {}});
  auto checking = app.task("check", check, {.queue = "addresses"});
  auto delivery = app.workflow("deliver", deliver);
  app.observe({.attempt_failed = [&](const hapax::AttemptFailed&) { ++failures; }});

  auto wrong = checking.submit("nowhere");
  auto run = delivery.start("delivery-7", "Main Street");
  {
    hapax::Worker worker(app, {.threads = 2});  // works until it goes out of scope
    wrong.wait_for(10s);
    while (run.steps().size() < 2) std::this_thread::sleep_for(1ms);
  }

  for (const hapax::Step& step : run.steps()) {
    std::cout << step.number << " " << step.kind << " " << step.name << " " << step.status << "\n";
  }
  for (const hapax::TaskInfo& task : app.tasks({.queue = "addresses", .status = hapax::Status::failed})) {
    std::cout << task.type << ": " << task.last_error << "\n";
  }
  std::cout << app.why("delivery-7") << "\n";

  run.signal(approved, "eve", hapax::request("approve-7"));
  app.work({.until_idle_for = 100ms});
  std::cout << run.result() << "\n";
  const bool as_said = run.result() == "Main Street, approved by eve" && failures == 1;
  return as_said ? EXIT_SUCCESS : EXIT_FAILURE;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return EXIT_FAILURE;
}
