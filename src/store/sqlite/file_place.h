// Checks that the open files are still the ones at their path, with their own content. A commit into a database that
// was deleted, replaced or overwritten is lost to everyone who opens the path later.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

struct sqlite3;

namespace hapax::sqlite {

// What happened to a file, and what to do about it.
struct Displacement {
  std::string what;
  std::string for_clients;  // a sentence without the path
};

class FilePlace {
 public:
  // Of a connection that has read something, so that its write-ahead log is open; `identity` is that of its data.
  // Throws Failure::unavailable if its file was replaced since it was opened. A database without a file is always in
  // place.
  FilePlace(sqlite3* handle, std::string identity);

  // Nothing while all files are in place. Two calls of stat(), and a read of the file if it was written to.
  std::optional<Displacement> displaced() const;

  // Looks into the file the next time in any case. For a file system that keeps no times, or coarse ones.
  void distrust_time() const { *looked_at_ns_ = 0; }

  // Whether the content of the file is no longer that of the database.
  bool is_overwritten() const;

  // Whether another database is at the path, with nothing of the old one beside it. The old log would be read as the
  // new database's own and damage it.
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
  static std::optional<FileId> look(const std::string& path, std::int64_t* written_ns = nullptr);

  std::string path_, log_path_, index_path_;  // empty: no file
  std::optional<FileId> file_, log_, index_;
  std::string identity_;
  std::optional<std::string> identity_in_file_;  // when it was opened; nothing: it was in the log alone
  std::shared_ptr<std::atomic<std::int64_t>>
      looked_at_ns_;  // when the file was last written to before the last read of it
};

// Whether the file of a foreign connection is no longer at its path.
bool has_moved(sqlite3* handle);

}  // namespace hapax::sqlite
