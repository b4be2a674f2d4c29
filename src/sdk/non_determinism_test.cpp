// Code that does not match the history of its workflow, and what is said about it.
#include "sdk/replayed.h"

namespace hapax::detail {
namespace {

using namespace std::chrono_literals;

// What the history has of one code, told to another.
std::string found_by(WorkflowFunction code, WorkflowFunction changed) {
  Replay replay(std::move(code));
  replay.committed();
  replay.completes(1, "1");
  replay.committed();
  replay.change_code(std::move(changed));
  const TurnRequest turn = replay.turn();
  EXPECT_TRUE(turn.commands.empty());
  return stuck_of(turn);
}

const WorkflowFunction kTwoTasks = workflow_of([](Context& ctx) {
  ctx.run("a");
  ctx.run("b");
});

TEST(NonDeterminism, AnotherTask) {
  EXPECT_EQ(found_by(kTwoTasks, workflow_of([](Context& ctx) { ctx.run("x"); })),
            "NonDeterminism: step 1: expected task 'a', found task 'x'");
}

TEST(NonDeterminism, AnotherKindOfCommand) {
  EXPECT_EQ(found_by(kTwoTasks, workflow_of([](Context& ctx) {
                       ctx.run("a");
                       ctx.sleep(1s);
                     })),
            "NonDeterminism: step 2: expected task 'b', found sleep");
}

TEST(NonDeterminism, AnotherSignal) {
  EXPECT_EQ(found_by(workflow_of([](Context& ctx) {
                       ctx.run("a");
                       ctx.wait_signal("go");
                     }),
                     workflow_of([](Context& ctx) {
                       ctx.run("a");
                       ctx.wait_signal("went");
                     })),
            "NonDeterminism: step 2: expected wait_signal 'go', found wait_signal 'went'");
}

TEST(NonDeterminism, AnotherChild) {
  EXPECT_EQ(found_by(workflow_of([](Context& ctx) { ctx.run_workflow("c", 1, key("one")); }),
                     workflow_of([](Context& ctx) { ctx.run_workflow("c", 1, key("two")); })),
            "NonDeterminism: step 1: expected child 'c' as 'one', found child 'c' as 'two'");
}

TEST(NonDeterminism, ASideEffectInsteadOfATask) {
  EXPECT_EQ(found_by(kTwoTasks, workflow_of([](Context& ctx) { ctx.now(); })),
            "NonDeterminism: step 1: expected task 'a', found side_effect 'now'");
}

TEST(NonDeterminism, AVersionThatIsNoLongerAskedFor) {
  EXPECT_EQ(found_by(workflow_of([](Context& ctx) {
                       ctx.version("change");
                       ctx.run("a");
                     }),
                     workflow_of([](Context& ctx) { ctx.run("a"); })),
            "NonDeterminism: step 1: expected version 'change', found task 'a'");
}

TEST(NonDeterminism, AnEarlyEnd) {
  EXPECT_EQ(found_by(kTwoTasks, workflow_of([](Context& ctx) { ctx.run("a"); })),
            "NonDeterminism: step 2: expected task 'b', found the end of the workflow");
}

TEST(NonDeterminism, AnEarlyException) {
  EXPECT_EQ(found_by(kTwoTasks, workflow_of([](Context&) { throw std::runtime_error("boom"); })),
            "NonDeterminism: step 1: expected task 'a', found an exception (std::runtime_error: boom)");
}

TEST(NonDeterminism, AnEarlyContinueAsNew) {
  EXPECT_EQ(found_by(kTwoTasks, workflow_of([](Context& ctx) { ctx.continue_as_new(1); })),
            "NonDeterminism: step 1: expected task 'a', found continue_as_new");
}

TEST(NonDeterminism, AWaitThatWasNotThere) {
  EXPECT_EQ(found_by(workflow_of([](Context& ctx) {
                       const auto a = ctx.start("a");
                       ctx.start("b");
                       a.get();
                       ctx.run("c");
                     }),
                     workflow_of([](Context& ctx) {
                       const auto a = ctx.start("a"), b = ctx.start("b");
                       ctx.all(a, b);
                       ctx.run("c");
                     })),
            "NonDeterminism: step 3: expected task 'c', found a wait for step 2");
}

TEST(NonDeterminism, IsNotCaughtByTheCode) {
  EXPECT_EQ(found_by(kTwoTasks, workflow_of([](Context& ctx) {
                       try {
                         ctx.run("x");
                       } catch (...) {
                         ctx.run("y");
                       }
                     })),
            "NonDeterminism: step 1: expected task 'a', found task 'x'");
}

}  // namespace
}  // namespace hapax::detail
