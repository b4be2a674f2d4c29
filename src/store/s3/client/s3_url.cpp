#include "store/s3/client/s3_url.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string_view>

#include "core/failure.h"
#include "core/hex.h"

namespace hapax {

namespace {

constexpr std::string_view kForm =
    "write s3://BUCKET/PREFIX, and for a server other than AWS ?endpoint=http://HOST:PORT behind it";

[[noreturn]] void refuse(const std::string& why) { throw Failure(Failure::Code::misuse, "the S3 URL: " + why); }

std::string percent_decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const auto byte = i + 2 < text.size() ? parse_hex(text[i + 1], text[i + 2]) : std::nullopt;
    if (!byte) refuse("a % is written %25");
    out += static_cast<char>(*byte);
    i += 2;
  }
  return out;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const auto first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

using Settings = std::map<std::string, std::string>;

// The settings of one section of a file in the format of AWS's tools. Nothing if there is no such file or section.
Settings read_section(const std::string& path, const std::string& section) {
  Settings settings;
  std::ifstream file(path);
  bool inside = false;
  for (std::string raw; std::getline(file, raw);) {
    const std::string_view line = trimmed(raw);
    if (line.empty() || line.front() == '#' || line.front() == ';') continue;
    if (line.front() == '[') {
      inside = line.back() == ']' && trimmed(line.substr(1, line.size() - 2)) == section;
    } else if (const auto equals = line.find('='); inside && equals != std::string_view::npos) {
      settings.emplace(trimmed(line.substr(0, equals)), trimmed(line.substr(equals + 1)));
    }
  }
  return settings;
}

std::string file_path(const EnvironmentLookup& environment, const std::string& variable, const std::string& name) {
  if (const auto path = environment(variable)) return *path;
  const auto home = environment("HOME");
  return home ? *home + "/.aws/" + name : "";
}

Settings read_profile(const EnvironmentLookup& environment, const std::string& profile) {
  Settings settings = read_section(file_path(environment, "AWS_SHARED_CREDENTIALS_FILE", "credentials"), profile);
  const std::string section = profile == "default" ? profile : "profile " + profile;
  settings.merge(read_section(file_path(environment, "AWS_CONFIG_FILE", "config"), section));
  return settings;
}

// The first of these that says something.
std::optional<std::string> first_of(const EnvironmentLookup& environment, std::initializer_list<const char*> variables,
                                    const Settings& profile, const char* setting) {
  for (const char* variable : variables) {
    if (auto value = environment(variable)) return value;
  }
  const auto found = profile.find(setting);
  return found == profile.end() || found->second.empty() ? std::nullopt : std::optional(found->second);
}

S3Credentials find_credentials(const EnvironmentLookup& environment, const Settings& profile,
                               const std::string& profile_name, bool profile_first) {
  S3Credentials found;
  const auto access = environment("AWS_ACCESS_KEY_ID");
  const auto secret = environment("AWS_SECRET_ACCESS_KEY");
  if (!profile_first && access.has_value() != secret.has_value()) {
    refuse(fmt::format("{} is set and {} is not; set both", access ? "AWS_ACCESS_KEY_ID" : "AWS_SECRET_ACCESS_KEY",
                       access ? "AWS_SECRET_ACCESS_KEY" : "AWS_ACCESS_KEY_ID"));
  }
  if (!profile_first && access) return {*access, *secret, environment("AWS_SESSION_TOKEN").value_or("")};
  const auto get = [&](const char* setting) { return first_of(environment, {}, profile, setting).value_or(""); };
  found = {get("aws_access_key_id"), get("aws_secret_access_key"), get("aws_session_token")};
  if (found.access_key.empty() || found.secret_key.empty()) {
    refuse(
        fmt::format("there are no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or put "
                    "aws_access_key_id and aws_secret_access_key into profile \"{}\" of {}",
                    profile_name, file_path(environment, "AWS_SHARED_CREDENTIALS_FILE", "credentials")));
  }
  return found;
}

Settings parse_query(std::string_view query) {
  constexpr std::string_view kKnown[] = {"endpoint", "region", "style", "profile"};
  Settings options;
  while (!query.empty()) {
    const std::string_view option = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(option.size() + 1, query.size()));
    const std::string name(option.substr(0, option.find('=')));
    if (std::find(std::begin(kKnown), std::end(kKnown), name) == std::end(kKnown)) {
      refuse(fmt::format("there is no option \"{}\"; there are endpoint, region, style and profile", name));
    }
    const std::string value = percent_decoded(option.substr(std::min(name.size() + 1, option.size())));
    if (value.empty()) refuse(fmt::format("{} is empty", name));
    if (!options.emplace(name, value).second) refuse(fmt::format("{} is there twice", name));
  }
  return options;
}

