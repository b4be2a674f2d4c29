// The one place of the program that knows which stores there are.
#pragma once

#include <memory>
#include <string>

#include "store/store.h"

namespace hapax {

// Opens the store of a URL: memory:, sqlite:FILE. Throws ConfigError for a URL that names no store of this build, Failure if
// the store cannot be opened.
std::unique_ptr<Store> open_store(const std::string& url);

}  // namespace hapax
