// How a content becomes the body of an object: with a token of its writer, fresh for each writing, so that no two
// bodies are the same; and with the lock of the transaction that is about to change it, if there is one.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/time.h"

namespace hapax::s3 {

struct Lock {
  std::string transaction;
  Time until;  // then anybody may break it, unless the transaction was committed
};

struct Envelope {
  std::string content;  // a JSON object; empty: there is nothing, only a lock
  std::optional<Lock> lock;
};

std::string random_token();  // 32 hexadecimal digits

std::string seal(std::string_view content, const std::optional<Lock>& lock = std::nullopt);
// Throws Failure::corrupt, with the object's name, for a body that seal() did not make.
Envelope unseal(std::string_view name, std::string_view body);

}  // namespace hapax::s3
