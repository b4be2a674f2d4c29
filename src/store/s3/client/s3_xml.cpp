#include "store/s3/client/s3_xml.h"

#include <charconv>
#include <functional>

#include "core/hex.h"

namespace hapax {

namespace {

void append_utf8(std::string& out, std::uint32_t code) {
  const auto add = [&out](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xC0 | code >> 6), add(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    add(0xE0 | code >> 12), add(0x80 | (code >> 6 & 0x3F)), add(0x80 | (code & 0x3F));
  } else {
    add(0xF0 | code >> 18), add(0x80 | (code >> 12 & 0x3F)), add(0x80 | (code >> 6 & 0x3F)), add(0x80 | (code & 0x3F));
  }
}

// False for an entity that XML does not know.
bool append_entity(std::string& out, std::string_view name) {
  if (name == "amp") return out += '&', true;
  if (name == "lt") return out += '<', true;
  if (name == "gt") return out += '>', true;
  if (name == "quot") return out += '"', true;
  if (name == "apos") return out += '\'', true;
  if (!name.starts_with('#')) return false;
  const bool hex = name.starts_with("#x");
  name.remove_prefix(hex ? 2 : 1);
  std::uint32_t code = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), code, hex ? 16 : 10);
  if (error != std::errc() || end != name.data() + name.size() || code > 0x10FFFF) return false;
  append_utf8(out, code);
  return true;
}

bool unescape(std::string_view text, std::string& out) {
  out.clear();
  while (!text.empty()) {
    const std::size_t plain = std::min(text.find('&'), text.size());
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const std::size_t end = text.find(';');
    if (end == std::string_view::npos || !append_entity(out, text.substr(1, end - 1))) return false;
    text.remove_prefix(end + 1);
  }
  return true;
}

// With encoding-type=url; AWS writes a blank as +.
std::optional<std::string> decode_name(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i] == '+' ? ' ' : text[i];
      continue;
    }
    const auto byte = i + 2 < text.size() ? parse_hex(text[i + 1], text[i + 2]) : std::nullopt;
    if (!byte) return {};
    out += static_cast<char>(*byte);
    i += 2;
  }
  return out;
}

// An element, reported when it ends.
struct Element {
  std::string_view name;
  std::string_view whole;    // from its < to its >
  std::string_view content;  // between its tags
  std::size_t depth = 0;     // 0: the root
};

// The name in a tag, without its prefix.
std::string_view tag_name(std::string_view tag) {
  std::string_view name = tag.substr(0, tag.find_first_of(" \t\r\n/"));
  if (const auto colon = name.find(':'); colon != std::string_view::npos) name.remove_prefix(colon + 1);
  return name;
}

// Visits all elements, inner before outer. False if it is not a well-formed document of elements and text.
bool walk(std::string_view xml, const std::function<void(const Element&)>& ended) {
  struct Open {
    std::string_view name;
    std::size_t begin, content;
  };
  std::vector<Open> open;
  std::size_t at = 0;
  bool any = false;
  while ((at = xml.find('<', at)) != std::string_view::npos) {
    const std::size_t end = xml.find('>', at);
    if (end == std::string_view::npos) return false;
    const std::string_view tag = xml.substr(at + 1, end - at - 1);
    if (tag.empty()) return false;
    if (tag.starts_with('?') && !any) {  // <?xml …?>
    } else if (tag.starts_with('/')) {
      if (open.empty() || tag_name(tag.substr(1)) != open.back().name) return false;
      const Open element = open.back();
      open.pop_back();
      ended({element.name, xml.substr(element.begin, end + 1 - element.begin),
             xml.substr(element.content, at - element.content), open.size()});
    } else if (tag_name(tag).empty() || tag.front() == '!' || (any && open.empty())) {
      return false;
    } else if (tag.ends_with('/')) {
      ended({tag_name(tag), xml.substr(at, end + 1 - at), {}, open.size()});
      any = true;
    } else {
      open.push_back({tag_name(tag), at, end + 1});
      any = true;
    }
    at = end + 1;
  }
  return any && open.empty();
}

}  // namespace

std::optional<Listing> parse_listing(std::string_view xml) {
  Listing listing;
  Listed current;
  bool fine = true, named = false, truncated_told = false, root = false;
  std::string text;
  const bool whole = walk(xml, [&](const Element& element) {
    if (element.depth == 2 && element.name == "Key") {
      auto name = unescape(element.content, text) ? decode_name(text) : std::nullopt;
      fine = fine && name;
      named = true;
      current.name = name.value_or("");
    } else if (element.depth == 2 && element.name == "LastModified") {
      const auto time = parse_time(element.content);
      fine = fine && time;
      current.modified_at = time.value_or(Time{});
    } else if (element.depth == 1 && element.name == "Contents") {
      fine = fine && named;
      named = false;
      listing.objects.push_back(std::move(current));
      current = {};
    } else if (element.depth == 1 && element.name == "IsTruncated") {
      truncated_told = true;
      listing.more = element.content == "true";
    } else if (element.depth == 0) {
      root = element.name == "ListBucketResult";
    }
  });
  if (!whole || !fine || !truncated_told || !root) return {};
  return listing;
}

S3Error parse_error(std::string_view xml) {
  return {text_of(xml, "Code").value_or(""), text_of(xml, "Message").value_or("")};
}

std::optional<std::vector<std::string>> children(std::string_view xml, std::string_view name) {
  std::vector<std::string> found;
  const bool whole = walk(xml, [&](const Element& element) {
    if (element.depth == 1 && element.name == name) found.emplace_back(element.whole);
  });
  if (!whole) return {};
  return found;
}

std::optional<std::string> text_of(std::string_view xml, std::string_view name) {
  std::optional<std::string> found;
  const bool whole = walk(xml, [&](const Element& element) {
    std::string text;
    if (!found && element.name == name && unescape(element.content, text)) found = text;
  });
  return whole ? found : std::nullopt;
}

std::string escape_xml(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      default: out += c;
    }
  }
  return out;
}

}  // namespace hapax
