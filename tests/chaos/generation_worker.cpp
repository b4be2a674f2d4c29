// A worker of one generation of a program: it knows the types that it is told, and no others.
//
//   generation_worker PORT NAME TYPE…
#include <hapax/hapax.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>

using namespace std::chrono_literals;

int main(int argc, char** argv) try {
  if (argc < 4) return EXIT_FAILURE;
  auto app = hapax::open(std::string("http://127.0.0.1:") + argv[1]);
  for (int i = 3; i < argc; ++i) {
    const std::string type = argv[i];
    app.task(type,
             [type] {
               std::this_thread::sleep_for(2ms);
               return type;
             },
             {.queue = "orders"});
  }
  // Both generations have it; only one of them can run some of its steps.
  app.workflow("order",
               [](hapax::Context& ctx) {
                 std::string ran;
                 for (const char* step : {"charge", "fraud_check", "ship"}) {
                   ran += ctx.run<std::string>(step, nullptr, {.queue = "orders"}) + " ";
                 }
                 return ran;
               },
               {.queue = "orders"});
  std::cout << "working" << std::endl;
  app.work({.threads = 2, .name = argv[2], .lease = 2s});
  return EXIT_SUCCESS;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return EXIT_FAILURE;
}
