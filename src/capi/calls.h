// How calls are answered: within this process, or by a server.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "capi/completion_queue.h"

namespace hapax::capi {

// A call as the program makes it.
struct Message {
  std::string method, target;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
};

// Throws InvalidField or InvalidJson for headers that are no JSON object of strings, or a target that is no path.
Message read_message(const char* method, const char* target, const char* headers_json, const char* body,
                     std::size_t size);

// Takes the answer of a call. Called once, on any thread; must not block.
using Answered = std::function<void(MakeAnswer)>;

// Safe to use from any thread.
class Calls {
 public:
  virtual ~Calls() = default;

  // Does not throw: what is wrong with the message is answered.
  virtual void start(std::uint64_t token, Message message, Answered answered) = 0;

  // Ends the waiting of the calls with this token.
  virtual void cancel(std::uint64_t token) = 0;

  // Ends all waiting, and refuses later calls.
  virtual void stop() = 0;

  // After stop(), and once the engine has stopped: until every call is answered.
  virtual void wait_until_answered() = 0;
};

}  // namespace hapax::capi
