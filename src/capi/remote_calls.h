// Calls that a server answers, over the client's connections.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "capi/calls.h"
#include "capi/pending_calls.h"
#include "client/http_client.h"

namespace hapax::capi {

class RemoteCalls final : public Calls {
 public:
  // Calls without the headers Authorization and Hapax-Namespace get these.
  RemoteCalls(std::string url, std::string token, std::string name_space);
  ~RemoteCalls() override { stop(); }

  void start(std::uint64_t token, Message message, Answered answered) override;
  void cancel(std::uint64_t token) override;
  void stop() override;
  void wait_until_answered() override { pending_.wait_until_empty(); }

 private:
  struct Call;

  HttpRequest request_of(Message message) const;
  void send(const std::shared_ptr<Call>& call);
  void ended(const std::shared_ptr<Call>& call, HttpClient::Outcome outcome);
  void cancel(const std::shared_ptr<Call>& call);
  std::shared_ptr<Call> next_in_line();

  const std::string token_, name_space_;
  PendingCalls<Call> pending_;
  std::mutex mutex_;
  std::size_t sent_ = 0;                       // without the long polls
  std::deque<std::shared_ptr<Call>> in_line_;  // to be sent
  bool is_stopped_ = false;
  HttpClient http_;  // ends first
};

}  // namespace hapax::capi
