#include "store/sqlite/living.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "core/hash.h"
#include "core/hex.h"

namespace hapax::sqlite {

namespace {

std::string folder_of(const std::string& database) { return database + "-workers"; }

std::string file_of(const std::string& database, const std::string& worker) {
  std::string file = folder_of(database) + "/";
  for (const std::uint8_t byte : sha256(worker)) append_hex(file, byte);
  return file;
}

// Whether the open file is still the one of that name.
bool is_in_place(int file, const std::string& path) {
  struct stat open_one{}, named_one{};
  return fstat(file, &open_one) == 0 && stat(path.c_str(), &named_one) == 0 && open_one.st_ino == named_one.st_ino &&
         open_one.st_dev == named_one.st_dev;
}

class Hold {
 public:
  Hold(int file, std::string path) : file_(file), path_(std::move(path)) {}
  ~Hold() {
    // The last one of that name removes the file.
    if (flock(file_, LOCK_EX | LOCK_NB) == 0) unlink(path_.c_str());
    close(file_);
  }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

 private:
  const int file_;
  const std::string path_;
};

std::string read_name(int file) {
  std::string name(4096, '\0');
  const ssize_t length = pread(file, name.data(), name.size(), 0);
  name.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
  return name;
}

}  // namespace

std::shared_ptr<void> hold_worker(const std::string& database, const std::string& worker) {
  mkdir(folder_of(database).c_str(), 0700);
  const std::string path = file_of(database, worker);
  for (;;) {
    const int file = open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (file < 0) return nullptr;
    const bool is_named = pwrite(file, worker.data(), worker.size(), 0) == static_cast<ssize_t>(worker.size());
    if (!is_named || flock(file, LOCK_SH) != 0) {
      close(file);
      return nullptr;
    }
    if (is_in_place(file, path)) return std::make_shared<Hold>(file, path);
    close(file);  // it was removed as a dead worker's meanwhile
  }
}

DeadWorkers::DeadWorkers(const std::string& database) {
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder_of(database), none)) {
    const int file = open(entry.path().c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) continue;
    if (flock(file, LOCK_EX | LOCK_NB) != 0 || !is_in_place(file, entry.path())) {
      close(file);
      continue;
    }
    names_.push_back(read_name(file));
    files_.push_back(entry.path());
    locks_.push_back(file);
  }
}

DeadWorkers::~DeadWorkers() {
  for (const int lock : locks_) close(lock);
}

void DeadWorkers::forget() {
  for (const std::string& file : files_) unlink(file.c_str());
}

}  // namespace hapax::sqlite