std::string checked_endpoint(std::string endpoint) {
  while (endpoint.ends_with('/')) endpoint.pop_back();
  // A port that is sent in no Host header must not be signed either.
  for (const auto& [scheme, port] : {std::pair("http://", ":80"), std::pair("https://", ":443")}) {
    if (endpoint.starts_with(scheme) && endpoint.ends_with(port))
      endpoint.erase(endpoint.size() - std::string_view(port).size());
  }
  const bool http = endpoint.starts_with("http://") || endpoint.starts_with("https://");
  const std::string_view host = http ? std::string_view(endpoint).substr(endpoint.find("//") + 2) : "";
  if (host.empty() || host.find_first_of("/?#@ ") != std::string_view::npos) {
    refuse(fmt::format("the endpoint \"{}\" is not of the form https://HOST or http://HOST:PORT", endpoint));
  }
  return endpoint;
}

void check_bucket(const std::string& bucket) {
  if (bucket.empty()) refuse(fmt::format("the bucket is missing; {}", kForm));
  const bool plain = bucket.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789.-_ABCDEFGHIJKLMNOPQRSTUVWXYZ") ==
                     std::string::npos;
  if (!plain || bucket.size() > 255) refuse(fmt::format("\"{}\" cannot be the name of a bucket; {}", bucket, kForm));
}

bool is_path_style(const Settings& options, const S3Address& address, bool other_endpoint) {
  const auto style = options.find("style");
  // A dot in the bucket's name would not match AWS's certificate for *.s3.REGION.amazonaws.com.
  if (style == options.end()) return other_endpoint || address.bucket.find('.') != std::string::npos;
  if (style->second != "path" && style->second != "virtual") {
    refuse(fmt::format("style is path or virtual, not \"{}\"", style->second));
  }
  return style->second == "path";
}

}  // namespace

std::optional<std::string> environment_variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value && *value ? std::optional<std::string>(value) : std::nullopt;
}

std::string S3Address::host() const {
  const std::string host = endpoint.substr(endpoint.find("//") + 2);
  return path_style ? host : bucket + "." + host;
}

std::string S3Address::origin() const { return endpoint.substr(0, endpoint.find("//") + 2) + host(); }

S3Address parse_s3_url(const std::string& url, const EnvironmentLookup& environment) {
  constexpr std::string_view kScheme = "s3://";
  if (!url.starts_with(kScheme)) refuse(fmt::format("it does not begin with s3://; {}", kForm));
  if (url.find('#') != std::string::npos) refuse("# has no meaning here; in a prefix write %23");
  std::string_view rest = std::string_view(url).substr(kScheme.size());
  const std::string_view place = rest.substr(0, rest.find('?'));
  const Settings options = parse_query(rest.substr(std::min(place.size() + 1, rest.size())));
  const auto option = [&](const char* name) {
    const auto found = options.find(name);
    return found == options.end() ? std::nullopt : std::optional(found->second);
  };

  S3Address address;
  address.bucket = place.substr(0, place.find('/'));
  check_bucket(address.bucket);
  address.prefix = percent_decoded(place.substr(std::min(address.bucket.size() + 1, place.size())));
  if (!address.prefix.empty() && !address.prefix.ends_with('/')) address.prefix += '/';
  if (address.prefix.size() > 256 || address.prefix.starts_with('/')) {
    refuse("the prefix has at most 256 bytes and begins with no /");
  }

  const std::string profile_name = option("profile").value_or(environment("AWS_PROFILE").value_or("default"));
  const Settings profile = read_profile(environment, profile_name);
  address.credentials = find_credentials(environment, profile, profile_name, option("profile").has_value());

  auto region = option("region");
  if (!region) region = first_of(environment, {"AWS_REGION", "AWS_DEFAULT_REGION"}, profile, "region");
  auto endpoint = option("endpoint");
  if (!endpoint) endpoint = first_of(environment, {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"}, profile, "endpoint_url");
  if (!region && !endpoint) refuse("the region is missing; write ?region=us-east-1 behind it, or set AWS_REGION");
  address.region = region.value_or("us-east-1");
  address.endpoint =
      endpoint ? checked_endpoint(*endpoint) : fmt::format("https://s3.{}.amazonaws.com", address.region);
  address.path_style = is_path_style(options, address, endpoint.has_value());
  address.ca_bundle = environment("AWS_CA_BUNDLE").value_or("");
  return address;
}

}  // namespace hapax
