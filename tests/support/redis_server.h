// The test's own real redis-server: on a socket in its own directory, without persistence, ended with the test.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "store/cache/redis_url.h"
#include "support/temp_dir.h"

namespace hapax {

class RedisServer {
 public:
  explicit RedisServer(std::vector<std::string> arguments = {});  // more arguments of redis-server
  ~RedisServer();
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;

  RedisAddress address() const;

  bool running() const { return pid_ >= 0; }
  void start();  // returns once it answers
  void kill();   // at once, losing everything
  void pause();  // it keeps its connections and answers nothing
  void resume();

  // The first line of the answer, as the protocol has it: "+OK".
  std::string command(const std::vector<std::string>& words) const;
  void flush() const { command({"FLUSHALL"}); }

 private:
  TempDir dir_ = TempDir::in_memory_if_possible();
  std::vector<std::string> arguments_;
  pid_t pid_ = -1;
};

}  // namespace hapax
