// Runs a function here and now, once for each key: App::once().
#pragma once

#include <optional>
#include <string>

#include "hapax/options.h"

namespace hapax {

// Of one call of App::once(). Where the type or queue is empty: those that the function was declared with, otherwise
// "once".
struct OnceOptions {
  std::string type = {};
  std::string queue = {};      // must have no limits, which a call of once() does not wait for
  Milliseconds lease{60'000};  // a process that does not renew it for this long counts as dead; renewed by a thread
};

}  // namespace hapax
