// The settings in force: first what the configuration file names, then what the API put, then what code declares.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/policy.h"
#include "core/settings.h"
#include "engine/local_engine.h"
#include "store/store.h"

namespace hapax {

class KnownSettings {
 public:
  explicit KnownSettings(const EngineOptions& options) : options_(options) {}

  // Takes over what the store has. True if it differs from what was known.
  bool load(const std::vector<SettingDocument>& documents);

  // The settings in force.
  QueueSettings queue(const std::string& name_space, const std::string& name) const;
  TypeSettings type(const std::string& name_space, const std::string& name) const;
  TypeIdentity type_identity(const std::string& name_space, const std::string& name) const;

  // Throws DecidedByFile if the file says whether the queue is paused, and says otherwise.
  void refuse_if_file_says_otherwise(const std::string& queue, bool paused) const;

  // As they are stored, without the file's.
  QueueSettings queue_document(const std::string& name_space, const std::string& name) const;
  TypeDocument type_document(const std::string& name_space, const std::string& name) const;

  // With the file's part named. The count is left to the caller, or taken from all counts that there are.
  QueueView queue_view(const std::string& name_space, const std::string& name) const;
  QueueView queue_view(const std::string& name_space, const std::string& name, std::vector<QueueCount> counts) const;
  std::vector<QueueView> queue_views(const std::string& name_space, std::vector<QueueCount> counts) const;
  TypeView type_view(const std::string& name_space, const std::string& name) const;
  std::vector<TypeView> type_views(const std::string& name_space) const;
  std::vector<std::string> namespaces_with(const std::string& queue) const;  // where the API has named it
  std::vector<std::string> queue_names(const std::string& name_space) const;
  std::vector<std::string> type_names(const std::string& name_space) const;

  // The rules for the store that follow from all of this.
  std::shared_ptr<const QueuePolicies> policies() const;

 private:
  using Key = std::pair<std::string, std::string>;  // namespace, name

  QueueSettings queue_in_force(const std::string& name_space, const std::string& name) const;
  TypeSettings type_in_force(const std::string& name_space, const std::string& name) const;
  TypeIdentity identity_in_force(const std::string& name_space, const std::string& name) const;
  std::vector<std::string> from_code(const std::string& name_space, const std::string& name) const;
  bool is_declared(const std::string& name_space, const std::string& type) const;

  const EngineOptions& options_;
  mutable std::mutex mutex_;
  std::map<Key, QueueSettings> queues_;  // by the API
  std::map<Key, TypeDocument> types_;
};

}  // namespace hapax
