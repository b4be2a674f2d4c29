// The bounds on what the server has in hand at a time: connections, requests being handled, and the bytes of their
// bodies. Safe to use from any thread.
#pragma once

#include <atomic>
#include <cstddef>

namespace hapax::http {

class Load {
 public:
  Load(std::size_t max_requests, std::size_t max_bytes) : max_requests_(max_requests), max_bytes_(max_bytes) {}

  // One request's share of the load. release() or the destructor gives it back.
  class Share {
   public:
    explicit Share(Load& load) : load_(&load) {}
    Share(Share&& other) noexcept
        : load_(other.load_), bytes_(other.bytes_.exchange(0)), is_request_(other.is_request_.exchange(false)) {}
    Share& operator=(Share&&) = delete;
    ~Share() { release(); }

    // False if that would be too much; then nothing is taken.
    bool take_request();
    bool take_bytes(std::size_t total);  // the total, of which it may have some already

    void release();

   private:
    Load* load_;
    std::atomic<std::size_t> bytes_ = 0;
    std::atomic<bool> is_request_ = false;
  };

  // Returns the count including this one.
  std::size_t add_connection() { return connections_.fetch_add(1, std::memory_order_relaxed) + 1; }
  void remove_connection() { connections_.fetch_sub(1, std::memory_order_relaxed); }

  std::size_t connections() const { return connections_.load(std::memory_order_relaxed); }
  std::size_t requests() const { return requests_.load(std::memory_order_relaxed); }
  std::size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  const std::size_t max_requests_, max_bytes_;
  std::atomic<std::size_t> connections_ = 0, requests_ = 0, bytes_ = 0;
};

}  // namespace hapax::http
