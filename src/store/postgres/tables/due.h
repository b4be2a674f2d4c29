// The SQL of what is due of a type in a queue, in the order in which it is handed out.
//
// Its parameters are the queue's number ($1), the time ($2), the priority ($3) and run_at ($4) at which the last scan
// ended, the type ($5), and how many are wanted ($6).
#pragma once

#include <string>

namespace hapax::postgres {

// The priorities that there are, each with the run_at to begin at. Of the one at which the last scan ended ($3) that is
// where it ended ($4); nothing is known of the others.
inline const std::string kLevels = R"sql(
WITH RECURSIVE above (priority) AS (
  (SELECT o.priority FROM open o WHERE o.status = 0 AND NOT o.parked AND o.queue_no = $1::int4 AND o.type = $5::bytea
   AND o.priority > $3::int4 ORDER BY o.priority DESC LIMIT 1)
  UNION ALL
  SELECT (SELECT o.priority FROM open o WHERE o.status = 0 AND NOT o.parked AND o.queue_no = $1::int4
          AND o.type = $5::bytea AND o.priority < l.priority AND o.priority > $3::int4 ORDER BY o.priority DESC LIMIT 1)
  FROM above l WHERE l.priority IS NOT NULL),
below (priority) AS (
  (SELECT o.priority FROM open o WHERE o.status = 0 AND NOT o.parked AND o.queue_no = $1::int4 AND o.type = $5::bytea
   AND o.priority < $3::int4 ORDER BY o.priority DESC LIMIT 1)
  UNION ALL
  SELECT (SELECT o.priority FROM open o WHERE o.status = 0 AND NOT o.parked AND o.queue_no = $1::int4
          AND o.type = $5::bytea AND o.priority < l.priority ORDER BY o.priority DESC LIMIT 1) FROM below l WHERE l.priority IS NOT NULL),
level (priority, begin_at) AS (
  SELECT priority, -9223372036854775807::int8 FROM above UNION ALL SELECT $3::int4, $4::int8
  UNION ALL SELECT priority, -9223372036854775807::int8 FROM below))sql";

// After kLevels, where `now` is the time: rows of `open` as `s`, with their ctid as its location and their xmax as its
// locker; locked, or not, as `locking` says.
inline std::string due_rows(const std::string& now, const std::string& locking) {
  return "level l, LATERAL (SELECT o.*, o.ctid AS location, o.xmax AS locker FROM open o WHERE o.status = 0 AND NOT "
         "o.parked"
         " AND o.queue_no = $1::int4 AND o.type = $5::bytea AND o.priority = l.priority AND o.run_at >= l.begin_at"
         " AND o.run_at <= " +
         now + " AND (o.deadline_at IS NULL OR o.deadline_at > " + now + ") ORDER BY o.run_at, o.id LIMIT $6::int8 " +
         locking + ") s";
}

}  // namespace hapax::postgres
