// Claims at a server. Each has an id under which it is said again: by the next claim, if its answer was lost; and
// without waiting when it is cancelled, as the server may have been handing something out at that moment. So nothing is
// leased to a worker that does not know of it.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "client/remote_server.h"
#include "engine/engine.h"

namespace hapax {

class RemoteClaims {
 public:
  using Read = std::function<std::vector<Claimed>(const Exchanged& answer)>;

  RemoteClaims(RemoteServer& server, Read read) : server_(server), read_(std::move(read)) {}

  // `timeout` is of an exchange that does not wait.
  std::shared_ptr<Waiting> start(ClaimCall call, Duration timeout, Reply<std::vector<Claimed>> reply);

 private:
  class Claim;
  struct Unanswered {
    std::string worker, claim_id;
    std::chrono::steady_clock::time_point until;  // its leases have ended by then
  };

  void keep_unanswered(const ClaimCall& call);
  std::optional<std::string> take_unanswered(const std::string& worker);

  RemoteServer& server_;
  const Read read_;
  IdGenerator ids_;
  std::mutex mutex_;
  std::deque<Unanswered> unanswered_;
};

}  // namespace hapax
