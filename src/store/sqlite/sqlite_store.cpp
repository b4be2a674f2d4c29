#include "store/sqlite/sqlite_store.h"

#include <atomic>
#include <mutex>
#include <type_traits>
#include <utility>

#include "store/rules/answer_budget.h"
#include "store/rules/finish.h"
#include "store/rules/hand_out.h"
#include "store/rules/workflow.h"
#include "store/sqlite/activity_tables.h"
#include "store/sqlite/fair_lock.h"
#include "store/sqlite/living.h"
#include "store/sqlite/run_tables.h"
#include "store/sqlite/session.h"
#include "store/sqlite/sqlite_rows.h"
#include "store/sqlite/watch.h"

namespace hapax {
namespace {

using namespace sqlite;

constexpr int kWriterCacheKib = 32 * 1024;
constexpr int kReaderCacheKib = 2 * 1024;
constexpr std::size_t kIdleReaders = 4;

class SqliteStore final : public Store {
 public:
  SqliteStore(const SqliteOptions& options, const Clock& clock) : options_(options), clock_(clock) {
    auto connection = connect(options.create, kWriterCacheKib);
    prepare_schema(*connection, options.migrate);
    writer_ = std::make_unique<WriterSession>(std::move(connection));
    opened_ = writer_->opened;
  }

  Time now() override { return clock_.now(); }

  void migrate() override {
    const std::lock_guard turn(turn_);
    sqlite::migrate(writer().tables.connection());
  }

  std::string identity() override { return opened()->identity; }

  bool is_replaced() override { return replaced_; }

  void reopen() override {
    const CallDeadline deadline(options_.timeout);
    lock_by_deadline(turn_);
    const std::lock_guard turn(turn_, std::adopt_lock);
    if (!replaced_) return;
    const FilePlace& place = opened()->place;
    const auto why = place.displaced();
    if (why && !place.another_may_be_opened()) throw displacement(Failure::Code::unavailable, *why);
    writer_.reset();
    {
      const std::lock_guard guard(readers_mutex_);
      readers_.clear();
    }
    open_writer();
    freed_ = {};
    replaced_ = false;
  }

  void interrupt() override { interrupted_ = true; }

  void set_policies(std::shared_ptr<const QueuePolicies> policies) override {
    const std::lock_guard guard(policies_mutex_);
    policies_ = std::move(policies);
    ++policies_version_;
  }

  bool hands_out() const override { return true; }

  std::vector<SubmitOutcome> submit(std::span<const Submission> submissions, WaitingClaims& waiters) override {
    return write([&](Batch& batch, WriterSession&) {
      AnswerBudget budget;
      auto outcomes = for_each<SubmitOutcome>(
          submissions, [&](const Submission& item) { return budget.bound(item, SqliteRows(batch).submit(item)); });
      hand_out(batch, submissions, outcomes, waiters);
      return outcomes;
    });
  }

  std::vector<ClaimOutcome> claim(std::span<const ClaimRequest> requests) override {
    return write([&](Batch& batch, WriterSession& session) {
      free_parked(batch);
      return for_each<ClaimOutcome>(requests, [&](const ClaimRequest& item) { return session.claim(batch, item); });
    });
  }

  void announce(std::span<const WorkerInfo> workers) override {
    write([&](Batch& batch, WriterSession&) {
      sqlite::announce(batch.tables, workers);
      return true;
    });
  }
  std::vector<ExtendOutcome> extend(std::span<const Extension> extensions) override {
    return write([&](Batch& batch, WriterSession& session) {
      auto outcomes = apply<ExtendOutcome>(batch, extensions, rules::extend);
      for (const ReturnedPermits& permits : returned_permits(extensions, outcomes, batch.policies)) {
        session.claim.take_back(batch, permits);
      }
      return outcomes;
    });
  }

  std::vector<FinishOutcome> finish(std::span<const Report> reports, WaitingClaims& waiters) override {
    return write([&](Batch& batch, WriterSession&) {
      auto outcomes = apply<FinishOutcome>(batch, reports, rules::finish);
      hand_out(batch, reports, outcomes, waiters);
      return outcomes;
    });
  }

  std::vector<ControlOutcome> control(std::span<const ControlRequest> requests) override {
    return write([&](Batch& batch, WriterSession& session) {
      return apply<ControlOutcome>(batch, requests, rules::control, &session.requests);
    });
  }

  std::vector<TurnOutcome> commit_turns(std::span<const Turn> turns, WaitingClaims& waiters) override {
    return write([&](Batch& batch, WriterSession&) {
      auto outcomes = apply<TurnOutcome>(batch, turns, rules::commit_turn);
      hand_out(batch, turns, outcomes, waiters);
      return outcomes;
    });
  }

