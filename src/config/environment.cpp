#include "config/environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "config/nearest.h"

namespace hapax {

namespace {

constexpr std::array kScalarKeys{
    ScalarKey{"server", "listen", ValueForm::text},
    ScalarKey{"server", "store", ValueForm::text},
    ScalarKey{"server", "store_timeout", ValueForm::text},
    ScalarKey{"server", "max_body", ValueForm::text},
    ScalarKey{"server", "max_connections", ValueForm::number},
    ScalarKey{"server", "max_requests", ValueForm::number},
    ScalarKey{"server", "max_request_bytes", ValueForm::text},
    ScalarKey{"server", "max_unsent_bytes", ValueForm::text},
    ScalarKey{"server", "shutdown_grace", ValueForm::text},
    ScalarKey{"server", "hosts", ValueForm::list},
    ScalarKey{"server", "threads", ValueForm::number},
    ScalarKey{"server", "log_level", ValueForm::text},
    ScalarKey{"server", "insecure", ValueForm::boolean},
    ScalarKey{"identity", "undeclared", ValueForm::text},
    ScalarKey{"identity", "ttl", ValueForm::text},
    ScalarKey{"retention", "tasks", ValueForm::text},
    ScalarKey{"retention", "workflows", ValueForm::text},
    ScalarKey{"cache", "redis", ValueForm::text},
    ScalarKey{"cleanup", "interval", ValueForm::text},
    ScalarKey{"requests", "ttl_days", ValueForm::number},
    ScalarKey{"requests", "cleanup_interval_seconds", ValueForm::number},
};

std::string upper(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return out;
}

std::string long_name(const ScalarKey& key) { return fmt::format("HAPAX_{}_{}", upper(key.section), upper(key.key)); }

std::string short_name(const ScalarKey& key) { return "HAPAX_" + upper(key.key); }

// Read by commands that talk to a server, and set for the handlers that `hapax work` runs.
constexpr std::array kVariablesOfCommands{"HAPAX_URL",     "HAPAX_TOKEN",   "HAPAX_NAMESPACE", "HAPAX_EFFECT_KEY",
                                          "HAPAX_ATTEMPT", "HAPAX_TASK_ID", "HAPAX_TASK_TYPE"};

// Read elsewhere, or meant for programs that run beside a server.
bool is_foreign(const std::string& variable) {
  return variable == "HAPAX_CONFIG" || variable.starts_with("HAPAX_TEST_") || variable.starts_with("HAPAX_BENCH_") ||
         std::find(kVariablesOfCommands.begin(), kVariablesOfCommands.end(), variable) != kVariablesOfCommands.end();
}

std::vector<std::string> variable_names() {
  std::vector<std::string> names{"HAPAX_CONFIG", "HAPAX_URL", "HAPAX_TOKEN", "HAPAX_NAMESPACE"};
  for (const auto& key : kScalarKeys) {
    if (key.section == "server") names.push_back(short_name(key));
    names.push_back(long_name(key));
  }
  return names;
}

Json list_of(std::string_view text) {
  Json list;
  list.kind = Json::Kind::array;
  while (!text.empty()) {
    const auto comma = std::min(text.find(','), text.size());
    list.items.push_back(json_string(std::string(text.substr(0, comma))));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return list;
}

}  // namespace

std::span<const ScalarKey> scalar_keys() { return kScalarKeys; }

std::vector<std::string> keys_of(std::string_view section) {
  std::vector<std::string> names;
  for (const auto& key : kScalarKeys) {
    if (key.section == section) names.emplace_back(key.key);
  }
  return names;
}

Json value_from_text(std::string_view section, std::string_view key, const std::string& text) {
  const auto* known = std::find_if(kScalarKeys.begin(), kScalarKeys.end(),
                                   [&](const ScalarKey& k) { return k.section == section && k.key == key; });
  Json value = json_string(text);
  if (known == kScalarKeys.end()) return value;
  const bool digits =
      !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c); });
  if (known->form == ValueForm::number && digits) value.kind = Json::Kind::number;
  if (known->form == ValueForm::boolean && (text == "true" || text == "false")) {
    value.kind = Json::Kind::boolean;
    value.boolean = text == "true";
  }
  if (known->form == ValueForm::list) value = list_of(text);
  return value;
}

void overlay_environment(ConfigDocument& document, const std::map<std::string, std::string>& environment,
                         const std::set<std::string>& also_known) {
  std::map<std::string, const ScalarKey*> known;
  for (const auto& key : kScalarKeys) {
    known.emplace(long_name(key), &key);
    if (key.section == "server") known.emplace(short_name(key), &key);
  }
  std::map<const ScalarKey*, std::string> set_by;
  for (const auto& [variable, text] : environment) {
    if (!variable.starts_with("HAPAX_") || is_foreign(variable) || also_known.contains(variable)) continue;
    const auto found = known.find(variable);
    if (found == known.end()) {
      throw ConfigError(fmt::format("environment variable {}: no setting is called so{}", variable,
                                    suggestion(variable, variable_names())));
    }
    const ScalarKey& key = *found->second;
    const auto [earlier, first] = set_by.emplace(&key, variable);
    if (!first) {
      throw ConfigError(
          fmt::format("environment variable {}: {} sets the same; remove one of them", variable, earlier->second));
    }
    document.set(key.section, key.key, value_from_text(key.section, key.key, text), "environment variable " + variable);
  }
}

}  // namespace hapax
