// The part of the worker's environment that a handler sees: no secrets.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace hapax {

using Variables = std::map<std::string, std::string>;

// Those of `own` that every program needs (PATH, HOME, USER, LANG, LC_*, TZ, TMPDIR, …), and those in `more`: NAME for
// one of `own`, if it is set; NAME=VALUE for another. Throws std::invalid_argument for an invalid name.
Variables handler_environment(const Variables& own, const std::vector<std::string>& more);

}  // namespace hapax
