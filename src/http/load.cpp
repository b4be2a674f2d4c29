#include "http/load.h"

namespace hapax::http {

namespace {

bool add_within(std::atomic<std::size_t>& total, std::size_t more, std::size_t most) {
  if (total.fetch_add(more, std::memory_order_relaxed) + more <= most) return true;
  total.fetch_sub(more, std::memory_order_relaxed);
  return false;
}

}  // namespace

bool Load::Share::take_request() {
  if (!add_within(load_->requests_, 1, load_->max_requests_)) return false;
  is_request_.store(true, std::memory_order_relaxed);
  return true;
}

bool Load::Share::take_bytes(std::size_t total) {
  const std::size_t held = bytes_.load(std::memory_order_relaxed);
  if (total <= held) return true;
  if (!add_within(load_->bytes_, total - held, load_->max_bytes_)) return false;
  bytes_.store(total, std::memory_order_relaxed);
  return true;
}

void Load::Share::release() {
  if (is_request_.exchange(false, std::memory_order_relaxed)) load_->requests_.fetch_sub(1, std::memory_order_relaxed);
  const std::size_t held = bytes_.exchange(0, std::memory_order_relaxed);
  if (held > 0) load_->bytes_.fetch_sub(held, std::memory_order_relaxed);
}

}  // namespace hapax::http
