#include "http/connection.h"

#include <algorithm>
#include <array>
#include <ctime>

#include <fmt/format.h>
#include <boost/asio/buffer.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/error.hpp>

#include "core/invariant.h"
#include "engine/check_request.h"
#include "http/call.h"
#include "http/compression.h"
#include "http/error.h"
#include "http/loop.h"
#include "http/request_head.h"

namespace hapax::http {

namespace asio = boost::asio;
namespace beast = boost::beast;
using boost::system::error_code;

namespace {

constexpr std::uint32_t kMaxHeaderBytes = 16 * 1024;
constexpr std::size_t kMaxPipelinedBytes = 16 * 1024;  // kept while a request waits; the rest stays in the socket
constexpr std::size_t kSmallBody = 16 * 1024;          // read although the request is already refused
constexpr std::size_t kParsedHere = 64 * 1024;         // a longer body would delay the loop's other clients
constexpr std::size_t kKeptBytes = 4 * 1024;           // of a buffer between requests
constexpr std::size_t kJoinedBytes = 64 * 1024;        // a body up to this size is written together with its head
constexpr std::size_t kPlainBytes = 1024;              // an answer up to this size is never compressed
constexpr std::size_t kCompressedHere = 16 * 1024;     // a longer one would delay the loop's other clients
constexpr std::size_t kDateBytes = 29;
constexpr std::chrono::seconds kLinger{2};
constexpr std::chrono::milliseconds kSpareTime{2000};  // of a connection beyond the limit
constexpr std::chrono::milliseconds kDrainPatience{
    1000};                                             // for a client that takes nothing of its answer while we stop
constexpr std::chrono::milliseconds kDrainPause{250};  // for a client that sends nothing while we stop
constexpr std::chrono::milliseconds kAnswerMargin{
    1000};  // the store's own time limit is more specific, so it comes first

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
    case 421: return "HTTP/1.1 421 Misdirected Request\r\n";
    case 431: return "HTTP/1.1 431 Request Header Fields Too Large\r\n";
    case 503: return "HTTP/1.1 503 Service Unavailable\r\n";
    default: return "HTTP/1.1 500 Internal Server Error\r\n";
  }
}

// By RFC 9110: "Wed, 18 Nov 2026 06:41:40 GMT". Updated every second.
std::string_view date_now() {
  thread_local std::time_t written = 0;
  thread_local std::array<char, 32> text{};
  const std::time_t now = std::time(nullptr);
  if (now != written) {
    constexpr std::array kDays{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};  // independent of the locale
    constexpr std::array kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    std::tm utc{};
    gmtime_r(&now, &utc);
    fmt::format_to_n(text.data(), kDateBytes, "{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT",
                     kDays.at(static_cast<std::size_t>(utc.tm_wday)), utc.tm_mday,
                     kMonths.at(static_cast<std::size_t>(utc.tm_mon)), utc.tm_year + 1900, utc.tm_hour, utc.tm_min,
                     utc.tm_sec);
    written = now;
  }
  return {text.data(), kDateBytes};
}

Response encoded(Response plain, Coding coding) {
  plain.body = compress(plain.body, coding);
  plain.headers.emplace_back("Content-Encoding", to_string(coding));
  plain.encoded = true;
  return plain;
}

bool would_block(const error_code& error) {
  return error == asio::error::would_block || error == asio::error::try_again;
}

void release_if_large(std::string& buffer) {
  buffer.capacity() > kKeptBytes ? std::string().swap(buffer) : buffer.clear();
}

}  // namespace

Connection::Connection(std::shared_ptr<Loop> loop, Socket socket, bool spare)
    : loop_(std::move(loop)), socket_(std::move(socket)), spare_(spare) {}

void Connection::start() {
  error_code ignored;
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  socket_.non_blocking(true, ignored);
  deadline_ = Clock::now() + (spare_ ? kSpareTime : loop_->options().idle_timeout);
  arm();
}

void Connection::drain() {
  draining_ = true;
  if (state_ == State::reading && incoming_ == nullptr) return read();
  const auto patience = state_ == State::writing ? kDrainPatience : kDrainPause;
  if (state_ != State::answering) deadline_ = std::min(deadline_, Clock::now() + patience);
  if (waiting_) std::exchange(waiting_, nullptr)->cancel();
}

void Connection::give_up() {
  draining_ = true;
  if (state_ == State::answering) expire();
  close();
}

