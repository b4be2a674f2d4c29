#include "store/postgres/verbs/due_tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "store/postgres/tables/due.h"
#include "store/postgres/verbs/start.h"
#include "store/rules/hand_out.h"

namespace hapax::postgres {

namespace {

constexpr std::int64_t kLongestChunk = 10'000;  // where all before it were damaged

const Statement kDue{
    "due", fmt::format("{} SELECT s.location, octet_length(e.input), {} FROM {} JOIN {} ON true LIMIT $6::int8",
                       kLevels, row_columns_with_input_up_to("$7::int8"),
                       due_rows("$2::int8", "FOR UPDATE SKIP LOCKED"), lookup("executions", "id", "s.id", "e"))};

const Statement kNextRunAt{"next_run_at", kLevels + R"sql(
SELECT min(n.run_at) FROM level l, LATERAL (
  SELECT o.run_at FROM open o WHERE o.status = 0 AND NOT o.parked AND o.queue_no = $1::int4 AND o.type = $5::bytea
  AND o.priority = l.priority AND o.run_at > $2::int8 ORDER BY o.run_at LIMIT 1) n)sql"};

}  // namespace

const Statement& due_statement() { return kDue; }

DueTasks::DueTasks(Claim& claim, Workspace& workspace, std::int32_t queue_no, std::string type, std::int64_t chunk)
    : claim_(claim), workspace_(workspace), queue_no_(queue_no), type_(std::move(type)), chunk_(chunk) {}

void DueTasks::send_scan() {
  scan_from_ = claim_.begin_of(queue_no_, type_);
  scan_began_ = ScanBackoff::Clock::now();
  Parameters parameters;
  parameters.int4(queue_no_).time(workspace_.now()).int4(scan_from_.priority).int8(to_ms(scan_from_.run_at));
  workspace_.connection().send(kDue, parameters.bytes(type_).int8(chunk_).int8(kPageBytes / chunk_));
}

void DueTasks::receive_scan() {
  scanned_ = workspace_.connection().receive();
  if (!scan_from_.is_known()) {
    claim_.scanned(queue_no_, ScanBackoff::Clock::now() - scan_began_, scanned_->size());
  } else if (scanned_->size() < chunk_) {  // there may be more before that
    look_again_ = workspace_.now() + claim_.wait_for_scan(queue_no_);
  }
}

bool DueTasks::read_scanned() {
  const Rows rows = *std::exchange(scanned_, std::nullopt);
  candidates_.clear();
  position_ = 0;
  bool any_key = false;
  for (int i = 0; i < rows.size(); ++i) {
    Cells cells(rows, i);
    Row& row = candidates_.emplace_back();
    row.location = cells.raw<RowLocation>();
    row.input_bytes = cells.integer();
    read_row(cells, row);
    any_key = any_key || row.execution.concurrency_key;
  }
  all_read_ = rows.size() < chunk_;
  claim_.set_damaged(queue_no_, false);
  drop_damaged();
  std::sort(candidates_.begin(), candidates_.end(),
            [](const Row& a, const Row& b) { return goes_before(a.execution, b.execution); });
  workspace_.name(candidates_);
  return any_key;
}

bool DueTasks::read_whole() {
  const auto head = candidates_.begin() + static_cast<std::ptrdiff_t>(position_);
  if (!head->execution.input.empty()) return true;
  const ExecutionId id = head->execution.id;
  PageBudget budget;
  LongInputs inputs;
  for (auto row = head; row != candidates_.end() && budget.take(row->payload_bytes()); ++row) {
    if (row->execution.input.empty()) inputs.add(row->execution);
  }
  inputs.read(workspace_.connection());
  drop_damaged();
  return position_ < candidates_.size() && candidates_[position_].execution.id == id;
}

void DueTasks::send_next_at() {
  const Claim::Position from = claim_.begin_of(queue_no_, type_);
  Parameters parameters;
  parameters.int4(queue_no_).time(workspace_.now()).int4(from.priority).int8(to_ms(from.run_at));
  workspace_.connection().send(kNextRunAt, parameters.bytes(type_));
}

std::optional<Time> DueTasks::receive_next_at() {
  const Rows rows = workspace_.connection().receive();
  std::optional<Time> earliest = Cells(rows, 0).time_if();
  keep_earliest(earliest, look_again_);
  return earliest;
}

// Damaged ones stay where they are: if a scan found nothing else, only a longer one gets past them.
void DueTasks::drop_damaged() {
  if (std::erase_if(candidates_, [](const Row& row) { return row.execution.damaged; }) == 0) return;
  claim_.set_damaged(queue_no_, true);
  if (!candidates_.empty() || all_read_) return;
  all_read_ = chunk_ >= kLongestChunk;
  chunk_ = std::min(4 * chunk_, kLongestChunk);
}

}  // namespace hapax::postgres
