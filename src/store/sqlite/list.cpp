// Lists stay within their namespace: each of its queues is walked by an index that begins with the queue, newest first,
// and the walks are merged. Executions are loaded one by one, until the page is full.
#include <fmt/format.h>

#include <algorithm>

#include "store/sqlite/verbs.h"

namespace hapax::sqlite {

namespace {

constexpr std::int64_t kLeastRead = 8;  // by one scan of a queue

struct Place {
  ExecutionId id;
  std::int64_t seq = 0;
};

const char* index_for(const ListFilter& filter) {
  if (filter.parent) return "hapax_steps";
  if (filter.idempotency_key) return "hapax_keys";
  if (filter.status == Status::running) return "hapax_running";
  const bool unsuccessful = filter.status && is_closed(*filter.status) && *filter.status != Status::completed;
  return unsuccessful ? "hapax_unsuccessful" : "hapax_in_queue";
}

// ?1: queue_no, or NULL for those of ?8 and ?9; ?2: only older ones; ?7: how many.
std::string walk_sql(const ListFilter& filter) {
  std::string sql =
      fmt::format("SELECT e.id, e.seq FROM hapax_executions e INDEXED BY {} WHERE e.id < ?2", index_for(filter));
  if (filter.parent) {
    sql +=
        " AND e.parent = ?6 AND e.queue_no IN (SELECT queue_no FROM hapax_queues WHERE name_space = ?8 AND kind = ?9"
        " AND queue = coalesce(?10, queue))";
  } else {
    sql += " AND e.queue_no = ?1";
  }
  if (filter.type) sql += " AND e.type = ?3";
  if (filter.idempotency_key) sql += " AND e.key_hash = ?4 AND e.idempotency_key = ?5";
  // Written out, so that SQLite sees that the partial index has them all.
  if (filter.status) sql += fmt::format(" AND e.status = {}", static_cast<int>(*filter.status));
  return sql + " ORDER BY e.id DESC LIMIT ?7";
}

// One queue of the namespace, or all steps of a run, newest first.
class Walk {
 public:
  Walk(std::int64_t queue_no, const ListFilter& filter, std::int64_t chunk)
      : queue_no_(queue_no), filter_(filter), chunk_(chunk) {
    before_.bytes.fill(0xff);
    if (filter.before) before_ = *filter.before;
  }

  const Place* next(Statement& statement) {
    if (position_ == read_.size() && !is_over_) read_on(statement);
    return position_ < read_.size() ? &read_[position_] : nullptr;
  }
  void pass() { ++position_; }

 private:
  void read_on(Statement& statement) {
    read_.clear();
    position_ = 0;
    Run run(statement);
    run.bind(queue_no_).bind(before_).bind(filter_.type);
    run.bind(filter_.idempotency_key ? std::optional(key_hash(*filter_.idempotency_key)) : std::nullopt);
    run.bind(filter_.idempotency_key).bind(filter_.parent).bind(chunk_);
    if (filter_.parent) run.bind(filter_.name_space).bind(filter_.kind).bind(filter_.queue);
    while (run.next()) read_.push_back({run.bytes<ExecutionId>(0), run.int64(1)});
    is_over_ = std::ssize(read_) < chunk_;
    if (!read_.empty()) before_ = read_.back().id;
  }

  std::int64_t queue_no_;
  const ListFilter& filter_;
  std::int64_t chunk_;
  ExecutionId before_;
  std::vector<Place> read_;
  std::size_t position_ = 0;
  bool is_over_ = false;
};

std::vector<std::int64_t> queues_of(Tables& tables, const ListFilter& filter) {
  Statement statement(
      tables.connection(),
      "SELECT queue_no FROM hapax_queues WHERE name_space = ? AND kind = ? AND queue = coalesce(?, queue)");
  std::vector<std::int64_t> numbers;
  Run run(statement);
  run.bind(filter.name_space).bind(filter.kind).bind(filter.queue);
  while (run.next()) numbers.push_back(run.int64(0));
  return numbers;
}

std::vector<Walk> walks_of(Tables& tables, const ListFilter& filter) {
  std::vector<Walk> walks;
  if (filter.parent) {
    // The steps of a run of another namespace are not even counted.
    const auto parent = tables.load_state(*filter.parent);
    if (parent && parent->execution.name_space != filter.name_space) return walks;
    walks.emplace_back(0, filter, std::max<std::int64_t>(filter.limit + 1, kLeastRead));
    return walks;
  }
  const std::vector<std::int64_t> queues = queues_of(tables, filter);
  const std::int64_t share = (filter.limit + 1) / std::max<std::int64_t>(std::ssize(queues), 1);
  walks.reserve(queues.size());
  for (const std::int64_t queue : queues) walks.emplace_back(queue, filter, std::max(share + 1, kLeastRead));
  return walks;
}

// What cannot even be loaded is damaged as well. False: the page is full.
bool add(Tables& tables, const Place& place, PageFiller& page) {
  try {
    auto row = tables.load_all(place.seq);
    return !row || page.add(std::move(row->execution));
  } catch (const Failure& failure) {
    if (failure.code() != Failure::Code::corrupt) throw;
    return page.add(Damaged{
        place.id, fmt::format("What is stored of {} cannot be read: restore it from a backup.", place.id.to_string())});
  }
}

}  // namespace

Page list(Tables& tables, const ListFilter& filter) {
  PageFiller page(filter.limit);
  if (filter.limit <= 0) return page.take();
  Statement statement(tables.connection(), walk_sql(filter));
  std::vector<Walk> walks = walks_of(tables, filter);
  for (;;) {
    Walk* newest = nullptr;
    for (Walk& walk : walks) {
      const Place* place = walk.next(statement);
      if (place && (!newest || place->id > newest->next(statement)->id)) newest = &walk;
    }
    if (!newest) break;
    if (!add(tables, *newest->next(statement), page)) break;
    newest->pass();
  }
  return page.take();
}

}  // namespace hapax::sqlite
