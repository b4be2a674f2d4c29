// The settings of queues and types, and what decides them. Part of Engine: see engine.h.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/settings.h"
#include "store/store.h"

namespace hapax {

// The settings in force, and which of them the configuration file decided.
struct QueueView {
  std::string name;
  QueueSettings settings;
  std::vector<std::string> from_file;
  bool known = false;  // anybody has set or used it
  QueueCount count;
};

// What was asked cannot be had over the API: the configuration file names the setting, and the file wins.
class DecidedByFile : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The identity of a type's submissions that bring no key and name none themselves, and what decides it.
struct TypeIdentity {
  enum class Source : std::uint8_t {
    file,       // the configuration file states it
    api,        // it was stated over the API
    code,       // a program states it, in TaskOptions
    declared,   // nobody states one, and the type is declared: in the file, or by PUT
    undeclared  // the server's [identity] undeclared
  };

  Strategy strategy = Strategy::always_unique;
  Source source = Source::undeclared;

  bool operator==(const TypeIdentity&) const = default;

  // Of a workflow's steps: a default never merges them.
  Strategy of_steps() const {
    const bool is_stated = source <= Source::code;
    return is_stated ? strategy : Strategy::always_unique;
  }
};

struct TypeView {
  std::string name;
  TypeSettings settings;
  std::vector<std::string> from_file;
  bool declared = false;  // in the file, or by put_type(); one that was only patched or declared in code is not
  TypeIdentity identity = {};
  std::vector<std::string> from_code = {};  // the settings that code declares, and neither the file nor the API
};

class SettingVerbs {
 public:
  virtual ~SettingVerbs() = default;

  virtual QueueView queue(const std::string& name_space, const std::string& name) = 0;
  virtual std::vector<QueueView> queues(const std::string& name_space) = 0;
  virtual QueueView put_queue(const std::string& name_space, const std::string& name,
                              const QueueSettings& settings) = 0;
  // Throws DecidedByFile where the configuration file says otherwise.
  virtual QueueView set_paused(const std::string& name_space, const std::string& name, bool paused) = 0;

  virtual TypeView type(const std::string& name_space, const std::string& name) = 0;
  virtual std::vector<TypeView> types(const std::string& name_space) = 0;
  // Declares it.
  virtual TypeView put_type(const std::string& name_space, const std::string& name, const TypeSettings& settings) = 0;
  // As a program's code declares it, in place of what code declared before. The file's and the API's settings win.
  virtual TypeView declare_type(const std::string& name_space, const std::string& name,
                                const TypeSettings& settings) = 0;
  // Tunes it: TypeSettings::patched() of what was stored over the API.
  virtual TypeView patch_type(const std::string& name_space, const std::string& name, const Json& patch) = 0;
};

}  // namespace hapax
