// What the server has in hand at a time, and how much of it there may be: connections, requests that are being handled,
// and the bytes of their bodies. Safe to use from any thread.
#pragma once

#include <atomic>
#include <cstddef>

namespace hapax::http {

class Load {
 public:
  Load(std::size_t max_requests, std::size_t max_bytes) : max_requests_(max_requests), max_bytes_(max_bytes) {}

  // The part of the load that one request is. What it took is given back by release() or when it ends.
  class Share {
   public:
    explicit Share(Load& load) : load_(&load) {}
    Share(Share&& other) noexcept
        : load_(other.load_), bytes_(other.bytes_.exchange(0)), is_request_(other.is_request_.exchange(false)) {}
    Share& operator=(Share&&) = delete;
    ~Share() { release(); }

    // False where that would be too much; nothing is taken then.
    bool take_request();
    bool take_bytes(std::size_t total);  // so many in all, of which it may have some already

    void release();

   private:
    Load* load_;
    std::atomic<std::size_t> bytes_ = 0;
    std::atomic<bool> is_request_ = false;
  };

  // Returns how many there are with this one.
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
