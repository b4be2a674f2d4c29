// What workers tell of: lines of the log, and the program's observers.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "hapax/observe.h"

namespace hapax::detail {

class Telling {
 public:
  using Log = std::function<void(std::string_view line)>;

  // Without a log: to standard error.
  explicit Telling(Log log = {}) : log_(std::move(log)) {}

  void add(Observer observer);
  // Nobody wants to know of attempts that completed.
  bool is_unobserved() const;

  void tell(const AttemptCompleted& attempt) const;
  void tell(const AttemptFailed& attempt) const;
  void tell(const LeaseLost& lease) const;
  void tell(const WorkflowStuck& workflow) const;
  void tell(const ServerAway& away) const;
  void tell(const ServerBack& back) const;
  void tell(const UnknownType& unknown) const;
  void line(const std::string& text) const;  // of the log alone

 private:
  template <class Event>
  void tell(std::function<void(const Event&)> Observer::* of, const Event& event) const;

  const Log log_;
  mutable std::mutex mutex_;
  std::vector<Observer> observers_;
};

}  // namespace hapax::detail
