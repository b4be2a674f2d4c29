// The keys with a single value, and the variables that override them: HAPAX_<SECTION>_<KEY>, and HAPAX_<KEY> for
// [server].
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/document.h"

namespace hapax {

enum class ValueForm { text, number, boolean, list };  // a list: its items are separated by commas

struct ScalarKey {
  std::string_view section, key;
  ValueForm form;
};

std::span<const ScalarKey> scalar_keys();

// The keys of one such section, in the order they are documented.
std::vector<std::string> keys_of(std::string_view section);

// A variable's or flag's text as the value of the key. Text that does not fit stays text, and is refused with its
// origin when the document is read.
Json value_from_text(std::string_view section, std::string_view key, const std::string& text);

// Overrides the document with the HAPAX_* variables. `also_known` are variables that the document itself names
// (token_env). Throws ConfigError for an unknown variable, so that a misspelt override is noticed. Ignores what
// Kubernetes sets for services whose names begin with hapax.
void overlay_environment(ConfigDocument& document, const std::map<std::string, std::string>& environment,
                         const std::set<std::string>& also_known);

}  // namespace hapax