void Connection::check_time(Clock::time_point now) {
  if (now < deadline_ || state_ == State::closed) return;
  if (state_ == State::answering) return expire();
  if (state_ != State::reading || incoming_ == nullptr) return close();
  draining_ ? refuse(shutting_down_response()) : refuse(beast::http::error::partial_message);
}

void Connection::close() {
  if (state_ == State::closed) return;
  state_ = State::closed;
  if (waiting_) std::exchange(waiting_, nullptr)->cancel();
  incoming_.reset();
  otherwise_ = nullptr;
  for (std::string* buffer : {&pending_, &head_, &body_}) std::string().swap(*buffer);
  loop_->let_go(std::exchange(held_bytes_, 0));
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
  if (state_ == State::answering) watch_for_hang_up();
}

void Connection::read() {
  error_code error;
  const std::size_t count = socket_.read_some(asio::buffer(loop_->scratch()), error);
  if (!error) return consume({loop_->scratch().data(), count});
  if (!would_block(error)) return close();
  draining_&& incoming_ == nullptr ? close() : arm();
}

// A client that has closed the connection, or its sending side, no longer waits for the answer.
void Connection::watch_for_hang_up() {
  if (pending_.size() >= kMaxPipelinedBytes) return;
  error_code error;
  const std::size_t room = std::min(kMaxPipelinedBytes - pending_.size(), loop_->scratch().size());
  const std::size_t count = socket_.read_some(asio::buffer(loop_->scratch().data(), room), error);
  if (error && !would_block(error)) return close();
  pending_.append(loop_->scratch().data(), count);
  arm();
}

// Closing a socket with unread bytes resets it, and the client may never see the answer that explains why.
void Connection::discard() {
  error_code error;
  socket_.read_some(asio::buffer(loop_->scratch()), error);
  if (error && !would_block(error)) return close();
  if (draining_ && !error) deadline_ = std::min(lingers_until_, Clock::now() + kDrainPause);
  arm();
}

void Connection::next() {
  state_ = State::reading;
  deadline_ = Clock::now() + loop_->options().idle_timeout;
  if (!pending_.empty()) return consume({});
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
  if (incoming_ == nullptr) {
    while (bytes.substr(used).starts_with("\r\n")) used += 2;
    if (used == bytes.size()) return used;
    begin_request();
  }
  Parser& parser = incoming_->parser;
  while (used < bytes.size() && !parser.is_done()) {
    const bool in_head = !parser.is_header_done();
    const std::size_t count = parser.put(asio::buffer(bytes.data() + used, bytes.size() - used), error);
    if (!error && in_head && parser.is_header_done()) head_done(bytes.substr(used, count));
    used += count;
    if (error || count == 0 || is_refused_at_once()) break;
  }
  if (error == beast::http::error::need_more) error = {};
  return used;
}

void Connection::begin_request() {
  incoming_ = std::make_shared<Incoming>(loop_->service().load());
  incoming_->parser.eager(false);  // stops at the end of the head
  incoming_->parser.header_limit(kMaxHeaderBytes);
  incoming_->parser.body_limit(loop_->options().max_body_bytes);
  route_ = Metrics::kNoRoute;
  bodyless_ = false;
  preferences_ = {};
  if (!spare_) deadline_ = Clock::now() + loop_->options().read_timeout;
}

// Trailers are ignored.
void Connection::head_done(std::string_view bytes) {
  Incoming& incoming = *incoming_;
  const auto& header = incoming.parser.get();
  incoming.parser.eager(true);
  keep_alive_ = header.keep_alive() && !spare_;
  old_version_ = header.version() < 11;
  bodyless_ = header.method() == beast::http::verb::head;
  preferences_ = read_preferences(header);
  try {
    read_head(incoming.request, header, bytes);
    changes_ = incoming.request.method != Method::get;
    const Route& route = loop_->service().admit(incoming.request, route_);
    if (spare_ && route.access != Access::open) throw overloaded("The server has reached its limit of connections.");
    incoming.route = &route;
    take_body_bytes();
  } catch (...) {
    incoming.refusal = error_response(std::current_exception());
  }
}

// The length of the whole body if it was declared, else what has arrived so far.
void Connection::take_body_bytes() {
  const auto told = incoming_->parser.content_length();
  const std::size_t bytes = told ? static_cast<std::size_t>(*told) : incoming_->parser.get().body().size();
  if (!incoming_->share.take_bytes(bytes)) throw too_many_bytes();
}

// Small bodies are read, so that the connection can continue.
bool Connection::is_refused_at_once() const {
  if (!incoming_->refusal || incoming_->parser.is_done()) return false;
  const auto told = incoming_->parser.content_length();
  const bool waits_to_send = incoming_->parser.get().count(beast::http::field::expect) > 0;
  return incoming_->refusal->close || waits_to_send || !told || *told > kSmallBody;
}

