// From the configuration to engine options.
#pragma once

#include "config/config.h"
#include "engine/local_engine.h"

namespace hapax {

EngineOptions engine_options(const Config& config);

// Of that hapax.toml alone: without the environment. Throws Failure::misuse for one that cannot be.
EngineOptions engine_options_of_file(const std::string& file);

}  // namespace hapax
