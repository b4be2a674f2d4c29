#include "capi/completion_queue.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

#include "core/json_writer.h"

namespace hapax::capi {

namespace {

constexpr std::string_view kPlainHeaders = R"({"Content-Type":"application/json"})";

// What a completion points into.
struct Memory {
  std::string headers, body;
};

std::string write_headers(const http::Response& response) {
  JsonWriter out;
  out.begin_object();
  if (response.status != http::kNoContent && !response.content_type.empty())
    out.key("Content-Type").string(response.content_type);
  for (const auto& [name, value] : response.headers) out.key(name).string(value);
  out.end_object();
  return out.take();
}

int new_descriptor() {
  const int descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (descriptor < 0) throw std::system_error(errno, std::generic_category(), "cannot make an eventfd");
  return descriptor;
}

http::Response queue_full() {
  return no_answer("QueueFull",
                   "The queue has as many calls as max_calls allows whose answers were not drained; nothing was done.",
                   true);
}

}  // namespace

http::Response no_answer(std::string_view error, std::string_view message, bool safe_to_retry) {
  JsonWriter out;
  out.begin_object().key("error").string(error).key("message").string(message);
  out.key("safe_to_retry").boolean(safe_to_retry).end_object();
  return http::json_response(0, out.take());
}

void hand_over(const Completion& completion, hapax_completion& out) {
  http::Response response = completion.make();
  auto memory = std::make_unique<Memory>();
  const bool is_plain = response.headers.empty() && response.content_type == http::kJsonType && response.status != 204;
  if (!is_plain) memory->headers = write_headers(response);
  memory->body = std::move(response.body);
  out.token = completion.token;
  out.kind = completion.kind;
  out.status = response.status;
  out.headers = is_plain ? kPlainHeaders.data() : memory->headers.c_str();
  out.headers_size = is_plain ? kPlainHeaders.size() : memory->headers.size();
  out.body = memory->body.c_str();
  out.body_size = memory->body.size();
  out.worker = completion.worker;
  out.memory = memory.release();
}

void release(hapax_completion& completion) {
  const std::unique_ptr<Memory> memory(static_cast<Memory*>(std::exchange(completion.memory, nullptr)));
  completion.headers = completion.body = "";
  completion.headers_size = completion.body_size = 0;
}

CompletionQueue::CompletionQueue(std::size_t max_calls) : descriptor_(new_descriptor()), max_calls_(max_calls) {}

CompletionQueue::~CompletionQueue() { ::close(descriptor_); }

bool CompletionQueue::begin_call() {
  const std::lock_guard lock(mutex_);
  if (calls_ >= max_calls_) return false;
  ++calls_;
  return true;
}

void CompletionQueue::refuse(std::uint64_t token) {
  const std::lock_guard lock(mutex_);
  if (has_ended_) return;
  refused_.push_back(token);
  signal();
}

void CompletionQueue::answer(Completion completion) { put({std::move(completion), true}); }

void CompletionQueue::tell(Completion completion) { put({std::move(completion), false}); }

void CompletionQueue::put(Waiting waiting) {
  const std::lock_guard lock(mutex_);
  if (has_ended_) return;
  waiting_.push_back(std::move(waiting));
  signal();
}

std::size_t CompletionQueue::drain(hapax_completion* out, std::size_t max) {
  std::vector<Waiting> taken;
  std::vector<std::uint64_t> refused;
  {
    const std::lock_guard lock(mutex_);
    const std::size_t some = std::min(max, waiting_.size());
    taken.reserve(some);
    std::move(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(some), std::back_inserter(taken));
    waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(some));
    calls_ -= static_cast<std::size_t>(
        std::count_if(taken.begin(), taken.end(), [](const Waiting& waiting) { return waiting.is_call; }));
    const auto more = static_cast<std::ptrdiff_t>(std::min(max - some, refused_.size()));
    refused.assign(refused_.begin(), refused_.begin() + more);
    refused_.erase(refused_.begin(), refused_.begin() + more);
    if (waiting_.empty() && refused_.empty()) unsignal();
  }
  std::size_t count = 0;
  for (const Waiting& waiting : taken) hand_over(waiting.completion, out[count++]);
  for (const std::uint64_t token : refused) hand_over({.token = token, .make = queue_full}, out[count++]);
  return count;
}

void CompletionQueue::settle() {
  const std::lock_guard lock(mutex_);
  for (auto& [completion, is_call] : waiting_) {
    completion.make = [response = completion.make()] { return response; };
    completion.maker.reset();
  }
}

void CompletionQueue::end() {
  std::deque<Waiting> dropped;
  const std::lock_guard lock(mutex_);
  has_ended_ = true;
  dropped.swap(waiting_);
  refused_.clear();
}

void CompletionQueue::signal() {
  if (is_signalled_) return;
  is_signalled_ = true;
  const std::uint64_t one = 1;
  static_cast<void>(!::write(descriptor_, &one, sizeof one));
}

void CompletionQueue::unsignal() {
  if (!is_signalled_) return;
  is_signalled_ = false;
  std::uint64_t count = 0;
  static_cast<void>(!::read(descriptor_, &count, sizeof count));
}

}  // namespace hapax::capi
