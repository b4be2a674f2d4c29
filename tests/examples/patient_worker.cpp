// A worker whose handler says that it started, and ends when it is told to: for tests of workers that die or fall
// asleep.
//
//   patient_worker URL NAME GO_FILE        the handler returns NAME as soon as GO_FILE exists
#include <hapax/hapax.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <thread>

using namespace std::chrono_literals;

int main(int argc, char** argv) try {
  if (argc != 4) return EXIT_FAILURE;
  const std::string name = argv[2];
  const std::filesystem::path go_file = argv[3];
  auto app = hapax::open(argv[1]);
  app.task("wait", [&](hapax::TaskContext& context) {
    std::cout << "started " << context.attempt() << " " << context.effect_key() << std::endl;
    while (!std::filesystem::exists(go_file)) std::this_thread::sleep_for(5ms);
    std::cout << "ended " << context.attempt() << (context.cancel_requested() ? " unwanted" : "") << std::endl;
    return name;
  });
  app.work({.threads = 1, .name = name, .lease = 1s});
  return EXIT_SUCCESS;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return EXIT_FAILURE;
}
