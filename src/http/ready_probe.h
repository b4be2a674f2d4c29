// Answers /ready on its own thread, so that neither slow reads nor a hanging store delay it.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "http/message.h"

namespace hapax::http {

class ReadyProbe {
 public:
  explicit ReadyProbe(Engine& engine);
  ~ReadyProbe() { stop(); }

  // Answers with `ready`, or with what the engine's check throws, or after some seconds that the store does not answer.
  // One check answers all requests that arrive while the previous one runs.
  void ask(const Responder& responder, Response ready);

  // Ends the thread after the current check. Idempotent.
  void stop();

 private:
  using Question = std::pair<Responder, Response>;

  void run();
  void answer(std::vector<Question> questions);

  Engine& engine_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Question> questions_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace hapax::http
