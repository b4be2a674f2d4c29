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

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c); });
}

bool is_url(std::string_view text) {
  constexpr std::array<std::string_view, 3> kSchemes{"tcp://", "udp://", "sctp://"};
  return std::any_of(kSchemes.begin(), kSchemes.end(), [&](std::string_view each) { return text.starts_with(each); });
}

// The part of a service link's name after _PORT_: a number, a protocol, and optionally one more word.
bool names_linked_port(std::string_view rest) {
  const auto underscore = rest.find('_');
  if (underscore == std::string_view::npos || !is_number(rest.substr(0, underscore))) return false;
  rest.remove_prefix(underscore + 1);
  const std::string_view protocol = rest.substr(0, rest.find('_'));
  if (protocol != "TCP" && protocol != "UDP" && protocol != "SCTP") return false;
  rest.remove_prefix(protocol.size());
  return rest.empty() || rest == "_PROTO" || rest == "_PORT" || rest == "_ADDR";
}

// Kubernetes describes every service of a namespace to every container: a service named `hapax` or `hapax-web` sets
// HAPAX_SERVICE_HOST, HAPAX_WEB_PORT_80_TCP_ADDR and so on. The value counts too: HAPAX_PORT=7373 is a user's mistake.
bool is_service_link(std::string_view variable, std::string_view value) {
  if (variable.ends_with("_SERVICE_HOST")) return true;
  if (variable.ends_with("_SERVICE_PORT") || variable.find("_SERVICE_PORT_") != std::string_view::npos) {
    return is_number(value);
  }
  if (variable.ends_with("_PORT") && is_url(value)) return true;
  for (auto at = variable.find("_PORT_"); at != std::string_view::npos; at = variable.find("_PORT_", at + 1)) {
    if (names_linked_port(variable.substr(at + 6))) return true;
  }
  return false;
}

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

std::string suggestion_for(std::string_view variable, std::string_view value) {
  if (variable == "HAPAX_PORT") {
    return fmt::format("; the address and the port are one: HAPAX_LISTEN=127.0.0.1:{}",
                       is_number(value) ? value : "7373");
  }
  if (variable == "HAPAX_HOST") {
    return "; HAPAX_LISTEN=ADDRESS:PORT is where the server listens, HAPAX_HOSTS=NAME,NAME what it answers to";
  }
  return suggestion(variable, variable_names());
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
  if (known->form == ValueForm::number && is_number(text)) value.kind = Json::Kind::number;
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
    if (found == known.end() && is_service_link(variable, text)) continue;
    if (found == known.end()) {
      throw ConfigError(
          fmt::format("environment variable {}: there is no such setting{}", variable, suggestion_for(variable, text)));
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
