#include "http/parse_request.h"

#include <gtest/gtest.h>

#include "core/field.h"
#include "http/error.h"
#include "http/query.h"
#include "wire/read_request.h"

namespace hapax::http {
namespace {

template <class Parse>
std::string pointer_of(Parse parse) {
  try {
    parse();
    return "accepted";
  } catch (const InvalidField& error) {
    return error.pointer();
  }
}

template <class Parse>
std::string error_of(Parse parse) {
  try {
    parse();
    return "accepted";
  } catch (...) {
    return parse_json(error_response(std::current_exception()).body).find("error")->text;
  }
}

TEST(ParseSubmit, TheKeyHeaderStandsForTheField) {
  SubmitRequest request = wire::read_submit(parse_json(R"({"type":"t"})"));
  Request http;
  apply_key_header(request, http);
  EXPECT_EQ(request.idempotency_key, std::nullopt);
  http.idempotency_key = "from-header";
  apply_key_header(request, http);
  EXPECT_EQ(request.idempotency_key, "from-header");
  apply_key_header(request, http);
  EXPECT_EQ(request.idempotency_key, "from-header");
  http.idempotency_key = "another";
  EXPECT_EQ(pointer_of([&] { apply_key_header(request, http); }), "/idempotency_key");
  http.idempotency_key = " ";
  EXPECT_EQ(error_of([&] { apply_key_header(request, http); }), "InvalidIdempotencyKey");
}

TEST(ParseBody, ChecksTheMediaTypeAndLocatesErrors) {
  Request request;
  request.body = "{\n  \"a\": }";
  request.content_type = "application/JSON; charset=utf-8";
  try {
    parse_body(request);
    FAIL();
  } catch (const RequestError& error) {
    const Json body = parse_json(error.response().body);
    EXPECT_EQ(body.find("error")->text, "InvalidJson");
    EXPECT_EQ(body.find("line")->as_int(), 2);
    EXPECT_EQ(body.find("column")->as_int(), 8);
    EXPECT_NE(body.find("message")->text.find("line 2, column 8"), std::string::npos);
  }
  request.content_type = "text/plain";
  EXPECT_EQ(error_of([&] { parse_body(request); }), "UnsupportedMediaType");
}

TEST(ParseRequestKey, IsRequiredAndChecked) {
  Request request;
  EXPECT_EQ(error_of([&] { parse_request_key(request); }), "IdempotencyKeyRequired");
  request.idempotency_key = "k";
  EXPECT_EQ(parse_request_key(request), "k");
  request.idempotency_key = " ";
  EXPECT_EQ(error_of([&] { parse_request_key(request); }), "InvalidIdempotencyKey");
  request.idempotency_key = std::string(201, 'x');
  EXPECT_EQ(error_of([&] { parse_request_key(request); }), "InvalidIdempotencyKey");
}

TEST(ParseList, ReadsEveryFilterAndRefusesTheRest) {
  const std::string id = ExecutionId{}.to_string();
  const std::string query = "queue=q&type=t&status=failed&idempotency_key=a%20b&parent=w%2F1&cursor=" + id + "&limit=7";
  const auto [filter, parent] = parse_list(query, "n", Kind::task);
  EXPECT_EQ(filter.name_space, "n");
  EXPECT_EQ(filter.queue, "q");
  EXPECT_EQ(filter.status, Status::failed);
  EXPECT_EQ(filter.idempotency_key, "a b");
  EXPECT_TRUE(filter.before);
  EXPECT_EQ(parent, "w/1");
  EXPECT_EQ(filter.kind, Kind::task);
  EXPECT_EQ(filter.limit, 7);
  EXPECT_EQ(parse_list("", "n", Kind::task).filter.limit, 100);
  EXPECT_EQ(parse_list("workflow_id=a", "n", Kind::workflow).filter.idempotency_key, "a");
  EXPECT_EQ(error_of([] { parse_list("workflow_id=a", "n", Kind::task); }), "InvalidRequest");
  for (const char* bad : {"limit=0", "limit=1001", "limit=x", "limit=", "status=odd", "cursor=x",
                          "parent=", "queue=", "colour=red", "limit=1&limit=2", "queue=%zz"}) {
    EXPECT_EQ(error_of([&] { parse_list(bad, "n", Kind::task); }), "InvalidRequest") << bad;
  }
}

}  // namespace
}  // namespace hapax::http
