// An outside program.
#include <hapax/hapax.h>

#include <boost/describe.hpp>
#include <chrono>
#include <iostream>
#include <string>

struct Greeting {
  std::string name;
};
BOOST_DESCRIBE_STRUCT(Greeting, (), (name))

std::string greet(const Greeting& greeting) { return "Hello, " + greeting.name; }

int main(int argc, char** argv) try {
  auto app = hapax::open(argc > 1 ? argv[1] : "memory:");
  app.task("greet", greet);
  app.task("refuse", [] { throw hapax::FinalError("no"); });
  const auto greeted = app.submit(greet, Greeting{"stranger"}, hapax::key("hello"));
  const auto refused = app.submit_json("refuse", "", {.max_attempts = 5});
  app.work({.until_idle_for = std::chrono::milliseconds(100)});
  std::cout << greeted.result<std::string>() << "\n";
  try {
    refused.result_json();
  } catch (const hapax::TaskFailed& error) {  // thrown in the library, caught here
    std::cout << error.type() << ": " << error.what() << "\n";
    return 0;
  }
  return 1;
} catch (const hapax::Error& error) {
  std::cerr << error.code() << ": " << error.what() << "\n";
  return 1;
}
