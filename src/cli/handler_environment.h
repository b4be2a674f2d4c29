// What a handler sees of the worker's environment: nothing that may be a secret of the worker's own.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace hapax {

using Variables = std::map<std::string, std::string>;

// Those of `own` that every program needs (PATH, HOME, USER, LANG, LC_*, TZ, TMPDIR, …), and what `more` asks for: NAME
// for one of `own`, if it is set; NAME=VALUE for another. Throws std::invalid_argument for what names no variable.
Variables handler_environment(const Variables& own, const std::vector<std::string>& more);

}  // namespace hapax
