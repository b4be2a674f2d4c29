// Which workers that share the file live. Each holds a lock that the kernel frees with its process; so whoever finds
// one free knows that its worker is dead, and that its leases can be given back before they end.
//
// A lock is a file beside the database, in NAME-workers/, with the worker's name in it. Workers of one name share it.
// Workers of servers have none: their server's death is not theirs.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace hapax::sqlite {

// Says that the worker lives, as long as what is returned does. Null if the file system has no such locks: then leases
// end by their time alone.
std::shared_ptr<void> hold_worker(const std::string& database, const std::string& worker);

// Workers that are dead. While this lives, no new one of these names begins.
class DeadWorkers {
 public:
  explicit DeadWorkers(const std::string& database);
  ~DeadWorkers();
  DeadWorkers(const DeadWorkers&) = delete;
  DeadWorkers& operator=(const DeadWorkers&) = delete;

  const std::vector<std::string>& names() const { return names_; }

  // Their leases are given back.
  void forget();

 private:
  std::vector<std::string> names_, files_;
  std::vector<int> locks_;
};

}  // namespace hapax::sqlite
