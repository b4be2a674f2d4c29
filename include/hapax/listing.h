// Seen from the program: tasks, workflows and the steps of one, as app.tasks(), app.workflows() and handle.steps() show
// them.
//
//   for (const hapax::TaskInfo& task : app.tasks({.queue = "payments", .status = hapax::Status::failed})) …
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hapax/detail/durations.h"
#include "hapax/detail/std_function.h"

namespace hapax {

// hapax::Status, after including hapax/hapax.h.
namespace api {

enum class Status : std::uint8_t {
  pending = 0,
  running = 1,
  suspended = 2,  // a workflow that waits
  completed = 3,
  failed = 4,
  cancelled = 5,
  timed_out = 6
};

}  // namespace api

// The word that the HTTP API has for it.
constexpr std::string_view word(api::Status status) {
  switch (status) {
    case api::Status::pending: return "pending";
    case api::Status::running: return "running";
    case api::Status::suspended: return "suspended";
    case api::Status::completed: return "completed";
    case api::Status::failed: return "failed";
    case api::Status::cancelled: return "cancelled";
    case api::Status::timed_out: return "timed_out";
  }
  return "";
}

struct TaskInfo {
  std::string id, type, queue;
  api::Status status = api::Status::pending;
  std::optional<std::string> key;
  std::int32_t attempt = 0;  // started so far
  std::string last_error;    // "type: message"; empty: there was none
  std::string workflow_id;   // that it is a step of; empty: of none
  std::chrono::system_clock::time_point created_at, run_at;
  std::optional<std::chrono::system_clock::time_point> finished_at;
};

struct WorkflowInfo {
  std::string workflow_id, run_id, type, queue;
  api::Status status = api::Status::pending;
  std::string last_error;
  std::chrono::system_clock::time_point created_at;
  std::optional<std::chrono::system_clock::time_point> finished_at;
};

// What a workflow's code has asked for, in its order.
struct Step {
  std::int32_t number = 0;  // from 1
  std::string kind;         // "task", "child", "sleep", "wait_signal", …, as in the history
  std::string name;         // of the task's or child's type, of the signal, …
  std::string status;       // "open", "completed", "failed", "cancelled", "timed_out"
  std::string last_error;
};

// What is absent does not matter.
struct TaskFilter {
  std::optional<std::string> queue = {}, type = {}, key = {};
  std::optional<api::Status> status = {};
};
struct WorkflowFilter {
  std::optional<std::string> queue = {}, type = {};
  std::optional<api::Status> status = {};
};

// Newest first. Reads the next page when it comes to it, so that it may be as long as it likes. To be walked once; each
// page is as of when it is read. Valid as long as its App.
template <class Info>
class Listing {
 public:
  using NextPage = std::function<std::vector<Info>()>;  // an empty one is the end
  explicit Listing(NextPage next) : next_(std::move(next)) {}

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Info;
    using difference_type = std::ptrdiff_t;
    using pointer = const Info*;
    using reference = const Info&;

    const Info& operator*() const { return listing_->page_[listing_->at_]; }
    const Info* operator->() const { return &**this; }
    Iterator& operator++() {
      if (++listing_->at_ == listing_->page_.size()) listing_->read();
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return listing_->page_.empty(); }

   private:
    friend class Listing;
    explicit Iterator(Listing& listing) : listing_(&listing) {}

    Listing* listing_;
  };

  Iterator begin() {
    read();
    return Iterator(*this);
  }
  std::default_sentinel_t end() const { return {}; }

 private:
  void read() {
    page_ = next_();
    at_ = 0;
  }

  NextPage next_;
  std::vector<Info> page_;
  std::size_t at_ = 0;
};

}  // namespace hapax