void Connection::after_feeding(const error_code& error) {
  if (error) return refuse(error);
  if (incoming_ == nullptr) return arm();
  try {
    if (incoming_->route != nullptr && incoming_->parser.chunked()) take_body_bytes();
  } catch (const RequestError& refusal) {
    return refuse(refusal.response());
  }
  if (is_refused_at_once()) return refuse(*std::move(incoming_->refusal));
  if (incoming_->parser.is_done()) return dispatch();
  continue_if_expected();
  arm();
}

void Connection::continue_if_expected() {
  if (incoming_->is_asked_for || !incoming_->parser.is_header_done()) return;
  incoming_->is_asked_for = true;
  if (!beast::iequals(incoming_->parser.get()[beast::http::field::expect], "100-continue")) return;
  error_code ignored;
  socket_.write_some(asio::buffer(std::string_view("HTTP/1.1 100 Continue\r\n\r\n")), ignored);
}

void Connection::dispatch() {
  const auto incoming = std::exchange(incoming_, nullptr);
  invariant(state_ == State::reading, "a request is dispatched once it is read");
  state_ = State::answering;
  received_ = Clock::now();
  deadline_ = received_ + loop_->options().store_timeout + kAnswerMargin;
  arm();  // to notice that the client hangs up
  const auto call = std::make_shared<Call>(shared_from_this(), ++ticket_, std::move(incoming->share));
  const Responder responder(call);
  if (incoming->refusal) return responder.answer(*std::move(incoming->refusal));
  if (incoming->route->access != Access::open && !call->take_request()) {
    return responder.answer(overloaded("The server has reached its limit of requests in hand.").response());
  }
  incoming->request.body = std::move(incoming->parser.get().body());
  Service& service = loop_->service();
  const bool is_long = incoming->request.body.size() > kParsedHere || !incoming->request.content_encoding.empty();
  if (!is_long) return service.run(*incoming->route, incoming->request, responder);
  service.run_elsewhere(
      responder, [&service, incoming, responder] { service.run(*incoming->route, incoming->request, responder); });
}

void Connection::refuse(const error_code& error) {
  using Http = beast::http::error;
  preferences_ = read_preferences(incoming_->parser.get());  // as far as they have arrived
  if (error == Http::body_limit) {
    refuse(payload_too_large(loop_->options().max_body_bytes).response());
  } else if (error == Http::header_limit) {
    refuse(RequestError(431, "HeadersTooLarge", "The request's headers are longer than the limit of 16384 bytes.")
               .response());
  } else if (error == Http::partial_message) {
    refuse(RequestError(408, "RequestTimeout", "The request did not arrive in time; nothing was done.").response());
  } else {
    refuse(RequestError(400, "MalformedHttp", "This is not an HTTP/1.1 request: " + error.message() + ".").response());
  }
}

// The rest of the request is not read, so the connection ends.
void Connection::refuse(Response response) {
  received_ = Clock::now();
  incoming_.reset();
  pending_.clear();
  lingers_ = true;
  response.close = true;
  write_as_preferred(std::move(response));
}

void Connection::wait(std::uint64_t ticket, std::shared_ptr<Waiting> waiting) {
  if (ticket != ticket_ || state_ != State::answering || draining_) return waiting->cancel();
  waiting_ = std::move(waiting);
  deadline_ = Clock::now() + kMaxWait + loop_->options().store_timeout + kAnswerMargin;
}

void Connection::limit(std::uint64_t ticket, std::chrono::milliseconds time, std::function<Response()> otherwise) {
  if (ticket != ticket_ || state_ != State::answering) return;
  deadline_ = received_ + time;
  otherwise_ = std::move(otherwise);
}

void Connection::send(std::uint64_t ticket, const std::function<Response()>& make) {
  if (ticket != ticket_ || state_ != State::answering) return;
  waiting_.reset();
  otherwise_ = nullptr;
  Response response;
  try {
    response = make();
  } catch (...) {
    response = error_response(std::current_exception());
  }
  response.encoded ? write(std::move(response)) : write_as_preferred(std::move(response));
}

void Connection::write_as_preferred(Response response) {
  if (response.status >= 400 && preferences_.problem) response = as_problem(response);
  if (preferences_.coding == Coding::identity || response.body.size() <= kPlainBytes) return write(std::move(response));
  if (response.body.size() > kCompressedHere && state_ == State::answering)
    return compress_elsewhere(std::move(response));
  write(encoded(std::move(response), preferences_.coding));
}

