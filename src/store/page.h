// What one answer carries: lists, claims and histories are bounded in bytes where they are read, so that no answer
// needs more memory than that, however large the stored payloads are.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/checksum.h"
#include "core/execution.h"
#include "core/workflow.h"

namespace hapax {

// An answer carries about this much of inputs, results, errors and event values. One item alone may be larger.
constexpr std::int64_t kPageBytes = std::int64_t{8} << 20;

// Fills one answer up to kPageBytes. Its first item always fits.
class PageBudget {
 public:
  // False: the item belongs to the next answer.
  bool take(std::int64_t bytes) {
    if (used_ > 0 && used_ + bytes > kPageBytes) return false;
    add(bytes);
    return true;
  }
  void add(std::int64_t bytes) { used_ += std::max<std::int64_t>(bytes, 1); }

 private:
  std::int64_t used_ = 0;
};

// False: the event belongs to the next answer. The first of `events` always fits, so that every answer gets its reader
// on.
inline bool add_event(std::vector<Event>& events, Event event, PageBudget& budget) {
  if (events.empty()) {
    budget.add(event.payload_bytes());
  } else if (!budget.take(event.payload_bytes())) {
    return false;
  }
  events.push_back(std::move(event));
  return true;
}

inline bool any_damaged(const std::vector<Event>& events) {
  return std::any_of(events.begin(), events.end(), [](const Event& event) { return event.damaged; });
}

// A stored execution that cannot be read: a checksum does not match, or its bytes make no sense.
struct Damaged {
  ExecutionId id;
  std::string what;

  bool operator==(const Damaged&) const = default;
};

// The executions of one page, newest first.
struct Page : std::vector<Execution> {
  std::vector<Damaged> damaged;     // those of this page that cannot be read
  std::optional<ExecutionId> next;  // there is more: the `before` of the next page
};

// Fills a page, newest first, up to its limit and to kPageBytes.
class PageFiller {
 public:
  explicit PageFiller(std::int32_t limit) : room_(limit) {}

  // False: the page is full, and this one is the first of the next page.
  bool add(Execution execution) {
    if (execution.damaged) return add(Damaged{execution.id, describe_damage(execution.id)});
    if (!has_room(execution.payload_bytes())) return false;
    last_ = execution.id;
    page_.push_back(std::move(execution));
    return true;
  }
  bool add(Damaged damaged) {
    if (!has_room(std::ssize(damaged.what))) return false;
    last_ = damaged.id;
    page_.damaged.push_back(std::move(damaged));
    return true;
  }

  Page take() { return std::move(page_); }

 private:
  bool has_room(std::int64_t bytes) {
    if (room_ > 0 && budget_.take(bytes)) return --room_, true;
    page_.next = last_;
    return false;
  }

  std::int32_t room_;
  PageBudget budget_;
  std::optional<ExecutionId> last_;
  Page page_;
};

}  // namespace hapax
