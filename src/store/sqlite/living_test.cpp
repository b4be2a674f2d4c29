// Leases of workers that died on the same machine.
#include "store/sqlite/living.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "support/temp_dir.h"

namespace hapax::sqlite {
namespace {

using Names = std::vector<std::string>;

class Living : public ::testing::Test {
 protected:
  Names dead() { return DeadWorkers(database_).names(); }

  // A process that holds the worker, until it is killed.
  pid_t start(const std::string& worker) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
      const auto held = hold_worker(database_, worker);
      (void)!write(ends[1], held ? "y" : "n", 1);
      for (;;) pause();
    }
    char answer = 0;
    EXPECT_EQ(read(ends[0], &answer, 1), 1);
    EXPECT_EQ(answer, 'y');
    close(ends[0]);
    close(ends[1]);
    return child;
  }
  void kill_now(pid_t child) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }

  TempDir dir_;
  const std::string database_ = (dir_.path() / "app.db").string();
};

TEST_F(Living, NobodyIsDeadWhereNobodyWorked) { EXPECT_EQ(dead(), Names()); }

TEST_F(Living, AKilledWorkerIsDeadAndALivingOneIsNot) {
  const auto mine = hold_worker(database_, "mine");
  const pid_t other = start("other");
  EXPECT_EQ(dead(), Names());
  kill_now(other);
  EXPECT_EQ(dead(), Names{"other"});
  DeadWorkers(database_).forget();
  EXPECT_EQ(dead(), Names());
}

TEST_F(Living, OneThatEndsLeavesNothing) {
  hold_worker(database_, "short");
  EXPECT_EQ(dead(), Names());
  EXPECT_TRUE(std::filesystem::is_empty(database_ + "-workers"));
}

TEST_F(Living, WorkersOfOneNameAreDeadWhenAllAre) {
  const pid_t first = start("twin"), second = start("twin");
  kill_now(first);
  EXPECT_EQ(dead(), Names());
  kill_now(second);
  EXPECT_EQ(dead(), Names{"twin"});
}

TEST_F(Living, ANewWorkerOfADeadOnesNameLives) {
  kill_now(start("again"));
  const auto held = hold_worker(database_, "again");
  EXPECT_EQ(dead(), Names());
}

}  // namespace
}  // namespace hapax::sqlite
