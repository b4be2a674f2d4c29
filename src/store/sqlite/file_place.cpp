#include "store/sqlite/file_place.h"

#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "core/failure.h"
#include "store/sqlite/schema.h"

namespace hapax::sqlite {

namespace {

// As a `file:` URI of which SQLite reads neither the log nor any lock.
std::string immutable_uri(std::string_view path) {
  std::string uri = "file:";
  for (const char c : path) {
    if (c == '%' || c == '?' || c == '#') {
      uri += fmt::format("%{:02x}", static_cast<unsigned char>(c));
    } else {
      uri += c;
    }
  }
  return uri + "?immutable=1";
}

struct Content {
  enum class Kind { ours, not_ours, unreadable } kind = Kind::unreadable;
  std::string identity;  // of Kind::ours
};

// What the database's file holds by itself, without the log. By SQLite: closing a descriptor of our own would drop the
// locks that this process has on the file.
Content read_content(const std::string& path) {
  sqlite3* handle = nullptr;
  sqlite3_stmt* statement = nullptr;
  Content content;
  int code = sqlite3_open_v2(immutable_uri(path).c_str(), &handle,
                             SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, nullptr);
  if (code == SQLITE_OK) code = sqlite3_prepare_v2(handle, kSelectIdentity, -1, &statement, nullptr);
  if (code == SQLITE_OK) code = sqlite3_step(statement);
  if (code == SQLITE_ROW) {
    content.identity = reinterpret_cast<const char*>(sqlite3_column_text(statement, 0));
    content.kind = Content::Kind::ours;
  } else if (code == SQLITE_NOTADB || code == SQLITE_ERROR || code == SQLITE_DONE) {
    content.kind = Content::Kind::not_ours;
  }
  sqlite3_finalize(statement);
  sqlite3_close(handle);
  return content;
}

}  // namespace

bool has_moved(sqlite3* handle) {
  int moved = 0;
  sqlite3_file_control(handle, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
  return moved != 0;
}

std::optional<FilePlace::FileId> FilePlace::look(const std::string& path, std::int64_t* written_ns) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  if (written_ns) *written_ns = status.st_mtim.tv_sec * 1'000'000'000LL + status.st_mtim.tv_nsec;
  return FileId{status.st_dev, status.st_ino};
}

FilePlace::FilePlace(sqlite3* handle, std::string identity)
    : identity_(std::move(identity)), looked_at_ns_(std::make_shared<std::atomic<std::int64_t>>(0)) {
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
  Content content = read_content(path_);
  if (content.kind == Content::Kind::not_ours) {
    // A new database is in its log alone.
    sqlite3_wal_checkpoint_v2(handle, "main", SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
    content = read_content(path_);
  }
  if (content.kind == Content::Kind::ours) identity_in_file_ = content.identity;
}

bool FilePlace::is_overwritten() const {
  if (path_.empty() || look(path_) != file_) return false;
  constexpr int kLooks = 5;  // a checkpoint in progress may have written half of what is read
  for (int i = 0; i < kLooks; ++i) {
    if (i > 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const Content content = read_content(path_);
    const bool same =
        content.kind == Content::Kind::ours && (content.identity == identity_ || content.identity == identity_in_file_);
    // The verbs tell what is damaged.
    if (same || content.kind == Content::Kind::unreadable) return false;
    if (content.kind == Content::Kind::not_ours && !identity_in_file_) return false;
  }
  return true;
}

std::optional<Displacement> FilePlace::displaced() const {
  if (path_.empty()) return std::nullopt;
  const std::string name = std::filesystem::path(path_).filename();
  std::int64_t written_ns = 0;
  const auto file = look(path_, &written_ns);
  if (file != file_) {
    const bool blocked = file && !another_may_be_opened();
    const std::string_view how = file ? "replaced by another file" : "deleted or moved away";
    return Displacement{
        fmt::format("{0} was {1} while this program had it open, and nothing is written any more. Put the file back{2}",
                    path_, how,
                    blocked ? fmt::format("; or, to go on with the file that is there now, move {0}-wal and {0}-shm "
                                          "away, which belong to the old one and would damage it",
                                          path_)
                            : fmt::format("; or stop every program that uses it, make a new one with `hapax migrate`, "
                                          "and start them again")),
        fmt::format("The file {} was {} while the server had it open.", name, how)};
  }
  if (log_ && look(log_path_) != log_) {
    return Displacement{
        fmt::format("{0} was deleted or replaced while this program had it open, and nothing is written any more. It "
                    "holds what was committed last: stop every program that uses {1} with SIGTERM, which saves that, "
                    "and start them again",
                    log_path_, path_),
        fmt::format("The file {}-wal was deleted or replaced while the server had it open.", name)};
  }
  if (written_ns != *looked_at_ns_) {
    if (is_overwritten()) {
      return Displacement{
          fmt::format("{0} was overwritten while this program had it open, and nothing is written any more. Stop every "
                      "program that uses it, move {0}-wal and {0}-shm away, which belong to the old content and would "
                      "damage the new, put the right file there and start them again",
                      path_),
          fmt::format("The file {} was overwritten while the server had it open.", name)};
    }
    *looked_at_ns_ = written_ns;
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
