#include "engine/known_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/failure.h"
#include "core/field.h"
#include "core/json.h"

namespace hapax {

namespace {

template <class Settings>
const Settings& entry(const std::map<std::string, Settings>& settings, const std::string& name) {
  static const Settings kNone;
  const auto found = settings.find(name);
  return found == settings.end() ? kNone : found->second;
}

template <class Settings, class Key>
const Settings& entry(const std::map<Key, Settings>& settings, const Key& key) {
  static const Settings kNone;
  const auto found = settings.find(key);
  return found == settings.end() ? kNone : found->second;
}

template <class Settings>
Settings read(const SettingDocument& document) {
  try {
    return Settings::parse(parse_json(document.document));
  } catch (const std::runtime_error& error) {
    throw Failure(Failure::Code::corrupt,
                  fmt::format("the stored settings of '{}' cannot be read: {}", document.name, error.what()));
  }
}

template <class File, class Api>
std::vector<std::string> names_in(const File& file, const Api& api, const std::string& name_space) {
  std::set<std::string> names;
  for (const auto& [name, settings] : file) names.insert(name);
  for (const auto& [key, settings] : api) {
    if (key.first == name_space) names.insert(key.second);
  }
  return {names.begin(), names.end()};
}

template <class Settings>
std::vector<std::string> names_of(const Settings& settings) {
  const auto names = settings.names();
  return {names.begin(), names.end()};
}

}  // namespace

bool KnownSettings::load(const std::vector<SettingDocument>& documents) {
  std::map<Key, QueueSettings> queues;
  std::map<Key, TypeDocument> types;
  for (const SettingDocument& document : documents) {
    const Key key{document.name_space, document.name};
    if (document.kind == SettingDocument::Kind::queue) {
      queues[key] = read<QueueSettings>(document);
    } else {
      types[key] = read<TypeDocument>(document);
    }
  }
  std::lock_guard lock(mutex_);
  if (queues == queues_ && types == types_) return false;
  queues_ = std::move(queues);
  types_ = std::move(types);
  return true;
}

QueueSettings KnownSettings::queue_in_force(const std::string& name_space, const std::string& name) const {
  return entry(options_.queues, name).over(entry(queues_, Key{name_space, name}));
}

TypeSettings KnownSettings::type_in_force(const std::string& name_space, const std::string& name) const {
  const TypeDocument& stored = entry(types_, Key{name_space, name});
  return entry(options_.types, name).over(stored.settings.over(stored.code));
}

bool KnownSettings::is_declared(const std::string& name_space, const std::string& type) const {
  const auto stored = types_.find(Key{name_space, type});
  return options_.types.contains(type) || (stored != types_.end() && stored->second.declared);
}

TypeIdentity KnownSettings::identity_in_force(const std::string& name_space, const std::string& name) const {
  if (const auto& stated = entry(options_.types, name).identity) return {*stated, TypeIdentity::Source::file};
  const TypeDocument& stored = entry(types_, Key{name_space, name});
  if (stored.settings.identity) return {*stored.settings.identity, TypeIdentity::Source::api};
  if (stored.code.identity) return {*stored.code.identity, TypeIdentity::Source::code};
  if (is_declared(name_space, name)) return {Strategy::strict, TypeIdentity::Source::declared};
  return {options_.undeclared, TypeIdentity::Source::undeclared};
}

QueueSettings KnownSettings::queue(const std::string& name_space, const std::string& name) const {
  std::lock_guard lock(mutex_);
  return queue_in_force(name_space, name);
}

TypeSettings KnownSettings::type(const std::string& name_space, const std::string& name) const {
  std::lock_guard lock(mutex_);
  return type_in_force(name_space, name);
}

TypeIdentity KnownSettings::type_identity(const std::string& name_space, const std::string& name) const {
  std::lock_guard lock(mutex_);
  return identity_in_force(name_space, name);
}

TypeDocument KnownSettings::type_document(const std::string& name_space, const std::string& name) const {
  std::lock_guard lock(mutex_);
  const auto stored = types_.find(Key{name_space, name});
  return stored == types_.end() ? TypeDocument{{}, false} : stored->second;
}

void KnownSettings::refuse_if_file_says_otherwise(const std::string& queue, bool paused) const {
  const auto named = options_.queues.find(queue);
  if (named == options_.queues.end() || named->second.paused.value_or(paused) == paused) return;
  throw DecidedByFile(
      fmt::format("The configuration file says [queues.{}] paused = {}, and the file wins: change it there, and "
                  "restart the server",
                  queue, !paused));
}

QueueSettings KnownSettings::queue_document(const std::string& name_space, const std::string& name) const {
  std::lock_guard lock(mutex_);
  return entry(queues_, Key{name_space, name});
}

QueueView KnownSettings::queue_view(const std::string& name_space, const std::string& name) const {
  std::lock_guard lock(mutex_);
  QueueView view;
  view.name = name;
  view.settings = queue_in_force(name_space, name);
  view.from_file = names_of(entry(options_.queues, name));
  view.known = options_.queues.contains(name) || queues_.contains(Key{name_space, name});
  return view;
}

QueueView KnownSettings::queue_view(const std::string& name_space, const std::string& name,
                                    std::vector<QueueCount> counts) const {
  QueueView view = queue_view(name_space, name);
  view.count = {name_space, name, 0, 0, {}};
  for (QueueCount& count : counts) {
    if (count.name_space != name_space || count.queue != name) continue;
    view.count = std::move(count);
    view.known = true;
  }
  return view;
}

std::vector<QueueView> KnownSettings::queue_views(const std::string& name_space, std::vector<QueueCount> counts) const {
  std::map<std::string, QueueView> views;
  for (const std::string& name : queue_names(name_space)) {
    views[name] = queue_view(name_space, name);
    views[name].count = {name_space, name, 0, 0, {}};
  }
  for (QueueCount& count : counts) {
    if (count.name_space != name_space) continue;
    const std::string name = count.queue;
    if (!views.contains(name)) views[name] = queue_view(name_space, name);
    views[name].known = true;
    views[name].count = std::move(count);
  }
  std::vector<QueueView> list;
  for (auto& [name, view] : views) list.push_back(std::move(view));
  return list;
}

std::vector<std::string> KnownSettings::from_code(const std::string& name_space, const std::string& name) const {
  const TypeDocument& stored = entry(types_, Key{name_space, name});
  std::vector<std::string> names = names_of(stored.code);
  const auto stated = names_of(entry(options_.types, name).over(stored.settings));
  std::erase_if(names,
                [&](const std::string& each) { return std::find(stated.begin(), stated.end(), each) != stated.end(); });
  return names;
}

TypeView KnownSettings::type_view(const std::string& name_space, const std::string& name) const {
  std::lock_guard lock(mutex_);
  TypeView view;
  view.name = name;
  view.settings = type_in_force(name_space, name);
  view.from_file = names_of(entry(options_.types, name));
  view.from_code = from_code(name_space, name);
  view.declared = is_declared(name_space, name);
  view.identity = identity_in_force(name_space, name);
  return view;
}

std::vector<TypeView> KnownSettings::type_views(const std::string& name_space) const {
  std::vector<TypeView> views;
  for (const std::string& name : type_names(name_space)) views.push_back(type_view(name_space, name));
  return views;
}

std::vector<std::string> KnownSettings::namespaces_with(const std::string& queue) const {
  std::lock_guard lock(mutex_);
  std::vector<std::string> namespaces;
  for (const auto& [key, settings] : queues_) {
    if (key.second == queue) namespaces.push_back(key.first);
  }
  return namespaces;
}

std::vector<std::string> KnownSettings::queue_names(const std::string& name_space) const {
  std::lock_guard lock(mutex_);
  return names_in(options_.queues, queues_, name_space);
}

std::vector<std::string> KnownSettings::type_names(const std::string& name_space) const {
  std::lock_guard lock(mutex_);
  return names_in(options_.types, types_, name_space);
}

std::shared_ptr<const QueuePolicies> KnownSettings::policies() const {
  auto policies = std::make_shared<QueuePolicies>();
  policies->task_retention = options_.task_retention;
  policies->workflow_retention = options_.workflow_retention;
  for (const auto& [name, settings] : options_.queues) policies->set_everywhere(name, settings.policy());
  std::lock_guard lock(mutex_);
  for (const auto& [key, settings] : queues_) {
    policies->set(key.first, key.second, queue_in_force(key.first, key.second).policy());
  }
  return policies;
}

}  // namespace hapax
