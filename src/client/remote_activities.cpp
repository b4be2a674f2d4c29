#include "client/remote_activities.h"

#include <algorithm>

#include "engine/check_request.h"
#include "wire/activity.h"
#include "wire/header.h"

namespace hapax {

namespace {

// A backfill starts up to Activities::kMaxBackfill workflows before it answers.
constexpr std::chrono::minutes kPatience{5};

std::string path_of(const std::string& id, std::string_view operation = "") {
  std::string path = "/v1/activities/" + wire::percent_encode(id);
  if (!operation.empty()) path.append("/").append(operation);
  return path;
}

}  // namespace

// The members of the answer around the runs.
void RemoteActivities::name_runs(std::vector<ActivityRun>& runs, const std::string& activity) const {
  for (ActivityRun& run : runs) {
    run.name_space = name_space_;
    run.activity = activity;
  }
}

ActivityView RemoteActivities::read(const Exchanged& exchanged) const {
  ActivityView view = wire::read_activity(exchanged.body);
  name_runs(view.last, view.id);
  return view;
}

std::optional<ActivityView> RemoteActivities::find(const std::string&, const std::string& id) {
  check_activity(id);
  const Exchanged exchanged = server_.get(path_of(id));
  if (exchanged.not_found()) return {};
  exchanged.require();
  return read(exchanged);
}

ActivitiesPage RemoteActivities::list(const std::string&, const std::string& after, std::int32_t limit) {
  QueryText query;
  query.add("limit", std::to_string(limit));
  if (!after.empty()) query.add("cursor", after);
  const Exchanged exchanged = server_.get("/v1/activities" + query.text());
  exchanged.require();
  return wire::read_activities(exchanged.body);
}

ActivityView RemoteActivities::put(const std::string&, const std::string& id, const ActivitySettings& settings) {
  check_activity(id);
  check(settings);
  const Exchanged exchanged = server_.put(path_of(id), settings.to_json());
  if (exchanged.status != 201) exchanged.require();
  return read(exchanged);
}

// Not repeated: a second one would find nothing to remove and report that.
bool RemoteActivities::remove(const std::string&, const std::string& id) {
  check_activity(id);
  const Exchanged exchanged = server_.exchange({.method = "DELETE", .path = path_of(id)}, Repeat::no);
  if (exchanged.not_found()) return false;
  exchanged.require(204);
  return true;
}

std::optional<ActivityView> RemoteActivities::set_paused(const std::string&, const std::string& id, bool paused) {
  check_activity(id);
  const Exchanged exchanged = server_.post(path_of(id, paused ? "pause" : "unpause"), "");
  if (exchanged.not_found()) return {};
  exchanged.require();
  return read(exchanged);
}

std::optional<RunsPage> RemoteActivities::runs(const std::string&, const std::string& id, const std::string& cursor,
                                               std::int32_t limit) {
  check_activity(id);
  QueryText query;
  query.add("limit", std::to_string(limit));
  if (!cursor.empty()) query.add("cursor", cursor);
  const Exchanged exchanged = server_.get(path_of(id, "runs") + query.text());
  if (exchanged.not_found()) return {};
  exchanged.require();
  RunsPage page = wire::read_runs(exchanged.body);
  name_runs(page.runs, id);
  return page;
}

void RemoteActivities::trigger(const std::string&, const std::string& id, const std::optional<std::string>& request_key,
                               Reply<std::optional<Triggered>> reply) {
  answer(reply, [&]() -> std::optional<Triggered> {
    check_activity(id);
    HttpRequest request{.method = "POST", .path = path_of(id, "trigger")};
    if (request_key) {
      check_control_key(*request_key);
      request.headers.push_back("Idempotency-Key: " + wire::write_key_header(*request_key));
    }
    const Exchanged exchanged = server_.exchange(std::move(request), request_key ? Repeat::yes : Repeat::no);
    if (exchanged.not_found()) return {};
    if (exchanged.status != 201) exchanged.require();
    return wire::read_triggered(exchanged.body);
  });
}

void RemoteActivities::backfill(const std::string&, const std::string& id, const Backfill& wanted,
                                Reply<std::optional<std::vector<ActivityRun>>> reply) {
  answer(reply, [&]() -> std::optional<std::vector<ActivityRun>> {
    check_activity(id);
    const Exchanged exchanged = server_.exchange(
        {.method = "POST", .path = path_of(id, "backfill"), .body = wire::write_backfill(wanted), .timeout = kPatience},
        wanted.force ? Repeat::no : Repeat::yes);
    if (exchanged.not_found()) return {};
    exchanged.require();
    std::vector<ActivityRun> runs = wire::read_runs(exchanged.body).runs;
    name_runs(runs, id);
    return runs;
  });
}

void RemoteActivities::deliver(const std::string&, std::vector<CloudEvent> events,
                               Reply<std::vector<EventReceipt>> reply) {
  answer(reply, [&] {
    const bool named = std::all_of(events.begin(), events.end(), [](const CloudEvent& e) { return !e.id.empty(); });
    const Exchanged exchanged = server_.exchange({.method = "POST",
                                                  .path = "/v1/events",
                                                  .body = wire::write_events(events),
                                                  .content_type = "application/cloudevents-batch+json",
                                                  .timeout = kPatience},
                                                 named ? Repeat::yes : Repeat::no);
    exchanged.require();
    auto receipts = wire::read_event_receipts(exchanged.body);
    require_count(receipts.size(), events.size());
    return receipts;
  });
}

}  // namespace hapax
