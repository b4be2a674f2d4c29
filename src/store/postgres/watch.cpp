#include "store/postgres/watch.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/hex.h"
#include "core/lease.h"

namespace hapax::postgres {

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kAnyway = 1000ms, kAnywayPooled = 200ms;
constexpr auto kQuiet = 5ms;         // between two notifications
constexpr auto kLookAgain = 1000ms;  // for others who listen
constexpr auto kAfterFailure = 500ms;
constexpr Duration kPatience = 1000ms;  // with a server that is to be told

// A listener holds this lock, shared, so that others can see it in pg_locks: (class, schema).
const std::string kListeners = "1751216225, hashtext(current_schema())";
// The schema is the channel.
const Statement kListen{"listen", "SELECT pg_advisory_lock_shared(" + kListeners + ")"};
const Statement kNotify{"notify", "SELECT pg_notify('hapax:' || current_schema(), $1::text)"};
const Statement kCountListeners{
    "count_listeners",
    "SELECT count(*), count(*) FILTER (WHERE a.application_name = $1::text) FROM pg_locks l"
    " JOIN pg_stat_activity a USING (pid) WHERE l.locktype = 'advisory' AND l.classid = 1751216225"
    " AND l.objsubid = 2 AND l.database = (SELECT oid FROM pg_database WHERE datname ="
    " current_database())"};

std::string application_name(const std::string& handle) { return "hapax listener " + handle; }

}  // namespace

std::string new_handle_name() {
  const LeaseSecret secret = LeaseSecret::generate();
  std::string name;
  for (std::size_t i = 0; i < 8; ++i) name += fmt::format("{:02x}", secret.bytes[i]);
  return name;
}

Statement notification() { return kNotify; }

Listener::Listener(ConnectionOptions options, std::string handle, Duration timeout, std::function<void()> on_change)
    : options_(std::move(options)),
      handle_(std::move(handle)),
      timeout_(timeout),
      on_change_(std::move(on_change)),
      woken_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (woken_ < 0) throw Failure(Failure::Code::unavailable, "no eventfd can be made: too many open files");
  options_.interrupt_fd = stopping_.fd();
  thread_ = std::thread([this] { loop(); });
}

Listener::~Listener() {
  stopping_.trigger();
  thread_.join();
  close(woken_);
}

void Listener::look_now() { eventfd_write(woken_, 1); }

bool Listener::take_woken() {
  eventfd_t count;
  return eventfd_read(woken_, &count) == 0;
}

void Listener::loop() {
  if (options_.pooled) {
    while (pause(kAnywayPooled)) on_change_();
    return;
  }
  for (;;) {
    try {
      std::unique_ptr<Connection> connection;
      {
        const CallDeadline deadline(timeout_);
        connection = std::make_unique<Connection>(options_);
        listen(*connection);
      }
      do {
        on_change_();
      } while (hear(*connection));
      return;
    } catch (const std::exception&) {
      // The verbs report it. The call after the next connection makes up for what is missed until then.
      if (!pause(kAfterFailure)) return;
    }
  }
}

void Listener::listen(Connection& connection) {
  connection.run_script(fmt::format("SET application_name TO '{}'", application_name(handle_)));
  const std::string schema = connection.run_script("SELECT quote_ident('hapax:' || current_schema())");
  connection.run_script("LISTEN " + schema);
  connection.run_script(kListen.sql);
}

bool Listener::hear(Connection& connection) {
  const auto end = Clock::now() + kAnyway;
  for (;;) {
    pollfd watched[3] = {{PQsocket(connection.handle()), POLLIN, 0}, {stopping_.fd(), POLLIN, 0}, {woken_, POLLIN, 0}};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    if (left <= 0ms) return true;
    poll(watched, 3, static_cast<int>(left.count()));
    if (watched[1].revents) return false;
    if (watched[2].revents && take_woken()) return true;
    if (!watched[0].revents) continue;
    if (!PQconsumeInput(connection.handle())) throw Lost("PostgreSQL: the listening connection is gone", false);
    bool others = false;
    while (PGnotify* notified = PQnotifies(connection.handle())) {
      others = others || handle_ != notified->extra;
      PQfreemem(notified);
    }
    if (others) return true;
  }
}

bool Listener::pause(std::chrono::milliseconds time) {
  pollfd watched[2] = {{stopping_.fd(), POLLIN, 0}, {woken_, POLLIN, 0}};
  poll(watched, 2, static_cast<int>(time.count()));
  take_woken();
  return !stopping_.is_triggered();
}

Notifier::Notifier(ConnectionOptions options, std::string handle)
    : options_(std::move(options)), handle_(std::move(handle)) {
  options_.synchronous = false;  // there is nothing to keep
  thread_ = std::thread([this] { loop(); });
}

Notifier::~Notifier() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  woken_.notify_one();
  thread_.join();
}

void Notifier::changed() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(dirty_, true)) return;
  }
  woken_.notify_one();
}

void Notifier::loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    woken_.wait(lock, [&] { return dirty_ || stopping_; });
    if (!dirty_) return;
    dirty_ = false;
    lock.unlock();
    notify();
    lock.lock();
    woken_.wait_for(lock, kQuiet, [&] { return stopping_; });
  }
}

// A failure is harmless: the others poll soon.
void Notifier::notify() {
  const CallDeadline deadline(kPatience);
  try {
    if (connection_ && connection_->broken()) connection_.reset();
    if (!connection_) connection_ = std::make_unique<Connection>(options_);
    if (Clock::now() - looked_at_ >= kLookAgain) {
      connection_->begin_implicitly();
      connection_->send(kCountListeners, Parameters().bytes(application_name(handle_)));
      const Rows rows = connection_->receive_and_commit();
      Cells cells(rows, 0);
      const std::int64_t all = cells.integer();
      anybody_ = all > cells.integer();
      looked_at_ = Clock::now();
    }
    if (!anybody_) return;
    connection_->begin_implicitly();
    connection_->send(kNotify, Parameters().bytes(handle_));
    connection_->receive_and_commit();
  } catch (const std::exception&) {
    connection_.reset();
  }
}

}  // namespace hapax::postgres
