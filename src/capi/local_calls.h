// Calls that are handled in this process: an http::Service without a network.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "capi/calls.h"
#include "capi/pending_calls.h"
#include "engine/timer.h"
#include "http/service.h"

namespace hapax::capi {

class LocalCalls final : public Calls {
 public:
  // The engine must outlive it. Calls without the header Hapax-Namespace are for `name_space`.
  LocalCalls(Engine& engine, std::string name_space);
  ~LocalCalls() override;

  void start(std::uint64_t token, Message message, Answered answered) override;
  void cancel(std::uint64_t token) override;
  void stop() override;
  void wait_until_answered() override { calls_.wait_until_empty(); }

 private:
  class Call;

  const std::string name_space_;
  http::Service service_;
  PendingCalls<Call> calls_;
  std::mutex mutex_;
  std::optional<Timer> timer_;  // from its first use on
};

}  // namespace hapax::capi
