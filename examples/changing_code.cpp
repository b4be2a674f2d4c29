// Workflow code that changes while workflows run: what goes wrong, how it is found before the deploy, and how it is
// done.
//
//   changing_code [URL]        memory: unless given
#include <hapax/hapax.h>
#include <hapax/testing.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>

using namespace std::chrono_literals;

inline const hapax::Task<int, std::string> charge("charge");
inline const hapax::Task<int, std::string> invoice("invoice");
inline const hapax::Task<int, std::string> ship("ship");
inline constexpr hapax::Signal<> packed{"packed"};

// What runs today.
std::string first_version(hapax::Context& ctx, int order) {
  ctx.run(charge, order);
  ctx.wait(packed);
  return ctx.run(ship, order);
}

// What is wanted: an invoice after the charge. Orders that wait for the warehouse have passed that place without one.
std::string careless_version(hapax::Context& ctx, int order) {
  ctx.run(charge, order);
  ctx.run(invoice, order);
  ctx.wait(packed);
  return ctx.run(ship, order);
}

std::string careful_version(hapax::Context& ctx, int order) {
  ctx.run(charge, order);
  if (ctx.version("invoice-after-charge") >= 1) ctx.run(invoice, order);
  ctx.wait(packed);
  return ctx.run(ship, order);
}

// One program with one version of the code, as each deploy has it.
template <class Code>
auto declare(hapax::App& app, Code code) {
  app.task(charge, [](int order) { return "payment-" + std::to_string(order); });
  app.task(invoice, [](int order) { return "invoice-" + std::to_string(order); });
  app.task(ship, [](int order) { return "parcel-" + std::to_string(order); });
  return app.workflow("process_order", code);
}

// The gate: does this code fit the history of a workflow that is running?
template <class Code>
std::string fits(Code code, const std::string& history) {
  hapax::testing::TestApp app;
  const auto process = declare(app, code);
  try {
    hapax::testing::replay(process, history);
    return "it fits";
  } catch (const hapax::Error& error) {
    return error.code();
  }
}

std::string run_one(hapax::testing::TestApp& app, const hapax::WorkflowHandle<std::string>& run) {
  run.signal(packed, hapax::request("packed-1"));
  app.run_until_closed(run);
  std::string names;
  for (const hapax::Step& step : run.steps()) names += step.kind == "task" ? step.name + " " : "";
  return names;
}

int main() try {
  hapax::testing::TestApp before;
  const auto waiting = declare(before, first_version).start("order-456", 456);
  before.run();                                       // charged; it waits for the warehouse
  const std::string history = waiting.export_json();  // or: hapax history order-456 --export

  std::cout << "careless: " << fits(careless_version, history) << "\n";
  std::cout << "careful: " << fits(careful_version, history) << "\n";

  hapax::testing::TestApp after;
  const std::string steps = run_one(after, declare(after, careful_version).start("order-457", 457));
  std::cout << "a new order: " << steps << "\n";

  const bool as_said = fits(careless_version, history) == "NonDeterminism" &&
                       fits(careful_version, history) == "it fits" && steps == "charge invoice ship ";
  return as_said ? EXIT_SUCCESS : EXIT_FAILURE;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return EXIT_FAILURE;
}
