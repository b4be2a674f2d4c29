// Handles: opening, wrong ones, closed ones, and those of a parent process.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "capi/capi_app.h"
#include "support/temp_dir.h"

namespace hapax::capi_testing {

namespace {

std::string error_of(const char* url, const char* options) {
  char* error = nullptr;
  EXPECT_EQ(hapax_open(url, options, &error), nullptr);
  return error == nullptr ? "" : error;
}

Answer health_of(hapax_app* app) {
  hapax_completion completion;
  hapax_call_wait(app, "GET", "/health", nullptr, nullptr, 0, -1, &completion);
  return take(completion);
}

// Runs in a forked child; true if it says so.
template <class Check>
bool is_true_in_child(Check check) {
  const pid_t child = fork();
  if (child == 0) _exit(check() ? 0 : 1);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(CapiHandle, TheVersionIsOne) { EXPECT_EQ(hapax_abi_version(), 1); }

TEST(CapiHandle, OpeningSaysWhatIsWrong) {
  EXPECT_NE(error_of(nullptr, nullptr).find("NULL"), std::string::npos);
  EXPECT_NE(error_of("mysql://x", nullptr).find("there is no store of the kind"), std::string::npos);
  EXPECT_NE(error_of("memory:", R"({"colour":"red"})").find(R"("pointer":"/colour")"), std::string::npos);
  EXPECT_NE(error_of("memory:", R"({"max_calls":0})").find("/max_calls"), std::string::npos);
  EXPECT_NE(error_of("memory:", R"({"namespace":""})").find("/namespace"), std::string::npos);
  EXPECT_NE(error_of("memory:", "[]").find("JSON object"), std::string::npos);
  EXPECT_NE(error_of("memory:", "{").find("InvalidRequest"), std::string::npos);
  const TempDir folder;
  const std::string url = "sqlite:" + folder.file("none.db");
  EXPECT_NE(error_of(url.c_str(), R"({"create":false})").find("InvalidRequest"), std::string::npos);
  EXPECT_EQ(hapax_open("mysql://x", nullptr, nullptr), nullptr);
}

TEST(CapiHandle, ANullHandleIsAnswered) {
  CapiApp app;
  hapax_call(nullptr, app.queue(), 1, "GET", "/health", nullptr, nullptr, 0);
  EXPECT_EQ(app.next().error(), "InvalidHandle");
  EXPECT_EQ(health_of(nullptr).error(), "InvalidHandle");
  hapax_call(app.get(), nullptr, 1, "GET", "/health", nullptr, nullptr, 0);
  hapax_close(nullptr);
  hapax_cancel(nullptr, 1);
  hapax_queue_free(nullptr);
  hapax_release(nullptr, 3);
  hapax_completion completion;
  EXPECT_EQ(hapax_queue_new(nullptr), nullptr);
  EXPECT_EQ(hapax_queue_fd(nullptr), -1);
  EXPECT_EQ(hapax_queue_drain(nullptr, &completion, 1), 0U);
  EXPECT_EQ(hapax_queue_drain(app.queue(), nullptr, 1), 0U);
}

TEST(CapiHandle, AHandleOfAnotherKindIsNone) {
  CapiApp app;
  auto* queue_as_app = reinterpret_cast<hapax_app*>(app.queue());
  auto* app_as_queue = reinterpret_cast<hapax_queue*>(app.get());
  EXPECT_EQ(health_of(queue_as_app).error(), "InvalidHandle");
  EXPECT_EQ(hapax_queue_fd(app_as_queue), -1);
  hapax_close(queue_as_app);
  hapax_queue_free(app_as_queue);
  int local = 0;
  EXPECT_NE(health_of(reinterpret_cast<hapax_app*>(&local)).error(), "");
  EXPECT_EQ(health_of(app.get()).status, 200);
}

TEST(CapiHandle, AClosedHandleIsAnsweredAndNeverUsedAgain) {
  hapax_app* first = hapax_open("memory:", nullptr, nullptr);
  hapax_queue* queue = hapax_queue_new(first);
  hapax_close(first);
  hapax_close(first);
  EXPECT_EQ(health_of(first).error(), "Closed");
  EXPECT_EQ(hapax_queue_new(first), nullptr);
  hapax_cancel(first, 1);
  hapax_call(first, queue, 5, "GET", "/health", nullptr, nullptr, 0);
  hapax_completion completion;
  ASSERT_EQ(hapax_queue_drain(queue, &completion, 1), 1U);
  EXPECT_EQ(take(completion).error(), "Closed");
  const CapiApp second;
  EXPECT_NE(second.get(), first);
  EXPECT_EQ(health_of(first).error(), "Closed");
  hapax_queue_free(queue);
  hapax_queue_free(queue);
  EXPECT_EQ(hapax_queue_fd(queue), -1);
}

TEST(CapiHandle, AnEndedQueueDropsItsAnswers) {
  CapiApp app;
  hapax_queue* queue = hapax_queue_new(app.get());
  const std::string claim = R"({"worker":"w","queues":["q"],"wait":"20s"})";
  hapax_call(app.get(), queue, 1, "POST", "/v1/claims", nullptr, claim.data(), claim.size());
  hapax_call(app.get(), queue, 2, "GET", "/health", nullptr, nullptr, 0);
  hapax_queue_free(queue);
  hapax_cancel(app.get(), 1);
  EXPECT_EQ(health_of(app.get()).status, 200);
}

TEST(CapiHandle, ReleasingTwiceDoesNothing) {
  CapiApp app;
  hapax_completion completion;
  hapax_call_wait(app.get(), "GET", "/health", nullptr, nullptr, 0, -1, &completion);
  hapax_release(&completion, 1);
  EXPECT_STREQ(completion.body, "");
  hapax_release(&completion, 1);
}

#ifndef __SANITIZE_THREAD__  // which does not follow a process of several threads over a fork
TEST(CapiHandle, AChildIsToldThatTheHandleIsItsParents) {
  const TempDir folder;
  const std::string url = "sqlite:" + folder.file("a.db");
  CapiApp app(url);
  EXPECT_TRUE(is_true_in_child([&] {
    if (health_of(app.get()).error() != "ForkError") return false;
    if (hapax_queue_fd(app.queue()) != -1 || hapax_queue_new(app.get()) != nullptr) return false;
    hapax_close(app.get());
    hapax_queue_free(app.queue());
    return true;
  }));
  EXPECT_TRUE(is_true_in_child([&] {  // it may open its own, but not with SQLite
    if (error_of(url.c_str(), nullptr).find("forked") == std::string::npos) return false;
    CapiApp own("memory:");
    return health_of(own.get()).status == 200 && health_of(app.get()).error() == "ForkError";
  }));
  EXPECT_EQ(app.call_wait("POST", "/v1/tasks", R"({"type":"t"})").status, 201);
}

TEST(CapiHandle, AChildMayOpenWhatItsParentHadClosed) {
  const TempDir folder;
  const std::string url = "sqlite:" + folder.file("a.db");
  { const CapiApp app(url); }
  EXPECT_TRUE(is_true_in_child([&] {
    CapiApp own(url);
    return own.call_wait("POST", "/v1/tasks", R"({"type":"t"})").status == 201;
  }));
}
#endif

}  // namespace

}  // namespace hapax::capi_testing
