// What is due of one type in a queue, during a claim, in order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store/postgres/verbs/verbs.h"

namespace hapax::postgres {

// The scan of the ready index: see due.h. Its seventh parameter is the longest input that is read with the rest.
const Statement& due_statement();

class DueTasks {
 public:
  // Reads so many at once.
  DueTasks(Claim& claim, Workspace& workspace, std::int32_t queue_no, std::string type, std::int64_t chunk);

  // Reads ahead, so that all that a claim asks for takes one round trip: what is sent here is received there.
  void send_scan();
  void receive_scan();

  bool was_scanned() const { return scanned_.has_value(); }
  bool must_read() const { return position_ == candidates_.size() && !all_read_; }
  // What was scanned, as candidates. True if one of them has a concurrency key.
  bool read_scanned();

  const std::vector<Row>& candidates() const { return candidates_; }
  Row* head() { return position_ < candidates_.size() ? &candidates_[position_] : nullptr; }
  void skip() { ++position_; }

  // Reads the input of its head, where it was too long to be read with the others, and those of the next ones that fit
  // into one answer with it. False: it was damaged, and is gone.
  bool read_whole();

  // When the clock alone may let another task through: what is sent here is received there.
  void send_next_at();
  std::optional<Time> receive_next_at();

 private:
  void drop_damaged();

  Claim& claim_;
  Workspace& workspace_;
  const std::int32_t queue_no_;
  const std::string type_;
  std::int64_t chunk_;
  std::vector<Row> candidates_;
  std::size_t position_ = 0;
  bool all_read_ = false;
  Claim::Position scan_from_;
  ScanBackoff::Clock::time_point scan_began_;
  std::optional<Rows> scanned_;
  std::optional<Time> look_again_;  // where the scan did not begin at the beginning
};

}  // namespace hapax::postgres
