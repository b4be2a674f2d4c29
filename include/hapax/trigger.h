// What starts by itself: schedules and events, declared in code.
//
//   app.schedule("nightly", report, ReportInput{"pdf"},
//                hapax::cron("0 3 * * *", "Europe/Berlin").misfire(hapax::Misfire::compress));
//   app.on_event<Paid>("order.paid").where("/country", "DE").start(process_paid);
//   app.on_event<Dispute>("payment.disputed")
//       .signal([](const auto& e) { return "order-" + e.data.order; }, disputed);
//   app.publish({.id = "evt_1", .source = "/shop", .type = "order.paid", .data = hapax::to_json(paid)});
//
// They are activities of the store or server, as `hapax activities list` shows them, under the name given here, and
// stay until they are removed there. Declared again, they take the new definition. One of that name in hapax.toml wins.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "hapax/detail/durations.h"
#include "hapax/detail/pointers.h"
#include "hapax/json.h"
#include "hapax/options.h"
#include "hapax/signal.h"
#include "hapax/task.h"
#include "hapax/workflow.h"
#include "hapax/workflow_handle.h"

namespace hapax {

// What becomes of firings that were missed: they are dropped, run one by one, or run as one.
enum class Misfire : std::uint8_t { skip, catchup, compress };
// What becomes of a firing while the last one's run is still open.
enum class WhileOpen : std::uint8_t { allow, skip, buffer_one };

// A schedule: five fields, six with seconds first, or @daily and friends, in a time zone.
class CronSchedule {
 public:
  CronSchedule(std::string expression, std::string time_zone)
      : expression_(std::move(expression)), time_zone_(std::move(time_zone)) {}

  CronSchedule& misfire(Misfire policy) { return set(misfire_, policy); }
  CronSchedule& misfire_grace(Milliseconds grace) { return set(grace_, grace); }  // 60 s
  CronSchedule& catchup_limit(std::int32_t most) { return set(catchup_limit_, most); }
  CronSchedule& while_open(WhileOpen policy) { return set(while_open_, policy); }
  CronSchedule& jitter(Milliseconds most) { return set(jitter_, most); }

 private:
  friend class App;
  template <class T>
  CronSchedule& set(std::optional<T>& member, T value) {
    member = value;
    return *this;
  }

  std::string expression_, time_zone_;
  std::optional<Misfire> misfire_;
  std::optional<Milliseconds> grace_, jitter_;
  std::optional<std::int32_t> catchup_limit_;
  std::optional<WhileOpen> while_open_;
};
inline CronSchedule cron(std::string expression, std::string time_zone = "UTC") {
  return {std::move(expression), std::move(time_zone)};
}

// An event as CloudEvents 1.0 has it: hapax::CloudEvent, after including hapax/hapax.h. The data is JSON text:
// hapax::to_json(value).
namespace api {

struct CloudEvent {
  std::string id = {};  // absent: it is given one, and can come twice
  std::string source = {};
  std::string type = {};
  std::optional<std::string> subject = {};
  std::string data = {};
};

}  // namespace api

// What App::publish() did: the workflows that the event started (or reached by a signal), those that it had started
// before, and those that another event of that id had.
struct Published {
  std::string id;
  std::vector<std::string> started, duplicates, conflicts;
};

// The input of a workflow that an event starts.
template <class Data>
struct EventOf {
  std::string id, source, type;
  std::optional<std::string> subject;
  Data data;
};

namespace detail {

// How the input of a run has the event that started it.
template <class Data>
inline constexpr bool is_event_of<EventOf<Data>> = true;

class TriggerOfEvents {
 public:
  TriggerOfEvents(std::weak_ptr<AppState> app, std::string type) : app_(std::move(app)), type_(std::move(type)) {}

  void where_equals(std::string pointer, std::string value_json);
  void where_prefix(std::string pointer, std::string prefix);
  void where_exists(std::string pointer);
  void from(std::string source) { source_ = std::move(source); }
  void named(std::string name) { name_ = std::move(name); }

  void start(const std::string& workflow, const char* verb) const;
  // Declares the workflow that sends the signal, and lets events start it.
  void signal(WorkflowFunction forward, const char* signal) const;

 private:
  std::string name_for(const std::string& verb, const std::string& what) const;

  std::weak_ptr<AppState> app_;
  std::string type_, source_, name_;
  std::string where_json_;
};

}  // namespace detail

// What is to happen with events of a type: see App::on_event(). The conditions are about the event's data, all of them
// hold.
template <class Data>
class OnEvent {
 public:
  // At a JSON Pointer into the data: this value; a string that begins with this; anything.
  template <class Value>
  OnEvent& where(std::string pointer, const Value& value) {
    trigger_.where_equals(std::move(pointer), to_json(value));
    return *this;
  }
  OnEvent& where_prefix(std::string pointer, std::string prefix) {
    trigger_.where_prefix(std::move(pointer), std::move(prefix));
    return *this;
  }
  OnEvent& where_exists(std::string pointer) {
    trigger_.where_exists(std::move(pointer));
    return *this;
  }
  OnEvent& from(std::string source) {
    trigger_.from(std::move(source));
    return *this;
  }
  // The name of the activity. Absent: made from the event's type and what it does.
  OnEvent& named(std::string name) {
    trigger_.named(std::move(name));
    return *this;
  }

  // Starts this workflow, once for each event id. It takes the EventOf<Data>.
  template <class Input, class Result>
  void start(const Workflow<Input, Result>& workflow) {
    static_assert(std::is_same_v<Input, EventOf<Data>>,
                  "hapax: a workflow that an event starts takes a hapax::EventOf<Data>, whose member data it is");
    trigger_.start(workflow.name(), "start");
  }

  // Sends this signal with the event's data, once for each event id, to the workflow whose id the function makes from
  // the EventOf<Data>. A small workflow of this program does that: it runs where a worker of this program does.
  template <class Target>
  void signal(Target target, const Signal<Data>& signal) {
    trigger_.signal(workflow_of([target = std::move(target), name = std::string(signal.name)](
                                    Context& ctx, const EventOf<Data>& event) {
                      ctx.signal(std::string(target(event)), name, event.data);
                    }),
                    signal.name);
  }

 private:
  friend class App;
  OnEvent(std::weak_ptr<detail::AppState> app, std::string type) : trigger_(std::move(app), std::move(type)) {}

  template <class F>
  static detail::WorkflowFunction workflow_of(F function) {
    return detail::workflow_of(std::move(function));
  }

  detail::TriggerOfEvents trigger_;
};

}  // namespace hapax