  std::vector<Event> history(const ExecutionId& run, std::int64_t after, std::int32_t limit) override {
    return read([&](Tables& tables) {
      const auto row = tables.load_state(run);
      PageBudget budget;
      auto events = row ? tables.runs().events(row->seq, after, limit, budget) : std::vector<Event>();
      for (const Event& event : events) require_sound(run, event);
      return events;
    });
  }

  SweepOutcome sweep(std::int32_t limit) override {
    DeadWorkers dead(options_.path);
    auto outcome =
        write([&](Batch& batch, WriterSession& session) { return session.sweep(batch, limit, dead.names()); });
    dead.forget();
    return outcome;
  }

  PurgeOutcome purge(std::int32_t limit) override {
    return write([&](Batch& batch, WriterSession& session) { return session.purge(batch, limit); });
  }
  std::int64_t purge_requests(std::int32_t limit) override {
    return write([&](Batch& batch, WriterSession& session) { return session.purge.requests(batch, limit); });
  }

  std::optional<Execution> find(const std::string& name_space, const ExecutionId& id) override {
    return read([&](Tables& tables) -> std::optional<Execution> {
      auto row = tables.load_all(id);
      if (!row || row->execution.name_space != name_space) return std::nullopt;
      require_sound(row->execution);
      return std::move(row->execution);
    });
  }

  Inspection inspect(const std::string& from, std::int32_t limit) override {
    return read([&](Tables& tables) {
      tables.connection().end_statements_at(CallDeadline::Instant::max());  // it reads the whole file
      return sqlite::inspect(tables, from, limit);
    });
  }

  Page list(const ListFilter& filter) override {
    return read([&](Tables& tables) { return sqlite::list(tables, filter); });
  }

  std::vector<QueueCount> count(const std::optional<std::string>& name_space) override {
    return read([&](Tables& tables) { return sqlite::count(tables, name_space); });
  }

  std::vector<WorkerInfo> workers(const std::string& name_space) override {
    return read([&](Tables& tables) { return sqlite::workers(tables, name_space, clock_.now()); });
  }
  std::optional<Why> why(const std::string& name_space, const ExecutionId& id) override {
    const auto rules = policies();
    return read([&](Tables& tables) { return sqlite::why(tables, *rules, name_space, id, clock_.now()); });
  }

  std::optional<FoundIdentity> find_identity(const IdentityHash& hash) override {
    const auto rules = policies();
    return read([&](Tables& tables) { return sqlite::find_identity(tables, *rules, hash, clock_.now()); });
  }

  std::vector<std::optional<ExecutionId>> owners(std::span<const OwnerQuery> queries) override {
    return read([&](Tables& tables) {
      return for_each<std::optional<ExecutionId>>(queries, [&](const OwnerQuery& query) {
        return tables.exists(query.submission) ? std::nullopt : tables.find_owner(query.hash);
      });
    });
  }

  std::vector<SettingDocument> settings() override {
    return read([](Tables& tables) { return sqlite::settings(tables); });
  }

  bool release_identity(const std::string& name_space, const IdentityHash& hash) override {
    return write([&](Batch& batch, WriterSession&) {
      const auto held = batch.tables.find_identity(hash);
      return held && held->entry.name_space == name_space && batch.tables.erase_identity(hash);
    });
  }

  void put_setting(const SettingDocument& setting) override {
    write([&](Batch& batch, WriterSession&) {
      sqlite::put_setting(batch.tables, setting);
      return true;
    });
  }

  ActivityRows& activities() override { return activities_; }

  void check() override {
    opened()->place.distrust_time();
    write([&](Batch& batch, WriterSession&) {
      write_check(batch);
      return true;
    });
  }

  void watch(std::function<void()> on_change) override {
    watch_.reset();
    if (on_change) watch_.emplace([this] { return others_have_written(); }, std::move(on_change));
  }

 private:
  class Activities final : public ActivityRows {
   public:
    explicit Activities(SqliteStore& store) : store_(store) {}

    std::optional<ActivityRow> find(const std::string& name_space, const std::string& id) override {
      return store_.read([&](Tables& tables) { return tables.activities().find(name_space, id); });
    }
    std::vector<ActivityRow> list(const ActivityFilter& filter) override {
      return store_.read([&](Tables& tables) { return tables.activities().list(filter); });
    }
    std::vector<bool> change(std::span<const ActivityChange> changes) override {
      return store_.write([&](Batch& batch, WriterSession&) {
        return for_each<bool>(changes,
                              [&](const ActivityChange& item) { return batch.tables.activities().change(item); });
      });
    }
    DueActivities due(std::int32_t limit) override {
      return store_.read([&](Tables& tables) { return tables.activities().due(limit, store_.now()); });
    }
    std::vector<ActivityRun> record(std::span<const ActivityRun> runs) override {
      return store_.write([&](Batch& batch, WriterSession&) {
        return for_each<ActivityRun>(
            runs, [&](const ActivityRun& item) { return batch.tables.activities().record(item, batch.now); });
      });
    }
    std::vector<ActivityRun> runs(const RunFilter& filter) override {
      return store_.read([&](Tables& tables) { return tables.activities().runs(filter); });
    }
    std::int64_t purge_runs(Time before, std::int32_t limit) override {
      return store_.write(
          [&](Batch& batch, WriterSession&) { return batch.tables.activities().purge_runs(before, limit); });
    }

