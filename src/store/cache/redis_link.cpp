#include "store/cache/redis_link.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

namespace hapax {

namespace {

// More than a cache ever asks for; a longer length is garbage.
constexpr std::size_t kMaxText = 64 << 20;
constexpr std::size_t kMaxItems = 100'000;
constexpr std::size_t kMaxLine = 4096;

[[noreturn]] void give_up(std::string_view why) { throw RedisTrouble(std::string(why)); }

std::string words_of(int error) { return std::strerror(error); }

constexpr std::string_view kNoise = "what it answers makes no sense";

// A length in the protocol's form; nothing for -1, which means absent.
std::optional<std::size_t> length_in(std::string_view text, std::size_t most) {
  if (text == "-1") return std::nullopt;
  std::size_t length = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
  if (error != std::errc() || end != text.data() + text.size() || length > most) give_up(kNoise);
  return length;
}

}  // namespace

RedisLink::RedisLink(const RedisAddress& address, Timeout timeout) {
  connect_to(address, std::chrono::steady_clock::now() + timeout);
  try {
    if (!address.password.empty()) {
      std::vector<std::string_view> words{"AUTH"};
      if (!address.user.empty()) words.push_back(address.user);
      words.push_back(address.password);
      expect_ok(words, timeout);
    }
    if (address.database != 0) {
      const std::string number = std::to_string(address.database);
      expect_ok(std::array<std::string_view, 2>{"SELECT", number}, timeout);
    }
    // An answer to anything: a socket that merely accepts is not a Redis.
    const Reply pong = ask(std::array<std::string_view, 1>{"PING"}, timeout);
    if (pong.kind == Reply::Kind::error) give_up(pong.text);
    if (pong.kind != Reply::Kind::status || pong.text != "PONG") give_up("what answers there is no Redis");
  } catch (...) {
    close(socket_);
    throw;
  }
}

RedisLink::~RedisLink() { close(socket_); }

void RedisLink::connect_to(const RedisAddress& address, Instant end) {
  if (address.host.empty()) {
    sockaddr_un where{};
    where.sun_family = AF_UNIX;
    if (address.socket.size() >= sizeof where.sun_path) give_up("the path of the socket is too long");
    std::memcpy(where.sun_path, address.socket.c_str(), address.socket.size());
    if (!connect_socket(AF_UNIX, &where, sizeof where, end)) give_up(words_of(errno));
    return;
  }
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failure = getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &wanted, &found);
  if (failure != 0) give_up(gai_strerror(failure));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, freeaddrinfo);
  for (const addrinfo* one = found; one; one = one->ai_next) {
    if (connect_socket(one->ai_family, one->ai_addr, one->ai_addrlen, end)) return;
  }
  give_up(words_of(errno));
}

// False with errno set if nothing listens there.
bool RedisLink::connect_socket(int family, const void* where, unsigned length, Instant end) {
  socket_ = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (socket_ < 0) return false;
  int error = 0;
  if (connect(socket_, static_cast<const sockaddr*>(where), length) != 0) {
    error = errno;
    if (error == EINPROGRESS) {
      try {
        wait_for(POLLOUT, end);
        socklen_t size = sizeof error;
        getsockopt(socket_, SOL_SOCKET, SO_ERROR, &error, &size);
      } catch (const RedisTrouble&) {
        error = ETIMEDOUT;
      }
    }
  }
  if (error == 0) {
    const int on = 1;
    if (family != AF_UNIX) setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return true;
  }
  close(socket_);
  socket_ = -1;
  errno = error;
  return false;
}

void RedisLink::wait_for(short events, Instant end) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) give_up("it did not answer in time");
    pollfd poll_for{socket_, events, 0};
    const int ready = poll(&poll_for, 1, static_cast<int>(left.count()));
    if (ready > 0) return;
    if (ready < 0 && errno != EINTR) give_up(words_of(errno));
  }
}

