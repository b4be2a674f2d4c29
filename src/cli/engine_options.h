// From the configuration to engine options.
#pragma once

#include "config/config.h"
#include "engine/local_engine.h"

namespace hapax {

EngineOptions engine_options(const Config& config);

}  // namespace hapax
