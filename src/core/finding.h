// The result of a check: fine, worth a look, or wrong; and what to do about it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hapax {

struct Finding {
  enum class Verdict : std::uint8_t { ok, warn, fail };

  Verdict verdict = Verdict::ok;
  std::string about;
  std::string says;
};

constexpr std::string_view to_string(Finding::Verdict verdict) {
  switch (verdict) {
    case Finding::Verdict::ok: return "ok";
    case Finding::Verdict::warn: return "warn";
    case Finding::Verdict::fail: return "fail";
  }
  return {};
}

}  // namespace hapax
