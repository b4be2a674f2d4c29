#include "doors/doors.h"

#include <sstream>

#include "cli/cli.h"
#include "client/remote_engine.h"
#include "core/time.h"
#include "open/open_engine.h"
#include "store/memory/memory_store.h"

namespace hapax::doors {

namespace {

const SystemClock kClock;

ServerOptions any_port() {
  ServerOptions options;
  options.port = 0;
  return options;
}

std::string place_of(const std::string& pointer, const std::string& parameter, const std::string& header) {
  if (!parameter.empty()) return "parameter " + parameter;
  return header.empty() ? pointer : "header " + header;
}

std::string text_of(const Json& body, std::string_view member) {
  const Json* value = body.find(member);
  return value ? value->text : "";
}

}  // namespace

Fault fault_of(const std::function<void()>& call) {
  using Place = InvalidField::Place;
  try {
    call();
    return kAccepted;
  } catch (const InvalidField& error) {
    const std::string& name = error.name();
    return {error.code(), place_of(error.pointer(), error.place() == Place::parameter ? name : "",
                                   error.place() == Place::header ? name : "")};
  } catch (const Error& error) {
    const ErrorDetails& details = error.details();
    return {error.code(), place_of(details.pointer, details.parameter, details.header)};
  }
}

Doors::Doors()
    : local_(start_engine(open_memory_store(kClock), {})),
      served_(start_engine(open_memory_store(kClock), {})),
      server_(start_server(*served_, any_port())),
      url_("http://127.0.0.1:" + std::to_string(server_->port())),
      remote_(connect_engine({.url = url_, .token = "", .name_space = space_})),
      http_(url_, {}),
      embedded_(open("memory:")),
      far_(open(url_)) {}

Answer Doors::send(const std::string& method, const std::string& path, const std::string& body,
                   const std::vector<std::string>& headers) {
  HttpRequest request{.method = method, .path = path, .body = body};
  request.headers = headers;
  request.repeats = 1;
  const HttpAnswer answer = http_.send(request);
  return {answer.status, answer.body.empty() ? Json() : parse_json(answer.body)};
}

Fault Doors::over_http(const std::string& method, const std::string& path, const std::string& body,
                       const std::vector<std::string>& headers) {
  const Answer answer = send(method, path, body, headers);
  if (answer.status < 400) return kAccepted;
  return {text_of(answer.body, "error"),
          place_of(text_of(answer.body, "pointer"), text_of(answer.body, "parameter"), text_of(answer.body, "header"))};
}

std::pair<int, std::string> Doors::on_command_line(std::vector<std::string> arguments) {
  std::istringstream in;
  std::ostringstream out, err;
  const Program program{
      "1",
      {},
      in,
      out,
      err,
      false,
      false,
      [](const std::string&, OpenStoreOptions) { return open_store("memory:"); },
      [](const std::string& url, OpenEngineOptions options) { return open_engine(url, std::move(options)).engine; }};
  arguments.insert(arguments.end(), {"--url", url_});
  const int code = run_cli(std::move(arguments), program);
  return {code, err.str()};
}

}  // namespace hapax::doors
