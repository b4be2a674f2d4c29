// A human in the loop: the workflow waits for an answer, for days if need be, and treats no answer as a no.
//
//   approval [URL]        memory: unless given; sqlite:expenses.db, http://127.0.0.1:7373
#include <hapax/hapax.h>

#include <boost/describe.hpp>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <stop_token>
#include <string>
#include <thread>

using namespace std::chrono_literals;

struct Expense {
  std::string who;
  int cents = 0;
  int patience_ms = 0;
};
BOOST_DESCRIBE_STRUCT(Expense, (), (who, cents, patience_ms))

struct Answer {
  bool approved = false;
  std::string by;
};
BOOST_DESCRIBE_STRUCT(Answer, (), (approved, by))

void pay(const Expense& expense) { std::cout << "paying " << expense.cents << " to " + expense.who + "\n"; }

std::string reimburse(hapax::Context& ctx, const Expense& expense) {
  const auto answer = ctx.wait_signal<Answer>("answer", hapax::Milliseconds(expense.patience_ms));
  if (!answer) return "nobody answered";
  if (!answer->approved) return "refused by " + answer->by;
  ctx.run(pay, expense);
  return "approved by " + answer->by;
}

int main(int argc, char** argv) try {
  auto app = hapax::open(argc > 1 ? argv[1] : "memory:");
  app.task("pay", pay);
  app.workflow("reimburse", reimburse);

  auto hotel = app.start(reimburse, "expense-1", Expense{"ann", 12000, 3'600'000});
  auto yacht = app.start(reimburse, "expense-2", Expense{"bob", 99900000, 3'600'000});
  auto lunch = app.start(reimburse, "expense-3", Expense{"cid", 1250, 50});

  // Anyone with the workflow's id can answer, from anywhere. Two clicks count once.
  if (hotel.created()) hotel.signal("answer", Answer{true, "eve"}, "click-1");
  if (hotel.created()) hotel.signal("answer", Answer{true, "eve"}, "click-1");
  if (yacht.created()) yacht.signal("answer", Answer{false, "eve"}, "click-2");

  const std::jthread worker([&](std::stop_token stop) {
    const std::stop_callback on_stop(stop, [&] { app.stop(); });
    app.work({.handle_signals = false});
  });
  for (const auto& handle : {hotel, yacht, lunch}) {
    const auto outcome = handle.result<std::string>();
    std::cout << handle.workflow_id() << ": " << outcome << "\n";
  }
  const bool as_said = hotel.result<std::string>() == "approved by eve" &&
                       yacht.result<std::string>() == "refused by eve" &&
                       lunch.result<std::string>() == "nobody answered";
  return as_said ? EXIT_SUCCESS : EXIT_FAILURE;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return EXIT_FAILURE;
}