void Connection::compress_elsewhere(Response response) {
  const auto plain = std::make_shared<Response>(std::move(response));
  const Responder responder(std::make_shared<Call>(shared_from_this(), ticket_, Load::Share(loop_->service().load())));
  if (!responder.take_bytes(plain->body.size())) return write(std::move(*plain));
  deadline_ = Clock::time_point::max();  // the answer is ready, only not compressed
  try {
    loop_->service().compressing().begin(responder, [responder, plain, coding = preferences_.coding] {
      responder.answer(encoded(std::move(*plain), coding));
    });
  } catch (const std::exception&) {  // too much is waiting: send this one uncompressed
    write(std::move(*plain));
  }
}

// The answer did not arrive in time; a later one is dropped.
void Connection::expire() {
  if (waiting_) std::exchange(waiting_, nullptr)->cancel();
  const auto otherwise = std::exchange(otherwise_, nullptr);
  send(ticket_, otherwise ? otherwise : [this] { return late_response(changes_); });
}

void Connection::write(Response response) {
  invariant(state_ == State::reading || state_ == State::answering, "each request has one answer");
  state_ = State::writing;
  const auto now = Clock::now();
  loop_->service().metrics().observe(route_, response.status, now - received_);
  error_code ignored;
  if (response.close || (draining_ && pending_.empty() && socket_.available(ignored) == 0)) keep_alive_ = false;

  head_.reserve(256 + (response.body.size() <= kJoinedBytes ? response.body.size() : 0));
  head_.append(status_line(response.status));
  head_.append("Date: ").append(date_now()).append("\r\n");
  if (response.status != kNoContent) {
    head_.append("Content-Type: ").append(response.content_type);
    head_.append("\r\nContent-Length: ").append(std::to_string(response.body.size())).append("\r\n");
  }
  if (response.encoded || response.body.size() > kPlainBytes) head_.append("Vary: Accept-Encoding\r\n");
  if (response.status >= 400) head_.append("Vary: Accept\r\n");
  for (const auto& [name, value] : response.headers) head_.append(name).append(": ").append(value).append("\r\n");
  if (!keep_alive_) head_.append("Connection: close\r\n");
  if (keep_alive_ && old_version_) head_.append("Connection: keep-alive\r\n");
  head_.append("\r\n");
  if (bodyless_) response.body.clear();
  response.body.size() <= kJoinedBytes ? void(head_.append(response.body)) : void(body_ = std::move(response.body));

  // The socket nearly always takes everything at once; only the rest needs a round through the loop.
  error_code error;
  sent_bytes_ = socket_.write_some(std::array{asio::buffer(head_), asio::buffer(body_)}, error);
  if (error && !would_block(error)) return close();
  if (sent_bytes_ == head_.size() + body_.size()) return written();
  progress_ = now;
  held_bytes_ = head_.size() + body_.size();
  write_rest();
  loop_->hold(held_bytes_, *this);
}

void Connection::write_rest() {
  const auto patience = loop_->options().write_timeout;
  deadline_ = progress_ + (draining_ ? std::min(patience, kDrainPatience) : patience);
  socket_.async_wait(Socket::wait_write, [self = shared_from_this()](const error_code& error) {
    if (self->state_ == State::closed) return;
    error ? self->close() : self->on_writable();
  });
}

void Connection::on_writable() {
  const std::size_t of_head = std::min(sent_bytes_, head_.size());
  const std::array rest{asio::buffer(head_) + of_head, asio::buffer(body_) + (sent_bytes_ - of_head)};
  error_code error;
  const std::size_t count = socket_.write_some(rest, error);
  if (error && !would_block(error)) return close();
  if (count > 0) progress_ = Clock::now();
  sent_bytes_ += count;
  sent_bytes_ == held_bytes_ ? written() : write_rest();
}

void Connection::written() {
  invariant(state_ == State::writing, "only an answer that is being written ends");
  release_if_large(head_);
  std::string().swap(body_);
  loop_->let_go(std::exchange(held_bytes_, 0));
  if (keep_alive_) return next();
  if (!lingers_) return close();
  state_ = State::lingering;
  lingers_until_ = Clock::now() + kLinger;
  deadline_ = draining_ ? Clock::now() + kDrainPause : lingers_until_;
  error_code ignored;
  socket_.shutdown(Socket::shutdown_send, ignored);
  arm();
}

}  // namespace hapax::http
