#include "http/connection.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/error.hpp>

#include "http/error.h"
#include "http/loop.h"

namespace hapax::http {

namespace asio = boost::asio;
namespace beast = boost::beast;
using boost::system::error_code;

namespace {

constexpr std::uint32_t kMaxHeaderBytes = 16 * 1024;
constexpr std::size_t kMaxPipelinedBytes = 64 * 1024;  // kept while a request waits; more stays in the socket
constexpr std::size_t kKeptBytes = 4 * 1024;           // of a buffer between requests
constexpr std::size_t kJoinedBytes = 64 * 1024;        // a body up to this is written together with its head
constexpr std::chrono::seconds kLinger{2};

std::string_view status_line(int status) {
  switch (status) {
    case 200: return "HTTP/1.1 200 OK\r\n";
    case 201: return "HTTP/1.1 201 Created\r\n";
    case 202: return "HTTP/1.1 202 Accepted\r\n";
    case kNoContent: return "HTTP/1.1 204 No Content\r\n";
    case 400: return "HTTP/1.1 400 Bad Request\r\n";
    case 401: return "HTTP/1.1 401 Unauthorized\r\n";
    case 403: return "HTTP/1.1 403 Forbidden\r\n";
    case 404: return "HTTP/1.1 404 Not Found\r\n";
    case 405: return "HTTP/1.1 405 Method Not Allowed\r\n";
    case 408: return "HTTP/1.1 408 Request Timeout\r\n";
    case 409: return "HTTP/1.1 409 Conflict\r\n";
    case 413: return "HTTP/1.1 413 Payload Too Large\r\n";
    case 415: return "HTTP/1.1 415 Unsupported Media Type\r\n";
    case 431: return "HTTP/1.1 431 Request Header Fields Too Large\r\n";
    case 503: return "HTTP/1.1 503 Service Unavailable\r\n";
    default: return "HTTP/1.1 500 Internal Server Error\r\n";
  }
}

Method method_of(beast::http::verb verb) {
  switch (verb) {
    case beast::http::verb::get:
    case beast::http::verb::head: return Method::get;
    case beast::http::verb::post: return Method::post;
    case beast::http::verb::put: return Method::put;
    case beast::http::verb::delete_: return Method::del;
    default: return Method::other;
  }
}

void set_once(std::string_view& header, std::string_view name, std::string_view value) {
  if (header.data() != nullptr) throw invalid_header(name, "is given twice");
  header = value;
}

std::string_view as_view(beast::string_view text) { return {text.data(), text.size()}; }

// Finds the headers that matter in one pass. Throws RequestError.
void read_headers(Request& request, const beast::http::fields& fields, bool needs_host) {
  std::string_view host;
  // Any other coding would leave it open where the body ends, and let one request be taken for two.
  const auto coding = fields[beast::http::field::transfer_encoding];
  if (fields.count(beast::http::field::transfer_encoding) > 0 && !beast::iequals(coding, "chunked")) {
    throw RequestError(400, "MalformedHttp", "The only Transfer-Encoding that is understood is chunked.").closing();
  }
  for (const auto& field : fields) {
    const std::string_view value = as_view(field.value());
    switch (field.name()) {
      case beast::http::field::content_type: set_once(request.content_type, "Content-Type", value); break;
      case beast::http::field::host: set_once(host, "Host", value); break;
      case beast::http::field::origin: request.has_origin = true; break;
      case beast::http::field::authorization: set_once(request.authorization, "Authorization", value); break;
      case beast::http::field::unknown:
        if (beast::iequals(field.name_string(), "Idempotency-Key")) {
          set_once(request.idempotency_key, "Idempotency-Key", value);
        } else if (beast::iequals(field.name_string(), "Hapax-Namespace")) {
          set_once(request.name_space_header, "Hapax-Namespace", value);
        } else if (const auto name = as_view(field.name_string()); beast::iequals(name.substr(0, 3), "ce-")) {
          request.event_headers.emplace_back(name.substr(3), value);
        }
        break;
      default: break;
    }
  }
  if (needs_host && host.data() == nullptr) {
    throw RequestError(400, "MalformedHttp", "This is no HTTP/1.1 request: it has no Host header.").closing();
  }
}

void read_target(Request& request, std::string_view target) {
  if (!target.starts_with('/')) {  // a proxy's form: http://host/path
    const auto authority = target.find("://");
    const auto path = authority == std::string_view::npos ? authority : target.find('/', authority + 3);
    target = path == std::string_view::npos ? target : target.substr(path);
  }
  target = target.substr(0, target.find('#'));
  const auto question = target.find('?');
  request.path = target.substr(0, question);
  if (question != std::string_view::npos) request.query = target.substr(question + 1);
}

bool would_block(const error_code& error) {
  return error == asio::error::would_block || error == asio::error::try_again;
}

void release_if_large(std::string& buffer) {
  buffer.capacity() > kKeptBytes ? std::string().swap(buffer) : buffer.clear();
}

}  // namespace

Connection::Connection(std::shared_ptr<Loop> loop, Socket socket)
    : loop_(std::move(loop)), socket_(std::move(socket)) {}

void Connection::start() {
  error_code ignored;
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  socket_.non_blocking(true, ignored);
  deadline_ = Clock::now() + loop_->options().idle_timeout;
  arm();
}

void Connection::drain() {
  draining_ = true;
  if (state_ == State::reading && parser_ == nullptr) return read();
  if (waiting_) std::exchange(waiting_, nullptr)->cancel();
}

void Connection::check_time(Clock::time_point now) {
  if (now < deadline_ || state_ == State::closed) return;
  if (state_ == State::reading && parser_ != nullptr) return refuse(beast::http::error::partial_message);
  close();
}

void Connection::close() {
  if (state_ == State::closed) return;
  state_ = State::closed;
  if (waiting_) std::exchange(waiting_, nullptr)->cancel();
  error_code ignored;
  socket_.close(ignored);
  loop_->forget(shared_from_this());
}

void Connection::arm() {
  if (armed_) return;
  armed_ = true;
  socket_.async_wait(Socket::wait_read, [self = shared_from_this()](const error_code& error) {
    self->armed_ = false;
    if (self->state_ == State::closed) return;
    error ? self->close() : self->on_readable();
  });
}

void Connection::on_readable() {
  if (state_ == State::reading) return read();
  if (state_ == State::lingering) return discard();
  if (state_ == State::answering && waiting_) watch_for_hang_up();
}

void Connection::read() {
  error_code error;
  const std::size_t count = socket_.read_some(asio::buffer(loop_->scratch()), error);
  if (!error) return consume({loop_->scratch().data(), count});
  if (!would_block(error)) return close();
  draining_&& parser_ == nullptr ? close() : arm();
}

void Connection::watch_for_hang_up() {
  error_code error;
  const std::size_t count = socket_.read_some(asio::buffer(loop_->scratch()), error);
  if (error && !would_block(error)) {
    ended_ = true;
    return std::exchange(waiting_, nullptr)->cancel();
  }
  pending_.append(loop_->scratch().data(), count);
  if (pending_.size() < kMaxPipelinedBytes) arm();
}

// Closing a socket with unread bytes resets it, and the client may never see the answer that explains why.
void Connection::discard() {
  error_code error;
  socket_.read_some(asio::buffer(loop_->scratch()), error);
  error && !would_block(error) ? close() : arm();
}

void Connection::next() {
  state_ = State::reading;
  deadline_ = Clock::now() + loop_->options().idle_timeout;
  if (!pending_.empty()) return consume({});
  if (ended_) return close();
  draining_ ? read() : arm();
}

void Connection::consume(std::string_view chunk) {
  const bool direct = pending_.empty();
  if (!direct) pending_.append(chunk);
  const std::string_view bytes = direct ? chunk : std::string_view(pending_);
  error_code error;
  const std::size_t used = feed(bytes, error);
  if (!direct) {
    pending_.erase(0, used);
    if (pending_.empty()) release_if_large(pending_);
  } else if (used < bytes.size()) {
    pending_.assign(bytes.substr(used));
  }
  after_feeding(error);
}

std::size_t Connection::feed(std::string_view bytes, error_code& error) {
  std::size_t used = 0;
  if (parser_ == nullptr) {
    while (bytes.substr(used).starts_with("\r\n")) used += 2;
    if (used == bytes.size()) return used;
    parser_ = std::make_unique<Parser>();
    parser_->eager(true);
    parser_->header_limit(kMaxHeaderBytes);
    parser_->body_limit(loop_->options().max_body_bytes);
    continued_ = false;
    deadline_ = Clock::now() + loop_->options().read_timeout;
  }
  while (used < bytes.size() && !parser_->is_done()) {
    const std::size_t count = parser_->put(asio::buffer(bytes.data() + used, bytes.size() - used), error);
    used += count;
    if (error || count == 0) break;
  }
  if (error == beast::http::error::need_more) error = {};
  return used;
}

void Connection::after_feeding(const error_code& error) {
  if (error) return refuse(error);
  if (parser_ != nullptr && parser_->is_done()) return dispatch();
  if (parser_ != nullptr) continue_if_expected();
  if (ended_) return close();
  arm();
}

void Connection::continue_if_expected() {
  if (continued_ || !parser_->is_header_done()) return;
  continued_ = true;
  if (!beast::iequals(parser_->get()[beast::http::field::expect], "100-continue")) return;
  error_code ignored;
  socket_.write_some(asio::buffer(std::string_view("HTTP/1.1 100 Continue\r\n\r\n")), ignored);
}

void Connection::dispatch() {
  auto message = parser_->release();
  parser_.reset();
  state_ = State::answering;
  deadline_ = Clock::time_point::max();
  received_ = Clock::now();
  keep_alive_ = message.keep_alive();
  old_version_ = message.version() < 11;
  bodyless_ = message.method() == beast::http::verb::head;
  route_ = Metrics::kNoRoute;
  const Responder responder(shared_from_this(), ++ticket_);
  Request request;
  request.method = method_of(message.method());
  request.body = std::move(message.body());
  read_target(request, {message.target().data(), message.target().size()});
  try {
    read_headers(request, message, !old_version_);
  } catch (const RequestError& error) {
    return responder.answer(error.response());
  }
  route_ = loop_->service().handle(request, responder);
}

void Connection::refuse(const error_code& error) {
  using Http = beast::http::error;
  received_ = Clock::now();
  route_ = Metrics::kNoRoute;
  bodyless_ = false;
  parser_.reset();
  pending_.clear();
  lingers_ = true;
  const auto answer = [this](RequestError&& refusal) { write(std::move(refusal).closing().response()); };
  if (error == Http::body_limit) {
    const std::string limit = std::to_string(loop_->options().max_body_bytes);
    answer({413, "PayloadTooLarge", "The body is longer than this server takes: " + limit + " bytes."});
  } else if (error == Http::header_limit) {
    answer({431, "HeadersTooLarge", "The request's headers are longer than this server takes: 16384 bytes."});
  } else if (error == Http::partial_message) {
    answer({408, "RequestTimeout", "The request did not arrive in time; nothing was done."});
  } else {
    answer({400, "MalformedHttp", "This is no HTTP/1.1 request: " + error.message() + "."});
  }
}

void Connection::answer(std::uint64_t ticket, std::function<Response()> make) {
  loop_->answer(shared_from_this(), ticket, std::move(make));
}

void Connection::wait(std::uint64_t ticket, std::shared_ptr<Waiting> waiting) {
  if (ticket != ticket_ || state_ != State::answering) return;
  if (draining_) return waiting->cancel();
  waiting_ = std::move(waiting);
  arm();
}

void Connection::send(std::uint64_t ticket, const std::function<Response()>& make) {
  if (ticket != ticket_ || state_ != State::answering) return;
  waiting_.reset();
  Response response;
  try {
    response = make();
  } catch (...) {
    response = error_response(std::current_exception());
  }
  write(std::move(response));
}

void Connection::write(Response response) {
  state_ = State::writing;
  const auto now = Clock::now();
  loop_->service().metrics().observe(route_, response.status, now - received_);
  deadline_ = now + loop_->options().idle_timeout;
  error_code ignored;
  if (response.close || (draining_ && pending_.empty() && socket_.available(ignored) == 0)) keep_alive_ = false;

  head_.reserve(128 + (response.body.size() <= kJoinedBytes ? response.body.size() : 0));
  head_.append(status_line(response.status));
  if (response.status != kNoContent) {
    head_.append("Content-Type: ").append(response.content_type);
    head_.append("\r\nContent-Length: ").append(std::to_string(response.body.size())).append("\r\n");
  }
  for (const auto& [name, value] : response.headers) head_.append(name).append(": ").append(value).append("\r\n");
  if (!keep_alive_) head_.append("Connection: close\r\n");
  if (keep_alive_ && old_version_) head_.append("Connection: keep-alive\r\n");
  head_.append("\r\n");
  if (bodyless_) response.body.clear();
  response.body.size() <= kJoinedBytes ? void(head_.append(response.body)) : void(body_ = std::move(response.body));

  // The socket nearly always takes all of it at once; only what it does not take needs a round through the loop.
  error_code error;
  const std::size_t count = socket_.write_some(std::array{asio::buffer(head_), asio::buffer(body_)}, error);
  if (error && !would_block(error)) return close();
  count == head_.size() + body_.size() ? written() : write_rest(count);
}

void Connection::write_rest(std::size_t written) {
  const std::size_t of_head = std::min(written, head_.size());
  asio::async_write(socket_, std::array{asio::buffer(head_) + of_head, asio::buffer(body_) + (written - of_head)},
                    [self = shared_from_this()](const error_code& error, std::size_t) {
                      if (self->state_ == State::closed) return;
                      error ? self->close() : self->written();
                    });
}

void Connection::written() {
  release_if_large(head_);
  std::string().swap(body_);
  if (keep_alive_) return next();
  if (!lingers_) return close();
  state_ = State::lingering;
  deadline_ = Clock::now() + kLinger;
  error_code ignored;
  socket_.shutdown(Socket::shutdown_send, ignored);
  arm();
}

}  // namespace hapax::http
