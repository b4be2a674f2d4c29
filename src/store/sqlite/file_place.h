// Whether the files that a connection has open are still the ones at their path. What is committed into a database that was
// deleted or replaced meanwhile is lost to everybody who opens the path later.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

struct sqlite3;

namespace hapax::sqlite {

class FilePlace {
 public:
  // Of a connection that has read something, so that its write-ahead log is open. Throws Failure::unavailable if its file was
  // replaced since it was opened. A database without a file is always in place.
  explicit FilePlace(sqlite3* handle);

  // What happened to the files and what to do about it; nothing while all of them are in place. Two calls of stat().
  std::optional<std::string> displaced() const;

  // Whether another database lies at the path, with nothing of the old one beside it. The old log would be read as the new
  // database's own and damage it.
  bool another_may_be_opened() const;

  // The same, when the last connection may have been closed, which removes the log.
  FilePlace without_log() const;

  // Whether there is a log at its path that is not the one of then.
  bool has_another_log() const;

 private:
  struct FileId {
    dev_t device = 0;
    ino_t inode = 0;

    bool operator==(const FileId&) const = default;
  };
  static std::optional<FileId> look(const std::string& path);

  std::string path_, log_path_, index_path_;  // empty: no file
  std::optional<FileId> file_, log_, index_;
};

// Whether the file of somebody's connection is no longer at its path.
bool has_moved(sqlite3* handle);

}  // namespace hapax::sqlite
