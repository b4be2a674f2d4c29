// Many at once: one request, one commit, each with its own outcome. Sending the batch again adds nothing.
//
//   batch [URL]        memory: unless given
#include <hapax/hapax.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

using namespace std::chrono_literals;

int main(int argc, char** argv) try {
  auto app = hapax::open(argc > 1 ? argv[1] : "memory:");
  std::atomic<int> sent = 0;
  app.task("send_newsletter", [&](const std::string&) { ++sent; }, {.queue = "mail"});

  std::vector<hapax::BatchItem> items;
  for (int i = 0; i < 500; ++i) {
    const std::string address = "reader" + std::to_string(i % 400) + "@example.org";  // a hundred are in the list twice
    items.push_back(hapax::BatchItem::of("send_newsletter", address, {.key = "2026-11/" + address, .queue = "mail"}));
  }
  const auto created = [](const hapax::AnyHandle& handle) { return handle.created(); };
  const auto handles = app.submit_batch(items);
  const auto new_ones = std::count_if(handles.begin(), handles.end(), created);

  const auto again = app.submit_batch(items);  // as after a lost answer
  const auto new_again = std::count_if(again.begin(), again.end(), created);

  app.work({.until_idle_for = 100ms});

  const bool all_done = std::all_of(handles.begin(), handles.end(),
                                    [](const hapax::AnyHandle& handle) { return handle.status() == "completed"; });
  std::cout << new_ones << " new, " << new_again << " when sent again, " << sent << " sent\n";
  return new_again == 0 && sent == new_ones && handles[0].id() == handles[400].id() && all_done ? EXIT_SUCCESS
                                                                                                : EXIT_FAILURE;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return EXIT_FAILURE;
}
