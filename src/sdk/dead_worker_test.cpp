// A worker on the same machine that is killed: what it had is given back at once, not when its lease ends.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hapax/app.h"
#include "hapax/listing.h"
#include "hapax/worker.h"
#include "support/temp_dir.h"

namespace hapax {
namespace {

using namespace std::chrono_literals;

TEST(DeadWorker, GivesBackItsLeasesAtOnce) {
  const TempDir dir;
  const std::string url = "sqlite:" + (dir.path() / "app.db").string();
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    auto app = hapax::open(url);
    app.task("slow", [&](int) {
      (void)!write(ends[1], "x", 1);
      for (;;) pause();
    });
    app.submit("slow", 1);
    app.work({.lease = 10min, .handle_signals = false});
    _exit(0);
  }
  char begun = 0;
  ASSERT_EQ(read(ends[0], &begun, 1), 1);

  auto app = hapax::open(url, {.log = [](std::string_view) {}});
  app.task("slow", [](TaskContext& context, int) { return context.attempt(); });
  const Worker worker(app);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  for (const TaskInfo& task : app.tasks({.type = "slow"})) {
    const AnyHandle handle = app.find(task.id);
    ASSERT_TRUE(handle.wait_for(60s)) << "its lease would last for ten minutes";
    EXPECT_EQ(handle.result<int>(), 2);
  }
}

}  // namespace
}  // namespace hapax
