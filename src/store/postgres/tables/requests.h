// The request keys of a batch of control operations, locked: the first user of a key decides what it stands for.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "store/postgres/connection/connection.h"
#include "store/rules/rows.h"

namespace hapax::postgres {

class Requests {
 public:
  explicit Requests(Connection& connection) : connection_(connection) {}

  void lock(std::span<const ControlRequest> requests);
  // Of those that are locked.
  std::optional<PastRequest> find(const std::string& name_space, const std::string& key, Time now) const;
  void put(const std::string& name_space, const std::string& key, const PastRequest& past, Time expires_at);
  void write();  // sends what was put

 private:
  using Key = std::pair<std::string, std::string>;  // namespace, request key
  struct Stored {
    PastRequest past;
    Time expires_at;
    bool is_changed = false;
  };

  void receive(const Rows& rows);
  static Parameters keys_of(const std::set<Key>& wanted);

  Connection& connection_;
  std::map<Key, Stored> all_;
};

}  // namespace hapax::postgres
