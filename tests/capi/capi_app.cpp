#include "capi/capi_app.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <stdexcept>

namespace hapax::capi_testing {

namespace {

constexpr int kPatienceMs = 60'000;

}  // namespace

std::string Answer::text(const std::string& pointer) const {
  const Json document = json();
  const Json* found = document.at(pointer);
  return found ? found->text : std::string();
}

Answer take(hapax_completion& completion) {
  Answer answer{completion.token,
                completion.kind,
                completion.status,
                {completion.headers, completion.headers_size},
                {completion.body, completion.body_size},
                completion.worker};
  hapax_release(&completion, 1);
  return answer;
}

bool is_readable(int descriptor, int timeout_ms) {
  pollfd polled{descriptor, POLLIN, 0};
  return poll(&polled, 1, timeout_ms) == 1;
}

CapiApp::CapiApp(const std::string& url, const char* options) {
  char* error = nullptr;
  app_ = hapax_open(url.c_str(), options, &error);
  if (app_ == nullptr) throw std::runtime_error(error);
  queue_ = hapax_queue_new(app_);
}

CapiApp::~CapiApp() {
  hapax_close(app_);
  hapax_queue_free(queue_);
}

void CapiApp::call(std::uint64_t token, const std::string& method, const std::string& target, const std::string& body,
                   const char* headers) {
  hapax_call(app_, queue_, token, method.c_str(), target.c_str(), headers, body.data(), body.size());
}

Answer CapiApp::call_wait(const std::string& method, const std::string& target, const std::string& body,
                          const char* headers, std::int64_t timeout_ms) {
  hapax_completion completion;
  const int status =
      hapax_call_wait(app_, method.c_str(), target.c_str(), headers, body.data(), body.size(), timeout_ms, &completion);
  EXPECT_EQ(status, completion.status);
  return take(completion);
}

Answer CapiApp::next() {
  if (!is_readable(hapax_queue_fd(queue_), kPatienceMs)) throw std::runtime_error("no completion arrives");
  hapax_completion completion;
  if (hapax_queue_drain(queue_, &completion, 1) != 1)
    throw std::runtime_error("the descriptor was readable for nothing");
  return take(completion);
}

std::vector<Answer> CapiApp::drain() {
  std::vector<Answer> answers;
  std::array<hapax_completion, 16> some;
  while (const std::size_t count = hapax_queue_drain(queue_, some.data(), some.size())) {
    for (std::size_t i = 0; i < count; ++i) answers.push_back(take(some.at(i)));
  }
  return answers;
}

}  // namespace hapax::capi_testing
