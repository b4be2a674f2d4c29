// The settings of queues and types.
#include "engine/check_request.h"
#include "engine/store_engine.h"

namespace hapax {

QueueView StoreEngine::queue(const std::string& name_space, const std::string& name) {
  check_setting_name(name);
  return settings_.queue_view(name_space, name, store_->count(name_space));
}

std::vector<QueueView> StoreEngine::queues(const std::string& name_space) {
  return settings_.queue_views(name_space, store_->count(name_space));
}

TypeView StoreEngine::type(const std::string& name_space, const std::string& name) {
  check_setting_name(name);
  return settings_.type_view(name_space, name);
}

std::vector<TypeView> StoreEngine::types(const std::string& name_space) { return settings_.type_views(name_space); }

QueueView StoreEngine::put_queue(const std::string& name_space, const std::string& name,
                                 const QueueSettings& settings) {
  check_setting_name(name);
  check(settings);
  std::lock_guard lock(put_mutex_);
  reload_settings();
  QueueSettings document = settings;
  // Pausing is an operation of its own: settings that do not speak of it leave it as it is.
  if (!document.paused) document.paused = settings_.queue_document(name_space, name).paused;
  store_->put_setting({name_space, SettingDocument::Kind::queue, name, document.to_json()});
  reload_settings();
  return queue(name_space, name);
}

QueueView StoreEngine::set_paused(const std::string& name_space, const std::string& name, bool paused) {
  check_setting_name(name);
  {
    std::lock_guard lock(put_mutex_);
    reload_settings();
    settings_.refuse_if_file_says_otherwise(name, paused);
    QueueSettings settings = settings_.queue_document(name_space, name);
    settings.paused = paused;
    store_->put_setting({name_space, SettingDocument::Kind::queue, name, settings.to_json()});
    reload_settings();
  }
  return queue(name_space, name);
}

TypeView StoreEngine::put_type(const std::string& name_space, const std::string& name, const TypeSettings& settings) {
  check_setting_name(name);
  check(settings);
  return change_type(name_space, name, [&](TypeDocument& document) {
    document.settings = settings;
    document.declared = true;
  });
}

TypeView StoreEngine::declare_type(const std::string& name_space, const std::string& name,
                                   const TypeSettings& settings) {
  check_setting_name(name);
  check(settings);
  return change_type(name_space, name, [&](TypeDocument& document) { document.code = settings; });
}

// One that stays as it is is not written.
TypeView StoreEngine::change_type(const std::string& name_space, const std::string& name,
                                  const std::function<void(TypeDocument&)>& change) {
  std::lock_guard lock(put_mutex_);
  reload_settings();
  const TypeDocument before = settings_.type_document(name_space, name);
  TypeDocument document = before;
  change(document);
  if (document != before) {
    store_->put_setting({name_space, SettingDocument::Kind::type, name, document.to_json()});
    reload_settings();
  }
  return type(name_space, name);
}

TypeView StoreEngine::patch_type(const std::string& name_space, const std::string& name, const Json& patch) {
  check_setting_name(name);
  return change_type(name_space, name,
                     [&](TypeDocument& document) { document.settings = document.settings.patched(patch); });
}

void StoreEngine::reload_settings() {
  std::lock_guard lock(reload_mutex_);
  if (!settings_.load(store_->settings())) return;
  store_->set_policies(settings_.policies());
  claims_.announce_everywhere();
  activities_.settings_changed();
}

void StoreEngine::declare_queue(const std::string& name_space, const std::string& name) {
  if (!settings_.queue_view(name_space, name).known) put_queue(name_space, name, {});
}

}  // namespace hapax
