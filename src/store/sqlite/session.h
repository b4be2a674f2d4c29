// The connections of the store, each with everything that lives as long as it.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "store/sqlite/file_place.h"
#include "store/sqlite/schema.h"
#include "store/sqlite/tables.h"
#include "store/sqlite/verbs.h"

namespace hapax::sqlite {

// The data that the store was opened with.
struct OpenedFile {
  FilePlace place;
  std::string identity;
};

class Session {
 public:
  explicit Session(std::unique_ptr<Connection> connection)
      : tables(std::move(connection)), identity_(tables.connection(), kSelectIdentity) {}
  ~Session() {
    // Closing the last connection writes the log into the database. Not if others have a new log by now, or into
    // another one.
    if (opened && (opened->place.has_another_log() || opened->place.is_overwritten())) tables.connection().leave_log();
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Of the data that the current transaction sees.
  std::string identity() {
    Run run(identity_);
    return run.next() ? to_identity(run) : std::string();
  }

  Tables tables;
  std::shared_ptr<const OpenedFile> opened;

 private:
  Statement identity_;
};

class WriterSession : public Session {
 public:
  explicit WriterSession(std::unique_ptr<Connection> connection)
      : Session(std::move(connection)),
        claim(tables.connection()),
        requests(tables.connection()),
        sweep(tables.connection()),
        purge(tables.connection()),
        data_version_(tables.connection(), "PRAGMA data_version") {
    // Large enough that a page which many transactions change is copied into the database once, small enough that the
    // log stays in the page cache of the operating system.
    tables.connection().exec("PRAGMA wal_autocheckpoint = 4000");
    const std::string data = identity();
    opened = std::make_shared<OpenedFile>(OpenedFile{FilePlace(tables.connection().handle(), data), data});
    seen_by_verbs_ = seen_by_watch_ = version();
  }

  // Whether anybody else has written since this was last asked: by the verbs, and by the watch.
  bool others_wrote_since_last_verb() { return is_news(seen_by_verbs_); }
  bool others_wrote_since_last_look() { return is_news(seen_by_watch_); }
  void forget_looks() { seen_by_watch_ = -1; }

  Claim claim;
  Requests requests;
  Sweep sweep;
  Purge purge;

 private:
  bool is_news(std::int64_t& seen) {
    const std::int64_t now = version();
    return std::exchange(seen, now) != now;
  }

  std::int64_t version() {
    Run run(data_version_);
    run.next();
    return run.int64(0);
  }

  Statement data_version_;
  std::int64_t seen_by_verbs_ = 0, seen_by_watch_ = 0;
};

}  // namespace hapax::sqlite
