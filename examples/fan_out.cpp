// Many steps at once: a workflow counts the words of 1,000 pages in 1,000 tasks, and waits for all of them.
//
//   fan_out [URL]        memory: unless given; sqlite:pages.db, http://127.0.0.1:7373
#include <hapax/hapax.h>

#include <cstdlib>
#include <iostream>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

int count_words(int page) { return 200 + page % 100; }

int count_book(hapax::Context& ctx, int pages) {
  std::vector<hapax::Future<int>> counts;
  for (int page = 1; page <= pages; ++page) counts.push_back(ctx.start(count_words, page));
  int words = 0;
  for (const int count : ctx.all(counts)) words += count;
  return words;
}

int main(int argc, char** argv) try {
  auto app = hapax::open(argc > 1 ? argv[1] : "memory:");
  app.task("count_words", count_words, {.queue = "pages"});
  app.workflow("count_book", count_book);

  auto handle = app.start(count_book, "moby-dick", 1000);
  const std::jthread worker([&](std::stop_token stop) {
    const std::stop_callback on_stop(stop, [&] { app.stop(); });
    app.work({.threads = 8, .handle_signals = false});
  });
  const auto words = handle.result<int>();
  std::cout << words << " words\n";
  return words == 249'500 ? EXIT_SUCCESS : EXIT_FAILURE;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return EXIT_FAILURE;
}