RedisLink::Reply RedisLink::ask(std::span<const std::string_view> words, Timeout timeout) {
  const Instant end = std::chrono::steady_clock::now() + timeout;
  std::string request = fmt::format("*{}\r\n", words.size());
  for (const std::string_view word : words)
    fmt::format_to(std::back_inserter(request), "${}\r\n{}\r\n", word.size(), word);

  std::string_view unsent = request;
  while (!unsent.empty()) {
    const ssize_t sent = send(socket_, unsent.data(), unsent.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      unsent.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      wait_for(POLLOUT, end);
    } else if (errno != EINTR) {
      give_up(words_of(errno));
    }
  }

  return read_reply(end, true);
}

void RedisLink::receive(Instant end) {
  received_.erase(0, read_up_to_);
  read_up_to_ = 0;
  std::array<char, 64 * 1024> piece;
  for (;;) {
    wait_for(POLLIN, end);
    const ssize_t got = recv(socket_, piece.data(), piece.size(), 0);
    if (got == 0) give_up("it closed the connection");
    if (got > 0) {
      received_.append(piece.data(), static_cast<std::size_t>(got));
      return;
    }
    if (errno != EAGAIN && errno != EINTR) give_up(words_of(errno));
  }
}

std::string RedisLink::read_line(Instant end) {
  for (;;) {
    const auto at = received_.find("\r\n", read_up_to_);
    if (at != std::string::npos) {
      std::string line = received_.substr(read_up_to_, at - read_up_to_);
      read_up_to_ = at + 2;
      return line;
    }
    if (received_.size() - read_up_to_ > kMaxLine) give_up(kNoise);
    receive(end);
  }
}

std::string RedisLink::read_bytes(std::size_t count, Instant end) {
  while (received_.size() - read_up_to_ < count + 2) receive(end);
  std::string bytes = received_.substr(read_up_to_, count);
  if (received_.compare(read_up_to_ + count, 2, "\r\n") != 0) give_up(kNoise);
  read_up_to_ += count + 2;
  return bytes;
}

RedisLink::Reply RedisLink::read_reply(Instant end, bool may_nest) {
  const std::string line = read_line(end);
  if (line.empty()) give_up(kNoise);
  const std::string_view rest = std::string_view(line).substr(1);
  switch (line.front()) {
    case '+': return {Reply::Kind::status, std::string(rest), {}};
    case '-': return {Reply::Kind::error, std::string(rest), {}};
    case '$': {
      const auto length = length_in(rest, kMaxText);
      if (!length) return {};
      return {Reply::Kind::text, read_bytes(*length, end), {}};
    }
    case '*': {
      const auto count = length_in(rest, kMaxItems);
      if (!may_nest || !count) give_up(kNoise);
      Reply list{Reply::Kind::list, {}, {}};
      for (std::size_t i = 0; i < *count; ++i) list.items.push_back(read_reply(end, false));
      return list;
    }
    default: give_up(kNoise);
  }
}

void RedisLink::expect_ok(std::span<const std::string_view> words, Timeout timeout) {
  const Reply reply = ask(words, timeout);
  if (reply.kind != Reply::Kind::status) give_up(reply.kind == Reply::Kind::error ? reply.text : std::string(kNoise));
}

std::vector<std::optional<std::string>> RedisLink::get(std::span<const std::string> keys, Timeout timeout) {
  std::vector<std::string_view> words{"MGET"};
  words.insert(words.end(), keys.begin(), keys.end());
  Reply reply = ask(words, timeout);
  if (reply.kind == Reply::Kind::error) give_up(reply.text);
  if (reply.kind != Reply::Kind::list || reply.items.size() != keys.size()) give_up(kNoise);
  std::vector<std::optional<std::string>> values(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (reply.items[i].kind == Reply::Kind::text) values[i] = std::move(reply.items[i].text);
  }
  return values;
}

bool RedisLink::set(const std::string& key, const std::string& value, std::chrono::milliseconds expires_in,
                    Timeout timeout) {
  const std::string milliseconds = std::to_string(expires_in.count());
  const Reply reply = ask(std::array<std::string_view, 5>{"SET", key, value, "PX", milliseconds}, timeout);
  if (reply.kind == Reply::Kind::error) return false;
  if (reply.kind != Reply::Kind::status) give_up(kNoise);
  return true;
}

}  // namespace hapax
