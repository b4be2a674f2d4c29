// One request that is being handled: its way back to the connection, and its share of the server's load.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "http/connection.h"
#include "http/loop.h"

namespace hapax::http {

class Call final : public Exchange {
 public:
  Call(std::shared_ptr<Connection> connection, std::uint64_t ticket, Load::Share share)
      : connection_(std::move(connection)), ticket_(ticket), share_(std::move(share)) {}

  // Counts the request among those in hand. False: there are too many.
  bool take_request() { return share_.take_request(); }

  void answer(std::function<Response()> make) override {
    share_.release();
    connection_->loop().answer(connection_, ticket_, std::move(make));
  }

  void wait(std::shared_ptr<Waiting> waiting) override {
    share_.release();
    connection_->loop().run([connection = connection_, ticket = ticket_, waiting = std::move(waiting)]() mutable {
      connection->wait(ticket, std::move(waiting));
    });
  }

  bool take_bytes(std::size_t total) override { return share_.take_bytes(total); }

  void limit(std::chrono::milliseconds time, std::function<Response()> otherwise) override {
    connection_->loop().run(
        [connection = connection_, ticket = ticket_, time, otherwise = std::move(otherwise)]() mutable {
          connection->limit(ticket, time, std::move(otherwise));
        });
  }

 private:
  const std::shared_ptr<Connection> connection_;
  const std::uint64_t ticket_;
  Load::Share share_;
};

}  // namespace hapax::http
