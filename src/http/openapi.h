// The API's own description, built into the program.
#pragma once

#include <string_view>

namespace hapax::http {

extern const std::string_view kOpenApi;  // openapi.json
extern const std::string_view kVersion;

}  // namespace hapax::http
