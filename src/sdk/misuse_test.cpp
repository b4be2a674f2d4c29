// Each misuse is an error that says what to do instead: never a hang, never undefined.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "hapax/testing.h"
#include "hapax/worker.h"
#include "sdk/replayed.h"

namespace hapax {
namespace {

using testing::TestApp;

std::string said_by(const auto& function) {
  try {
    function();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "InvalidRequest");
    return error.what();
  }
  return "nothing";
}

int twice(int n) { return 2 * n; }
int flow(Context&, int n) { return n; }

TEST(Misuse, ATypeIsDeclaredOnce) {
  TestApp app;
  app.task("t", [] {});
  app.workflow("w", [](Context&) {});
  EXPECT_EQ(said_by([&] { app.task("t", [] {}); }), "there is a task 't' already: declare each type once");
  EXPECT_EQ(said_by([&] { app.workflow("w", [](Context&) {}); }),
            "there is a workflow 'w' already: declare each type once");
  app.any_task([](TaskContext&, const std::string&) { return ""; });
  EXPECT_EQ(said_by([&] { app.any_task([](TaskContext&, const std::string&) { return ""; }); }),
            "there is an any_task() already");
}

TEST(Misuse, ATaskHasAName) {
  TestApp app;
  EXPECT_EQ(said_by([&] { app.task("", [] {}); }),
            "a task needs a name; for all types without a task of their own, use any_task()");
}

TEST(Misuse, AFunctionHasOneName) {
  TestApp app;
  app.task("double", twice);
  EXPECT_EQ(
      said_by([&] { app.task("twice", twice); }),
      "this function is declared as 'double' already: a function has one name; for 'twice', declare a lambda that "
      "calls it");
  app.workflow("flow", flow);
  EXPECT_EQ(said_by([&] { app.workflow("again", flow); }),
            "this function is declared as 'flow' already: a function has one name; for 'again', declare a lambda that "
            "calls it");
}

TEST(Misuse, AFunctionThatIsNotDeclaredIsNotSubmitted) {
  TestApp app;
  EXPECT_EQ(said_by([&] { app.submit(twice, 1); }),
            "this function was not declared: call app.task(\"name\", function) or app.workflow(\"name\", function) "
            "first");
}

TEST(Misuse, ATaskWithoutAnAppIsSubmittedThroughOne) {
  EXPECT_EQ(said_by([&] { Task<int, int>("double").submit(1); }),
            "'double' was made from its name and belongs to no app: use app.submit(task, input) or app.start(workflow, "
            "id, input), or declare it first");
  auto orphan = TestApp().task("double", twice);
  EXPECT_EQ(said_by([&] { orphan.submit(1); }),
            "the app that 'double' was declared to is closed: keep it as long as you submit");
}

TEST(Misuse, WorkflowCodeDoesNotUseTheApp) {
  TestApp app;
  auto task = app.task("double", twice);
  std::string said;
  auto submits = app.workflow("submits", [&](Context&) { said = said_by([&] { task.submit(1).result(); }); });
  app.run_until_closed(submits.start("w-1"));
  EXPECT_EQ(said,
            "the code of a workflow is replayed and must not block, so it cannot use the app: run a task with "
            "ctx.run(), a workflow with ctx.run_workflow(), or do this in a task");

  const auto handle = task.submit(1);
  auto waits = app.workflow("waits", [&](Context&) { said = said_by([&] { handle.result(); }); });
  said.clear();
  app.run_until_closed(waits.start("w-2"));
  EXPECT_TRUE(said.starts_with("the code of a workflow is replayed and must not block")) << said;
}

TEST(Misuse, AContextIsNotUsedOnAnotherThread) {
  TestApp app;
  std::string said;
  auto threads = app.workflow(
      "threads", [&](Context& ctx) { std::thread([&] { said = said_by([&] { ctx.run("double", 1); }); }).join(); });
  app.run_until_closed(threads.start("w-1"));
  EXPECT_EQ(said,
            "the Context of a workflow was used on a thread that does not run its code: let the work of other threads "
            "be tasks, and wait for them with ctx.start() and ctx.all()");
}

// What the function says in a child process.
std::string said_in_child(const std::function<std::string()>& function) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    const std::string said = function();
    (void)!write(ends[1], said.data(), said.size());
    _exit(0);
  }
  close(ends[1]);
  std::string said;
  char buffer[1024];
  for (ssize_t got = 0; (got = read(ends[0], buffer, sizeof buffer)) > 0;)
    said.append(buffer, static_cast<std::size_t>(got));
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return said;
}

TEST(Misuse, AForkedProcessOpensItsOwnApp) {
  auto app = std::make_optional(hapax::open("memory:"));
  auto task = app->task("double", twice);
  const auto handle = task.submit(1);
  const std::string said = said_in_child([&] {
    const std::string by_app = said_by([&] { app->submit("double", 1); });
    const std::string by_handle = said_by([&] { handle.result(); });
    const std::string by_work = said_by([&] { app->work(); });
    app.reset();  // ends, although its threads are in the parent
    return by_app == by_handle && by_app == by_work ? by_app : by_app + by_handle + by_work;
  });
  EXPECT_EQ(said,
            "this process was forked from the one that opened the app, and has none of its threads: call hapax::open() "
            "in the child, after the fork");
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
int deep(int n) {
  volatile char frame[1024] = {};
  return n == 0 ? frame[0] : deep(n - 1) + frame[1];
}

TEST(MisuseDeathTest, AStackOverflowOfAWorkflowIsSaid) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        TestApp app;
        auto recurse = app.workflow("recurse", [](Context&, int n) { return deep(n); });
        app.run_until_closed(recurse.start("w-1", 100'000));
      },
      "hapax: the code of workflow 'recurse' has overflown its stack of [0-9]+ bytes: give it more with "
      "WorkflowOptions::stack_bytes");
}

TEST(Misuse, AWorkflowGetsTheStackThatItSays) {
  TestApp app;
  auto recurse =
      app.workflow("recurse", [](Context&, int n) { return deep(n); }, {.stack_bytes = std::size_t{64} << 20});
  const auto run = recurse.start("w-1", 20'000);
  app.run_until_closed(run);
  EXPECT_EQ(run.result(), 0);
}
#endif

}  // namespace
}  // namespace hapax
