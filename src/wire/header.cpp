#include "wire/header.h"

#include <fmt/format.h>

namespace hapax::wire {

std::string percent_encode(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '.' || c == '_' || c == '~';
    if (plain) {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

std::string write_key_header(std::string_view key) {
  const bool as_it_is = key.empty() || (key.front() != '"' && key.front() != ' ' && key.back() != ' ');
  if (as_it_is) return std::string(key);
  std::string header = "\"";
  for (const char c : key) {
    if (c == '"' || c == '\\') header += '\\';
    header += c;
  }
  return header + '"';
}

std::optional<std::string> read_key_header(std::string_view header) {
  if (!header.starts_with('"')) return std::string(header);
  if (header.size() < 2 || header.back() != '"') return std::nullopt;
  header = header.substr(1, header.size() - 2);
  std::string key;
  for (std::size_t i = 0; i < header.size(); ++i) {
    const auto byte = static_cast<unsigned char>(header[i]);
    if (byte < 0x20 || byte == 0x7f || byte == '"') return std::nullopt;
    if (byte == '\\') {
      const bool escapes = i + 1 < header.size() && (header[i + 1] == '"' || header[i + 1] == '\\');
      if (!escapes) return std::nullopt;
      ++i;
    }
    key += header[i];
  }
  return key;
}

}  // namespace hapax::wire
