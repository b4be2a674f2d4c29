#include "http/openapi.h"

#include <set>

#include <gtest/gtest.h>

#include "core/json.h"
#include "http/fake_engine.h"
#include "http/service.h"

namespace hapax::http {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  return out;
}

TEST(OpenApi, DescribesExactlyTheExistingRoutes) {
  FakeEngine engine;
  const Service service(engine, {});
  std::set<std::string> served, described;
  for (const Route& route : service.router().routes())
    served.insert(lower(to_string(route.method)) + " " + route.pattern);
  const Json document = parse_json(kOpenApi);
  for (const auto& [path, item] : document.find("paths")->members) {
    for (const auto& [method, operation] : item.members) described.insert(method + " " + path);
  }
  EXPECT_EQ(served, described);
}

TEST(OpenApi, OpenRoutesAreThoseWithoutSecurity) {
  FakeEngine engine;
  const Service service(engine, {});
  const Json document = parse_json(kOpenApi);
  for (const Route& route : service.router().routes()) {
    const Json* operation = document.find("paths")->find(route.pattern)->find(lower(to_string(route.method)));
    ASSERT_NE(operation, nullptr) << route.pattern;
    EXPECT_EQ(operation->find("security") != nullptr, route.access == Access::open) << route.pattern;
  }
}

void check_references(const Json& document, const Json& node) {
  if (const Json* reference = node.find("$ref")) {
    EXPECT_NE(document.at(std::string_view(reference->text).substr(1)), nullptr) << reference->text;
  }
  for (const auto& [name, value] : node.members) check_references(document, value);
  for (const Json& item : node.items) check_references(document, item);
}

TEST(OpenApi, EveryReferenceLeadsSomewhere) {
  const Json document = parse_json(kOpenApi);
  EXPECT_EQ(document.find("openapi")->text, "3.1.0");
  check_references(document, document);
}

}  // namespace
}  // namespace hapax::http
