// Activities over HTTP.
#pragma once

#include <string>

#include "client/remote_server.h"
#include "engine/activities.h"

namespace hapax {

// The server must outlive it. All calls are for the namespace of the server's options, whatever they name. A bad id, or
// a definition that belongs to the configuration file, is a RemoteRefusal.
//
// After a lost answer a request is sent again if the server recognises it: a trigger only with its request key, events
// only if all have ids, a backfill unless it is forced, a removal never.
class RemoteActivities final : public Activities {
 public:
  RemoteActivities(RemoteServer& server, std::string name_space)
      : server_(server), name_space_(std::move(name_space)) {}

  std::optional<ActivityView> find(const std::string& name_space, const std::string& id) override;
  ActivitiesPage list(const std::string& name_space, const std::string& after, std::int32_t limit) override;
  ActivityView put(const std::string& name_space, const std::string& id, const ActivitySettings& settings) override;
  bool remove(const std::string& name_space, const std::string& id) override;
  std::optional<ActivityView> set_paused(const std::string& name_space, const std::string& id, bool paused) override;
  std::optional<RunsPage> runs(const std::string& name_space, const std::string& id, const std::string& cursor,
                               std::int32_t limit) override;
  void trigger(const std::string& name_space, const std::string& id, const std::optional<std::string>& request_key,
               Reply<std::optional<Triggered>> reply) override;
  void backfill(const std::string& name_space, const std::string& id, const Backfill& wanted,
                Reply<std::optional<std::vector<ActivityRun>>> reply) override;
  void deliver(const std::string& name_space, std::vector<CloudEvent> events,
               Reply<std::vector<EventReceipt>> reply) override;

 private:
  ActivityView read(const Exchanged& exchanged) const;
  void name_runs(std::vector<ActivityRun>& runs, const std::string& activity) const;

  RemoteServer& server_;
  const std::string name_space_;
};

}  // namespace hapax