   private:
    SqliteStore& store_;
  };

  std::unique_ptr<Connection> connect(bool create, int cache_kib) const {
    return std::make_unique<Connection>(ConnectionOptions{.path = options_.path,
                                                          .create = create,
                                                          .busy_timeout = options_.timeout,
                                                          .cache_kib = cache_kib,
                                                          .interrupted = &interrupted_});
  }

  // A file that was opened before and cannot be now is a passing trouble, not a wrong configuration.
  template <class Open>
  static auto reconnect(Open open) {
    try {
      return open();
    } catch (const Failure& failure) {
      if (failure.code() != Failure::Code::misuse) throw;
      throw Failure(Failure::Code::unavailable, failure.what());
    }
  }

  std::shared_ptr<const QueuePolicies> policies() { return versioned_policies().first; }

  std::pair<std::shared_ptr<const QueuePolicies>, std::uint64_t> versioned_policies() {
    const std::lock_guard guard(policies_mutex_);
    return {policies_, policies_version_};
  }

  std::shared_ptr<const OpenedFile> opened() {
    const std::lock_guard guard(readers_mutex_);
    return opened_;
  }

  static Failure displacement(Failure::Code code, const Displacement& why) { return {code, why.what, why.for_clients}; }

  [[noreturn]] void refuse_replaced(Failure::Code code, const Displacement& why) {
    replaced_ = true;
    throw displacement(code, why);
  }

  // Before anything is read or written, so that nothing of another database is taken for this one's, or damaged.
  void require_in_place(const OpenedFile& opened) {
    if (interrupted_) throw Failure(Failure::Code::unavailable, options_.path + ": this program is ending");
    if (const auto why = opened.place.displaced()) refuse_replaced(Failure::Code::unavailable, *why);
    if (replaced_) refuse_replaced(Failure::Code::unavailable, another_data());
  }

  void require_identity(Session& session, const OpenedFile& opened) {
    if (session.identity() != opened.identity) refuse_replaced(Failure::Code::unavailable, another_data());
  }

  Displacement another_data() const {
    return {options_.path + " holds other data than when this program opened it: it is opened anew, try again",
            "The store holds other data than when the server opened it, and is opened anew."};
  }

  // The writer, reopened if an I/O error has made it unusable. The caller holds the lock.
  WriterSession& writer() {
    require_in_place(*opened());
    if (writer_ && writer_->tables.connection().broken()) {
      {
        const std::lock_guard guard(readers_mutex_);
        opened_ = std::make_shared<OpenedFile>(OpenedFile{opened_->place.without_log(), opened_->identity});
      }
      // The broken one is open until another is: the last to close removes the log's index, which a full disk would
      // not let anybody make again, and nothing could be read either.
      open_writer();
    }
    if (!writer_) open_writer();
    return *writer_;
  }

  void open_writer() {
    writer_ = reconnect([&] {
      auto connection = connect(false, kWriterCacheKib);
      prepare_schema(*connection);
      return std::make_unique<WriterSession>(std::move(connection));
    });
    writer_->forget_looks();  // what happened in between is not known
    const std::lock_guard guard(readers_mutex_);
    if (!replaced_ && opened_->identity != writer_->opened->identity) {
      writer_.reset();
      refuse_replaced(Failure::Code::unavailable, another_data());
    }
    opened_ = writer_->opened;
  }

  template <class Outcome, class Item, class Verb>
  static std::vector<Outcome> for_each(std::span<const Item> items, Verb verb) {
    std::vector<Outcome> outcomes;
    outcomes.reserve(items.size());
    for (const Item& item : items) outcomes.push_back(verb(item));
    return outcomes;
  }

  // Each item by its rule.
  template <class Outcome, class Item>
  static std::vector<Outcome> apply(Batch& batch, std::span<const Item> items,
                                    Outcome (*rule)(rules::Rows&, const Item&), Requests* requests = nullptr) {
    return for_each<Outcome>(items, [&](const Item& item) {
      SqliteRows rows(batch, requests);
      return rule(rows, item);
    });
  }

  // Hands what the items of a verb have made claimable to the waiting claims.
  template <class Item, class Outcome>
  static void hand_out(Batch& batch, std::span<const Item> items, std::vector<Outcome>& outcomes,
                       WaitingClaims& waiters) {
    if (!waiters.may_be_any()) return;
    forget_handed(outcomes, sqlite::hand_out(batch, waiters, made_ready(items, outcomes)));
  }

