// The stores that must pass the suite.
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "store/store.h"

namespace hapax {

// One set of data, fresh when made, gone when dropped.
class StoreHome {
 public:
  virtual ~StoreHome() = default;
  // A handle on the data; where the store is shared, every call gives another handle on the same.
  virtual std::unique_ptr<Store> open(const Clock& clock) = 0;

  // Changes the stored payloads that have the text `from` in them, behind the store's back: `to` takes its place, and
  // is as long. False: there is no way to do that here.
  virtual bool change_payloads(const std::string& /*from*/, const std::string& /*to*/) { return false; }
};

void change_sqlite_payloads(const std::string& path, const std::string& from, const std::string& to);

struct StoreKind {
  std::string name;
  bool shared = false;  // several handles, in any number of processes, may be open on the same data
  std::function<std::unique_ptr<StoreHome>()> make;
  std::uint64_t slowness = 1;  // a random comparison makes that many times fewer runs
};

std::vector<StoreKind> all_stores();
std::vector<StoreKind> shared_stores();
std::vector<StoreKind> stores_that_hand_out();  // see WaitingClaims

inline std::ostream& operator<<(std::ostream& out, const StoreKind& kind) { return out << kind.name; }

}  // namespace hapax
