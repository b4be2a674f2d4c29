// What is a valid name: types, queues, scopes, namespaces, keys.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hapax {

// Blank means nothing but Unicode's White_Space; control characters are U+0000 to U+001F and U+007F to U+009F.
//
// Each returns a sentence that says what is wrong ("must be 1 to 128 bytes"), or nothing if the name is valid. All must
// be UTF-8.
std::optional<std::string> check_name(std::string_view name);            // type, queue, scope, namespace, worker
std::optional<std::string> check_idempotency_key(std::string_view key);  // and workflow ids
std::optional<std::string> check_request_key(std::string_view key);      // of control operations

bool is_valid_utf8(std::string_view text);

}  // namespace hapax
