// The usual shape: one program submits, another works. Both open the same URL.
//
//   worker_and_submitter URL work       works until SIGTERM
//   worker_and_submitter URL submit     submits pictures, waits for them
//   worker_and_submitter [URL]          both in one process (memory: unless given)
#include <hapax/hapax.h>

#include <boost/describe.hpp>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

struct Picture {
  std::string file;
  int width = 0;
};
BOOST_DESCRIBE_STRUCT(Picture, (), (file, width))

struct Thumbnail {
  std::string file;
  int width = 0;
  int attempt = 0;
};
BOOST_DESCRIBE_STRUCT(Thumbnail, (), (file, width, attempt))

hapax::App open_app(const std::string& url) {
  auto app = hapax::open(url);
  app.task("make_thumbnail",
           [](hapax::TaskContext& context, const Picture& picture) {
             return Thumbnail{"thumbnail-of-" + picture.file, picture.width / 10, context.attempt()};
           },
           {.queue = "pictures"});
  return app;
}

bool submit_pictures(hapax::App& app) {
  std::vector<hapax::AnyHandle> handles;
  for (int i = 1; i <= 20; ++i) {
    const Picture picture{"picture-" + std::to_string(i) + ".png", 100 * i};
    handles.push_back(app.submit("make_thumbnail", picture, {.key = picture.file, .timeout = 30s}));
  }
  for (std::size_t i = 0; i < handles.size(); ++i) {
    if (!handles[i].wait_for(30s)) return false;
    const auto thumbnail = handles[i].result<Thumbnail>();
    std::cout << thumbnail.file << ", " << thumbnail.width << " wide\n";
    if (thumbnail.width != 10 * (static_cast<int>(i) + 1) || thumbnail.attempt < 1) return false;
  }
  return true;
}

int main(int argc, char** argv) try {
  auto app = open_app(argc > 1 ? argv[1] : "memory:");
  const std::string role = argc > 2 ? argv[2] : "both";

  if (role == "work") {
    app.work({.threads = 8});
    return EXIT_SUCCESS;
  }
  if (role == "submit") return submit_pictures(app) ? EXIT_SUCCESS : EXIT_FAILURE;

  const std::jthread worker([&](std::stop_token stop) {
    const std::stop_callback on_stop(stop, [&] { app.stop(); });
    app.work({.handle_signals = false});
  });
  return submit_pictures(app) ? EXIT_SUCCESS : EXIT_FAILURE;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return EXIT_FAILURE;
}
