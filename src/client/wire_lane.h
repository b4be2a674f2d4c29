// Group commit over the wire: what arrives while the last requests are under way goes out together, as one request for
// many. No caller waits for an answer: it comes on one of the lane's threads. What waits is bounded in items, bytes and
// time, so that a server that hangs costs neither memory nor patience without end.
#pragma once

#include <exception>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "client/remote_server.h"
#include "core/failure.h"
#include "engine/lane.h"

namespace hapax {

// An item, and what is sent of it.
template <class Item>
struct Written {
  Item item;
  std::string text;
};

template <class Item, class Outcome>
class WireLane {
 public:
  struct Verb {
    std::function<std::string(const Item&)> write;
    // One request for these items: an outcome for each, or throws.
    std::function<std::vector<Outcome>(std::span<const Written<Item>> items)> send;
    // Whether both may be in one request.
    std::function<bool(const Item&, const Item&)> go_together = [](const Item&, const Item&) { return true; };
  };

  WireLane(Verb verb, std::size_t requests_at_once, LaneLimits limits = {})
      : verb_(std::move(verb)),
        lane_([this](auto items) { return send(items); }, kMaxItems, false, requests_at_once, kWorthARequest, limits) {}

  void put(std::vector<Item> items, Reply<std::vector<Outcome>> reply) {
    if (items.empty()) return reply(std::vector<Outcome>());
    std::vector<Written<Item>> written;
    written.reserve(items.size());
    std::size_t bytes = 0;
    try {
      for (Item& item : items) {
        std::string text = verb_.write(item);
        bytes += kItemBytes + text.size();
        written.push_back({std::move(item), std::move(text)});
      }
    } catch (...) {
      return reply(std::current_exception());
    }
    const auto answered = [reply = std::move(reply)](Answer<std::vector<Tried>> answers) {
      answer(reply, [&] {
        std::vector<Outcome> outcomes;
        for (Tried& tried : std::move(answers).get()) {
          if (const auto* failure = std::get_if<std::exception_ptr>(&tried)) std::rethrow_exception(*failure);
          outcomes.push_back(std::get<Outcome>(std::move(tried)));
        }
        return outcomes;
      });
    };
    lane_.put(std::move(written), answered, bytes);
  }

 private:
  static constexpr std::size_t kMaxItems = 1000;        // the server's limit
  static constexpr std::size_t kMaxBytes = 512 * 1024;  // of a request with more than one item
  static constexpr std::size_t kWorthARequest = 8;      // items, for a further one beside those under way
  static constexpr std::size_t kItemBytes = 512;        // of memory, besides its text

  using Items = std::span<const Written<Item>>;
  using Tried = std::variant<Outcome, std::exception_ptr>;

  std::vector<Tried> send(Items items) {
    std::vector<Tried> tried;
    tried.reserve(items.size());
    for (std::size_t first = 0; first < items.size();) {
      std::size_t end = first + 1;
      for (std::size_t bytes = items[first].text.size(); end < items.size() && end - first < kMaxItems; ++end) {
        bytes += items[end].text.size();
        if (bytes > kMaxBytes || !verb_.go_together(items[first].item, items[end].item)) break;
      }
      send_part(items.subspan(first, end - first), tried);
      first = end;
    }
    lane_.expire();  // if this took long, what waits may be late
    return tried;
  }

  // One that the server refuses must not take the others with it: they are sent again, each alone.
  void send_part(Items items, std::vector<Tried>& tried) {
    try {
      std::vector<Outcome> outcomes = verb_.send(items);
      require_count(outcomes.size(), items.size());
      for (Outcome& outcome : outcomes) tried.emplace_back(std::move(outcome));
      return;
    } catch (const Failure& failure) {
      if (items.size() == 1 || !is_about_content(failure)) {
        tried.insert(tried.end(), items.size(), std::current_exception());
        return;
      }
    }
    for (std::size_t i = 0; i < items.size(); ++i) send_part(items.subspan(i, 1), tried);
  }

  const Verb verb_;
  Lane<Written<Item>, Tried> lane_;  // ends first
};

}  // namespace hapax
