#include "store/sqlite/file_place.h"

#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include "core/failure.h"

namespace hapax::sqlite {

bool has_moved(sqlite3* handle) {
  int moved = 0;
  sqlite3_file_control(handle, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
  return moved != 0;
}

std::optional<FilePlace::FileId> FilePlace::look(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return FileId{status.st_dev, status.st_ino};
}

FilePlace::FilePlace(sqlite3* handle) {
  const char* path = sqlite3_db_filename(handle, "main");
  if (!path || !*path) return;
  path_ = path;
  log_path_ = path_ + "-wal";
  index_path_ = path_ + "-shm";
  file_ = look(path_);
  log_ = look(log_path_);
  index_ = look(index_path_);
  if (!file_ || has_moved(handle)) {
    throw Failure(Failure::Code::unavailable,
                  fmt::format("{} was replaced while it was being opened; the same again may work", path_));
  }
}

std::optional<std::string> FilePlace::displaced() const {
  if (path_.empty()) return std::nullopt;
  const auto file = look(path_);
  if (file != file_) {
    const bool blocked = file && !another_may_be_opened();
    return fmt::format(
        "{0} was {1} while this program had it open, and nothing is written any more. Put the file back{2}", path_,
        file ? "replaced by another file" : "deleted or moved away",
        blocked
            ? fmt::format(
                  "; or, to go on with the file that is there now, move {0}-wal and {0}-shm away, which belong to the "
                  "old one and would damage it",
                  path_)
            : fmt::format("; or stop every program that uses it, make a new one with `hapax migrate`, and start "
                          "them again"));
  }
  if (log_ && look(log_path_) != log_) {
    return fmt::format(
        "{0} was deleted or replaced while this program had it open, and nothing is written any more. It holds what "
        "was "
        "committed last: stop every program that uses {1} with SIGTERM, which saves that, and start them again",
        log_path_, path_);
  }
  return std::nullopt;
}

bool FilePlace::another_may_be_opened() const {
  const auto file = look(path_);
  if (!file || file == file_) return false;
  const auto left = [](const std::optional<FileId>& known, const std::string& path) {
    return known && look(path) == known;
  };
  return !left(log_, log_path_) && !left(index_, index_path_);
}

FilePlace FilePlace::without_log() const {
  FilePlace place = *this;
  place.log_.reset();
  place.index_.reset();
  return place;
}

bool FilePlace::has_another_log() const {
  const auto log = log_ ? look(log_path_) : std::nullopt;
  return log && log != log_;
}

}  // namespace hapax::sqlite
