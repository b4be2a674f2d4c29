// Activities for tests: keeps definitions, fires nothing, gives preset answers.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "core/field.h"
#include "engine/activities.h"
#include "engine/engine.h"

namespace hapax::http {

class FakeActivities : public Activities {
 public:
  // Set before the server starts.
  std::string of_file;                // this one cannot be changed
  std::vector<ActivityRun> recorded;  // the runs of every activity
  std::map<std::string, ActivityView> stored;
  std::vector<CloudEvent> delivered;  // read after the answer has arrived
  Backfill backfilled;                // the same
  std::string conflicting;            // an event with this id conflicts with another event

  std::optional<ActivityView> find(const std::string&, const std::string& id) override {
    std::lock_guard lock(mutex_);
    const auto found = stored.find(id);
    return found == stored.end() ? std::nullopt : std::optional(found->second);
  }

  ActivitiesPage list(const std::string&, const std::string& after, std::int32_t limit) override {
    std::lock_guard lock(mutex_);
    ActivitiesPage page;
    for (auto each = stored.upper_bound(after); each != stored.end(); ++each) {
      if (page.activities.size() == static_cast<std::size_t>(limit)) {
        page.next_cursor = page.activities.back().id;
        break;
      }
      page.activities.push_back(each->second);
    }
    return page;
  }

  ActivityView put(const std::string&, const std::string& id, const ActivitySettings& settings) override {
    check_file(id);
    std::lock_guard lock(mutex_);
    ActivityView& view = stored[id];
    view.id = id;
    view.settings = settings;
    return view;
  }

  bool remove(const std::string&, const std::string& id) override {
    check_file(id);
    std::lock_guard lock(mutex_);
    return stored.erase(id) > 0;
  }

  std::optional<ActivityView> set_paused(const std::string&, const std::string& id, bool paused) override {
    std::lock_guard lock(mutex_);
    const auto found = stored.find(id);
    if (found == stored.end()) return std::nullopt;
    found->second.paused = paused;
    return found->second;
  }

  std::optional<RunsPage> runs(const std::string&, const std::string& id, const std::string& cursor,
                               std::int32_t limit) override {
    if (!cursor.empty() && cursor != "next") throw InvalidField(InvalidField::Place::parameter, "cursor", "is none");
    if (!find("", id)) return std::nullopt;
    RunsPage page{recorded, std::nullopt};
    if (page.runs.size() > static_cast<std::size_t>(limit)) {
      page.runs.resize(static_cast<std::size_t>(limit));
      page.next_cursor = "next";
    }
    return page;
  }

  void trigger(const std::string&, const std::string& id, const std::optional<std::string>& request_key,
               Reply<std::optional<Triggered>> reply) override {
    if (!find("", id)) return reply(std::optional<Triggered>());
    std::lock_guard lock(mutex_);
    const std::string name = request_key.value_or("fresh-" + std::to_string(triggered_.size()));
    reply(std::optional(Triggered{activity_workflow_id(id, "trigger-" + name), triggered_.insert({name, id}).second}));
  }

  void backfill(const std::string&, const std::string& id, const Backfill& wanted,
                Reply<std::optional<std::vector<ActivityRun>>> reply) override {
    backfilled = wanted;
    if (wanted.to < wanted.from)
      return reply(std::make_exception_ptr(InvalidField("/to", "must not be before \"from\"")));
    reply(find("", id) ? std::optional(recorded) : std::nullopt);
  }

  void deliver(const std::string&, std::vector<CloudEvent> events, Reply<std::vector<EventReceipt>> reply) override {
    std::vector<EventReceipt> receipts;
    for (const CloudEvent& event : events) {
      EventReceipt& receipt = receipts.emplace_back();
      receipt.id = event.id;
      const bool conflicts = !conflicting.empty() && event.id == conflicting;
      (conflicts ? receipt.conflicts : receipt.started).push_back("activity-a:" + event.id);
    }
    delivered = std::move(events);
    reply(std::move(receipts));
  }

 private:
  void check_file(const std::string& id) const {
    if (!of_file.empty() && id == of_file) throw DecidedByFile("the configuration file has the activity");
  }

  std::mutex mutex_;
  std::map<std::string, std::string> triggered_;
};

}  // namespace hapax::http
