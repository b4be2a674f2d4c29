#include "store/postgres/connection/connection.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/hex.h"

namespace hapax::postgres {

namespace {

// Plans that scan an index and stop early, made once: no statement here wants anything else, whatever the statistics
// say when it is prepared.
constexpr const char* kSettings =
    "set_config('client_encoding', 'UTF8', {0}), set_config('enable_seqscan', 'off', {0}),"
    " set_config('enable_bitmapscan', 'off', {0}), set_config('enable_hashjoin', 'off', {0}),"
    " set_config('enable_mergejoin', 'off', {0}), set_config('enable_memoize', 'off', {0}), set_config('jit', 'off', "
    "{0}),"
    " set_config('plan_cache_mode', 'force_generic_plan', {0}), set_config('lock_timeout', '{2}', {0}),"
    " set_config('statement_timeout', '{3}', {0}),"
    " set_config('synchronous_commit', CASE WHEN {1} THEN 'off' WHEN current_setting('synchronous_commit') = 'off'"
    " THEN 'on' ELSE current_setting('synchronous_commit') END, {0})";

const Statement kBegin{"begin", "BEGIN"};
const Statement kCommit{"commit", "COMMIT"};

// If the store has been replaced, this divides by zero, and so ends the transaction that it precedes. Until the end of
// that transaction, its lock keeps the schema from being dropped or restored.
const Statement kGuard{"guard",
                       "SELECT 1 / (i.id = $1::uuid AND pg_postmaster_start_time() = $2::timestamptz"
                       " AND pg_relation_filenode('queues') = $3::oid)::int FROM store_identity i"};
constexpr const char* kDivisionByZero = "22012";

std::string trimmed(const char* message) {
  std::string text = message ? message : "";
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

void ignore_notice(void*, const char*) {}

bool is_error(ExecStatusType status) {
  return status == PGRES_FATAL_ERROR || status == PGRES_BAD_RESPONSE || status == PGRES_PIPELINE_ABORTED;
}

Refused refusal(const PGresult* result) {
  const char* state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const char* message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  return {state ? state : "", fmt::format("PostgreSQL: {}{}", trimmed(message ? message : PQresultErrorMessage(result)),
                                          state ? fmt::format(" ({})", state) : "")};
}

// The deadline of the first of that many, so that one which does not answer leaves the others their share of the time.
CallDeadline::Instant share(std::size_t count) {
  const auto end = CallDeadline::current(), now = CallDeadline::Clock::now();
  return end == CallDeadline::Instant::max() ? end : now + (end - now) / static_cast<int>(count);
}

std::string from_hex(std::string_view text) {
  std::string bytes;
  for (; text.size() >= 2; text.remove_prefix(2)) {
    bytes.push_back(static_cast<char>(parse_hex(text[0], text[1]).value()));
  }
  return bytes;
}

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("''") : std::string(1, c);
  return out + "'";
}

}  // namespace

std::string pooler_advice() {
  return "a pooler such as PgBouncer with pool_mode = transaction is between; write ?hapax_pooled=1 behind the URL";
}

Failure Refused::as_failure() const {
  using Code = Failure::Code;
  const std::string_view family = std::string_view(sqlstate_).substr(0, 2);
  if (family == "XX") return {Code::corrupt, what()};
  if (is("3F000") || is("42P01") || is("42703") || is("42704")) {
    return {Code::misuse, std::string(what()) + ": the schema is not Hapax's or was dropped; run `hapax migrate`"};
  }
  if (is("55P03")) {
    return {Code::unavailable,
            std::string(what()) +
                ": a transaction has been open for long that submitted the same key, or"
                " to the same new queue; commit it, or roll it back",
            "A transaction that has been open for long holds the same key or the same new queue."};
  }
  if (is("57014")) {
    return {Code::unavailable, std::string(what()) + ": it took too long; ask for less, by status, key or queue",
            "The database took too long for it: ask for less, by status, key or queue."};
  }
  if (is("42501")) {
    return {Code::misuse,
            std::string(what()) + ": the role lacks a right; grant it what docs/configuration.md lists for PostgreSQL"};
  }
  if (is("26000") || is("42P05")) return {Code::misuse, std::string(what()) + ": " + pooler_advice()};
  if (family == "42" || family == "28" || family == "3D") return {Code::misuse, what()};
  return {Code::unavailable, what()};
}

Failure Lost::as_failure() const {
  return {committing_ ? Failure::Code::outcome_unknown : Failure::Code::unavailable, what(),
          cause_ == Cause::silent ? "The database did not answer within the deadline." : ""};
}

std::string store_identity_sql(const std::string& queues) {
  return "encode(uuid_send(i.id) || timestamptz_send(pg_postmaster_start_time()) || oidsend(pg_relation_filenode('" +
         queues + "')), 'hex')";
}

Connection::Connection(const ConnectionOptions& options) : options_(options) {
  const std::string identity = from_hex(options.identity);
  if (!identity.empty()) guard_.bytes(identity.substr(0, 16)).bytes(identity.substr(16, 8)).bytes(identity.substr(24));
  try {
    connect();
  } catch (...) {
    if (handle_) PQfinish(handle_);
    throw;
  }
}

Connection::Connection(PGconn* borrowed, const std::string& schema) : handle_(borrowed), borrowed_(true) {
  options_.schema = schema;
}

Connection::~Connection() {
  if (!borrowed_) PQfinish(handle_);
}

void Connection::connect() {
  std::string why;
  for (std::size_t i = 0; i < options_.hosts.size() && !handle_; ++i) {
    const CallDeadline deadline(share(options_.hosts.size() - i));
    why += (why.empty() ? "" : "; ") + try_host(options_.hosts[i]);
  }
  if (!handle_) throw Lost("PostgreSQL: " + why, false, silent_ ? Lost::Cause::silent : Lost::Cause::gone);
  PQsetNoticeProcessor(handle_, ignore_notice, nullptr);
  if (PQserverVersion(handle_) < 140000) {
    throw Refused("42000",
                  fmt::format("PostgreSQL: the server is version {}, and 14 is the oldest that Hapax works with",
                              PQserverVersion(handle_) / 10000));
  }
  if (PQsetnonblocking(handle_, 1) != 0 || !PQenterPipelineMode(handle_)) lose();
  if (options_.pooled) return;
  configure();
  commit();
}

std::string Connection::try_host(const std::string& host) {
  std::string why;
  const std::vector<std::string> addresses = by_address(host, options_.resolve);
  for (std::size_t i = 0; i < addresses.size() && !handle_; ++i) {
    const CallDeadline deadline(
        std::min(share(addresses.size() - i), CallDeadline::Clock::now() + options_.connect_timeout));
    why += (why.empty() ? "" : "; ") + try_address(addresses[i]);
  }
  return why;
}

std::string Connection::try_address(const std::string& address) {
  handle_ = PQconnectStart(address.c_str());
  PostgresPollingStatusType status = PGRES_POLLING_WRITING;
  bool in_time = true;
  while (handle_ && in_time && PQstatus(handle_) != CONNECTION_BAD && status != PGRES_POLLING_OK &&
         status != PGRES_POLLING_FAILED) {
    in_time = wait_for_socket(status == PGRES_POLLING_READING ? POLLIN : POLLOUT);
    if (in_time) status = PQconnectPoll(handle_);
  }
  if (status == PGRES_POLLING_OK) return {};
  silent_ = !in_time;
  std::string why = in_time ? trimmed(PQerrorMessage(handle_)) : "the server has not answered in time";
  PQfinish(std::exchange(handle_, nullptr));
  return why;
}

// For good, or where the server connection belongs to others between transactions, for this one.
void Connection::configure() {
  const char* local = options_.pooled ? "true" : "false";
  dispatch(Pending::silent, nullptr,
           fmt::format("SELECT {}, set_config('search_path', {}, {})",
                       fmt::format(fmt::runtime(kSettings), local, options_.synchronous ? "false" : "true",
                                   options_.lock_timeout_ms, options_.statement_timeout_ms),
                       quoted(options_.schema), local),
           {});
}

void Connection::begin() {
  committing_ = reading_ = false;
  explicit_ = true;
  if (borrowed_) return;
  dispatch(Pending::silent, &kBegin, kBegin.sql, {});
  if (options_.pooled) configure();
  guard();
}

void Connection::begin_implicitly() {
  committing_ = reading_ = false;
  explicit_ = false;
  if (options_.pooled) configure();
  guard();
}

void Connection::begin_reading() {
  begin_implicitly();
  reading_ = !options_.pooled;  // there the settings end with the transaction
}

void Connection::guard() {
  if (borrowed_ || options_.identity.empty()) return;
  guarded_ = true;
  dispatch(Pending::guard, &kGuard, kGuard.sql, guard_);
}

void Connection::send(const Statement& statement, const Parameters& parameters) {
  dispatch(Pending::statement, &statement, statement.sql, parameters);
}

void Connection::send_silently(const Statement& statement, const Parameters& parameters) {
  dispatch(Pending::silent, &statement, statement.sql, parameters);
}

void Connection::send(const std::string& sql, const Parameters& parameters) {
  dispatch(Pending::statement, nullptr, sql, parameters);
}

void Connection::dispatch(Pending kind, const Statement* statement, const std::string& sql,
                          const Parameters& parameters) {
  if (borrowed_) {
    Rows rows = run_at_once(sql, parameters);
    if (kind == Pending::statement) done_.push_back(std::move(rows));
    return;
  }
  if (reading_ && !guarded_) guard();
  const int count = parameters.size();
  if (statement && !options_.pooled) {
    if (prepared_.insert(statement->name).second) {
      check_sent(PQsendPrepare(handle_, statement->name.c_str(), sql.c_str(), 0, nullptr));
      pending_.emplace_back(Pending::prepare, statement->name);
    }
    check_sent(PQsendQueryPrepared(handle_, statement->name.c_str(), count, parameters.values(), parameters.lengths(),
                                   parameters.formats(), 1));
  } else {
    check_sent(PQsendQueryParams(handle_, sql.c_str(), count, nullptr, parameters.values(), parameters.lengths(),
                                 parameters.formats(), 1));
  }
  pending_.emplace_back(kind, std::string());
  unflushed_ = true;
}

Rows Connection::receive() {
  if (borrowed_) {
    Rows rows = std::move(done_.front());
    done_.pop_front();
    return rows;
  }
  if (unflushed_ && reading_) {
    queue_sync();
  } else if (unflushed_) {
    check_sent(PQsendFlushRequest(handle_));
    unflushed_ = false;
  }
  return next();
}

void Connection::commit() {
  if (borrowed_) return;
  if (explicit_) dispatch(Pending::silent, &kCommit, kCommit.sql, {});
  committing_ = !reading_;
  if (!reading_ || unflushed_) queue_sync();
  while (!pending_.empty()) next();
}

Rows Connection::receive_and_commit() {
  if (borrowed_) return receive();
  if (explicit_) dispatch(Pending::silent, &kCommit, kCommit.sql, {});
  committing_ = true;
  queue_sync();
  Rows rows = next();
  while (!pending_.empty()) next();
  return rows;
}

void Connection::rollback() noexcept {
  if (borrowed_ || broken()) return;
  try {
    drain();
    if (PQtransactionStatus(handle_) == PQTRANS_IDLE) return;
    dispatch(Pending::silent, nullptr, "ROLLBACK", {});
    drain();
  } catch (const std::exception&) {
    broken_ = true;
  }
}

// Reads everything in flight, up to the next point at which the server takes new statements.
void Connection::drain() {
  if (pending_.empty() || pending_.back().first != Pending::sync) queue_sync();
  for (; !pending_.empty(); pending_.pop_front()) {
    const auto& [kind, name] = pending_.front();
    const Rows rows = take_result(kind == Pending::sync);
    if (kind == Pending::prepare && PQresultStatus(rows.result()) != PGRES_COMMAND_OK) prepared_.erase(name);
  }
}

void Connection::queue_sync() {
  check_sent(PQpipelineSync(handle_));
  pending_.emplace_back(Pending::sync, std::string());
  unflushed_ = guarded_ = false;
}

Rows Connection::next() {
  while (!pending_.empty()) {
    const auto [kind, name] = std::move(pending_.front());
    pending_.pop_front();
    Rows rows = take_result(kind == Pending::sync);
    if (is_error(PQresultStatus(rows.result()))) {
      if (kind == Pending::prepare) prepared_.erase(name);
      kind == Pending::guard || name == kGuard.name ? fail_guard(rows.result()) : fail(rows.result());
    }
    if (kind == Pending::statement) return rows;
  }
  return {};
}

Rows Connection::take_result(bool sync) {
  await_result();
  Rows rows(PQgetResult(handle_));
  if (!rows.result()) lose();
  // A result is followed by a null, the end of a pipeline is not.
  while (!sync) {
    await_result();
    const Rows rest(PQgetResult(handle_));
    if (!rest.result()) break;
  }
  return rows;
}

// Sends the rest of what was sent, too: neither blocks, so that a server which does nothing any more is given up in
// time.
void Connection::await_result() {
  while (PQisBusy(handle_)) {
    const int unsent = PQflush(handle_);
    if (unsent < 0) lose();
    if (!wait_for_socket(unsent ? POLLIN | POLLOUT : POLLIN)) {
      broken_ = true;
      throw Lost("PostgreSQL: the server has not answered in time", committing_, Lost::Cause::silent);
    }
    if (!PQconsumeInput(handle_)) lose();
  }
}

bool Connection::wait_for_socket(short events) {
  for (;;) {
    pollfd watched[2] = {{PQsocket(handle_), events, 0}, {options_.interrupt_fd, POLLIN, 0}};
    const int ready = poll(watched, 2, CallDeadline::left_ms());
    if (ready < 0 && errno == EINTR) continue;
    return ready > 0 && !watched[1].revents;
  }
}

void Connection::fail_guard(const PGresult* result) {
  const Refused refused = refusal(result);
  // The table is missing, the schema is, the restore is not over yet, or the identity is another.
  for (const char* state : {"42P01", "3F000", "55000", kDivisionByZero}) {
    if (refused.is(state)) throw Replaced(refused.sqlstate(), refused.what());
  }
  fail(result);
}

void Connection::fail(const PGresult* result) {
  const char* severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
  const bool fatal = severity && (std::strcmp(severity, "FATAL") == 0 || std::strcmp(severity, "PANIC") == 0);
  const Refused refused = refusal(result);
  if (fatal || PQstatus(handle_) != CONNECTION_OK) {
    broken_ = true;
    throw Lost(refused.what(), committing_);
  }
  // A server that is a standby now, or whose tables or types changed under what was prepared: a new connection sees
  // clearly.
  for (const char* state : {"25006", "26000", "0A000", "XX000"}) broken_ = broken_ || refused.is(state);
  throw refused;
}

void Connection::check_sent(int sent) {
  if (!sent) lose();
}

void Connection::lose() {
  broken_ = true;
  throw Lost("PostgreSQL: " + trimmed(PQerrorMessage(handle_)), committing_);
}

Rows Connection::run_at_once(const std::string& sql, const Parameters& parameters) {
  Rows rows(PQexecParams(handle_, sql.c_str(), parameters.size(), nullptr, parameters.values(), parameters.lengths(),
                         parameters.formats(), 1));
  if (!rows.result() || is_error(PQresultStatus(rows.result()))) {
    if (!rows.result() || PQstatus(handle_) != CONNECTION_OK) lose();
    throw refusal(rows.result());
  }
  return rows;
}

std::string Connection::run_script(const std::string& sql) {
  if (!PQexitPipelineMode(handle_)) lose();
  check_sent(PQsendQuery(handle_, sql.c_str()));
  Rows last;
  for (;;) {
    await_result();
    Rows rows(PQgetResult(handle_));
    if (!rows.result()) break;
    // The first error counts: nothing runs after it.
    if (!last.result() || !is_error(PQresultStatus(last.result()))) last = std::move(rows);
  }
  if (!last.result() || PQstatus(handle_) != CONNECTION_OK) lose();
  if (is_error(PQresultStatus(last.result()))) fail(last.result());
  if (!PQenterPipelineMode(handle_)) lose();
  return last.empty() || PQnfields(last.result()) == 0 ? "" : PQgetvalue(last.result(), 0, 0);
}

}  // namespace hapax::postgres