  // One verb: one turn, one transaction.
  template <class Work>
  std::invoke_result_t<Work, Batch&, WriterSession&> write(Work work) {
    const CallDeadline deadline(options_.timeout);
    lock_by_deadline(turn_);
    const std::lock_guard turn(turn_, std::adopt_lock);
    WriterSession& session = writer();
    try {
      Transaction transaction(session.tables.connection());
      if (session.others_wrote_since_last_verb()) {
        session.tables.forget();  // a backup may have been restored into the file
        require_identity(session, *session.opened);
      }
      const auto [rules, version] = versioned_policies();
      freeing_ = freed_;
      rules_version_ = version;
      Batch batch{session.tables, *rules, clock_.now()};
      session.tables.begin(batch.now);
      auto outcome = work(batch, session);
      transaction.commit();
      session.tables.committed();
      freed_ = freeing_;
      if (const auto why = session.opened->place.displaced()) refuse_replaced(Failure::Code::outcome_unknown, *why);
      return outcome;
    } catch (...) {
      session.tables.forget();
      throw;
    }
  }

  // What was parked was due, and its key had no free slot under the old limits.
  void free_parked(Batch& batch) {
    if (freed_.rules_version != rules_version_ || batch.now < freed_.at) batch.tables.unpark_all();
    freeing_ = {rules_version_, batch.now};
  }

  template <class Work>
  std::invoke_result_t<Work, Tables&> read(Work work) {
    const CallDeadline deadline(options_.timeout);
    const auto opened = this->opened();
    require_in_place(*opened);
    std::unique_ptr<Session> reader = take_reader(opened);
    reader->tables.connection().end_statements_at(CallDeadline::current());
    auto outcome = [&] {
      Snapshot snapshot(reader->tables.connection());
      reader->tables.forget();
      require_identity(*reader, *opened);
      auto found = work(reader->tables);
      snapshot.end();
      return found;
    }();
    // From here on the reader may be another thread's.
    const std::lock_guard guard(readers_mutex_);
    if (readers_.size() < kIdleReaders && opened_ == opened) readers_.push_back(std::move(reader));
    return outcome;
  }

  std::unique_ptr<Session> take_reader(const std::shared_ptr<const OpenedFile>& opened) {
    {
      const std::lock_guard guard(readers_mutex_);
      if (!readers_.empty() && readers_.back()->opened == opened) {
        auto reader = std::move(readers_.back());
        readers_.pop_back();
        return reader;
      }
      readers_.clear();
    }
    auto reader = reconnect([&] { return std::make_unique<Session>(connect(false, kReaderCacheKib)); });
    reader->opened = opened;
    require_in_place(*opened);  // it is that file, and not one that took its place a moment ago
    return reader;
  }

  // Polls on the writing connection, for which its own commits are not news. Skips a busy writer a few times.
  bool others_have_written() {
    constexpr int kPatience = 3;
    constexpr int kRemind = 64;  // looks; while the data is not what it was, which no verb may tell
    if (turn_.try_lock()) {
      watch_skipped_ = 0;
    } else if (++watch_skipped_ < kPatience) {
      return false;
    } else {
      turn_.lock();
      watch_skipped_ = 0;
    }
    const std::lock_guard turn(turn_, std::adopt_lock);
    try {
      return writer().others_wrote_since_last_look();
    } catch (const Failure&) {
      // The verbs report it, and the next poll makes up for this one.
      return replaced_ && watch_refused_++ % kRemind == 0;
    }
  }

  const SqliteOptions options_;
  const Clock& clock_;

  std::mutex policies_mutex_;
  std::shared_ptr<const QueuePolicies> policies_ = std::make_shared<QueuePolicies>();
  std::uint64_t policies_version_ = 1;

  // By which rules a claim last found parked what it found parked, and when.
  struct Freed {
    std::uint64_t rules_version = 0;
    Time at;
  };

  FairLock turn_;
  // Guarded by the lock:
  std::unique_ptr<WriterSession> writer_;
  std::uint64_t rules_version_ = 0;  // of this transaction
  Freed freed_, freeing_;            // as committed, and as this transaction has it

  std::mutex readers_mutex_;
  std::shared_ptr<const OpenedFile> opened_;
  std::vector<std::unique_ptr<Session>> readers_;  // idle ones
  std::atomic<bool> replaced_ = false, interrupted_ = false;

  Activities activities_{*this};

  int watch_skipped_ = 0, watch_refused_ = 0;  // by the watching thread
  std::optional<Watch> watch_;
};

}  // namespace

std::unique_ptr<Store> open_sqlite_store(const SqliteOptions& options, const Clock& clock) {
  return std::make_unique<SqliteStore>(options, clock);
}

}  // namespace hapax
