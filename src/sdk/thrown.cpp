#include "sdk/thrown.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <typeinfo>

#include "core/json.h"
#include "core/name.h"

namespace hapax::detail {

namespace {

constexpr std::size_t kMaxTypeBytes = 128, kMaxMessageBytes = 16 * 1024;

std::string type_name(const std::exception& error) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> demangled(
      abi::__cxa_demangle(typeid(error).name(), nullptr, nullptr, &status), std::free);
  constexpr std::string_view kOwn = "hapax::";
  const std::string_view name = status == 0 ? demangled.get() : typeid(error).name();
  const std::string_view shown = name.starts_with(kOwn) ? name.substr(kOwn.size()) : name;
  return std::string(shown == "detail::Mismatch" ? "Error" : shown);  // its base, which is what users know
}

}  // namespace

std::string presentable(std::string text, std::size_t most) {
  text.resize(std::min(text.size(), most));
  while (!text.empty() && !is_valid_utf8(text) && is_valid_utf8(text.substr(0, text.size() - 1))) text.pop_back();
  if (!is_valid_utf8(text)) {
    std::replace_if(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; }, '?');
  }
  return text;
}

AttemptError thrown(const std::exception& error) { return presentable_error(type_name(error), error.what()); }

AttemptError thrown_unknown() { return {"unknown", "something was thrown that is no std::exception"}; }

AttemptError presentable_error(std::string type, std::string message) {
  return {presentable(std::move(type), kMaxTypeBytes), presentable(std::move(message), kMaxMessageBytes)};
}

}  // namespace hapax::detail
