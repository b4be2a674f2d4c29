#include "open/engine_options.h"

namespace hapax {

EngineOptions engine_options(const Config& config) {
  EngineOptions options;
  options.undeclared = config.undeclared;
  options.idempotency_ttl = config.idempotency_ttl;
  options.task_retention = config.task_retention;
  options.workflow_retention = config.workflow_retention;
  options.store_timeout = config.store_timeout;
  options.cleanup_interval = config.cleanup_interval;
  options.request_ttl = config.request_ttl;
  options.request_cleanup_interval = config.request_cleanup_interval;
  options.queues = config.queues;
  options.types = config.types;
  options.activities = config.activities;
  return options;
}

EngineOptions engine_options_of_file(const std::string& file) {
  try {
    return engine_options(load_config(file, {}, {}));
  } catch (const ConfigError& error) {
    throw Failure(Failure::Code::misuse, error.what());
  }
}

}  // namespace hapax
