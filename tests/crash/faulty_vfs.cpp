#include "crash/faulty_vfs.h"

#include <sqlite3.h>

#include <new>
#include <utility>

namespace hapax {
namespace {

struct Plan {
  FileOperation operation = FileOperation::write;
  int remaining = -1;  // negative: nothing fails
  int code = SQLITE_OK;
  bool failed = false;

  int writes_left = -1;
  std::function<void()> at_write;

  int check(FileOperation now) {
    if (remaining < 0 || now != operation) return SQLITE_OK;
    if (remaining > 0 && --remaining > 0) return SQLITE_OK;
    failed = true;
    return code;
  }
};

Plan plan;

struct FaultyFile {
  sqlite3_file base;
  sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
  const sqlite3_io_methods* methods() { return real()->pMethods; }
  static FaultyFile* of(sqlite3_file* file) { return reinterpret_cast<FaultyFile*>(file); }
};

sqlite3_vfs* real_vfs = nullptr;

int close_file(sqlite3_file* file) { return FaultyFile::of(file)->methods()->xClose(FaultyFile::of(file)->real()); }

int read_file(sqlite3_file* file, void* out, int size, sqlite3_int64 offset) {
  return FaultyFile::of(file)->methods()->xRead(FaultyFile::of(file)->real(), out, size, offset);
}

int write_file(sqlite3_file* file, const void* data, int size, sqlite3_int64 offset) {
  FaultyFile* faulty = FaultyFile::of(file);
  if (const int code = plan.check(FileOperation::write)) return code;
  if (plan.writes_left > 0 && --plan.writes_left == 0) {
    faulty->methods()->xWrite(faulty->real(), data, size / 2, offset);
    std::exchange(plan.at_write, nullptr)();
  }
  return faulty->methods()->xWrite(faulty->real(), data, size, offset);
}

int truncate_file(sqlite3_file* file, sqlite3_int64 size) {
  if (const int code = plan.check(FileOperation::truncate)) return code;
  return FaultyFile::of(file)->methods()->xTruncate(FaultyFile::of(file)->real(), size);
}

int sync_file(sqlite3_file* file, int flags) {
  if (const int code = plan.check(FileOperation::sync)) return code;
  return FaultyFile::of(file)->methods()->xSync(FaultyFile::of(file)->real(), flags);
}

int file_size(sqlite3_file* file, sqlite3_int64* size) {
  return FaultyFile::of(file)->methods()->xFileSize(FaultyFile::of(file)->real(), size);
}
int lock_file(sqlite3_file* file, int level) {
  return FaultyFile::of(file)->methods()->xLock(FaultyFile::of(file)->real(), level);
}
int unlock_file(sqlite3_file* file, int level) {
  return FaultyFile::of(file)->methods()->xUnlock(FaultyFile::of(file)->real(), level);
}
int check_reserved(sqlite3_file* file, int* reserved) {
  return FaultyFile::of(file)->methods()->xCheckReservedLock(FaultyFile::of(file)->real(), reserved);
}
int file_control(sqlite3_file* file, int operation, void* argument) {
  return FaultyFile::of(file)->methods()->xFileControl(FaultyFile::of(file)->real(), operation, argument);
}
int sector_size(sqlite3_file* file) {
  return FaultyFile::of(file)->methods()->xSectorSize(FaultyFile::of(file)->real());
}
int characteristics(sqlite3_file* file) {
  return FaultyFile::of(file)->methods()->xDeviceCharacteristics(FaultyFile::of(file)->real());
}
int shm_map(sqlite3_file* file, int page, int size, int extend, void volatile** out) {
  return FaultyFile::of(file)->methods()->xShmMap(FaultyFile::of(file)->real(), page, size, extend, out);
}
int shm_lock(sqlite3_file* file, int offset, int count, int flags) {
  return FaultyFile::of(file)->methods()->xShmLock(FaultyFile::of(file)->real(), offset, count, flags);
}
void shm_barrier(sqlite3_file* file) { FaultyFile::of(file)->methods()->xShmBarrier(FaultyFile::of(file)->real()); }
int shm_unmap(sqlite3_file* file, int erase) {
  return FaultyFile::of(file)->methods()->xShmUnmap(FaultyFile::of(file)->real(), erase);
}

const sqlite3_io_methods kMethods = {
    .iVersion = 2,
    .xClose = close_file,
    .xRead = read_file,
    .xWrite = write_file,
    .xTruncate = truncate_file,
    .xSync = sync_file,
    .xFileSize = file_size,
    .xLock = lock_file,
    .xUnlock = unlock_file,
    .xCheckReservedLock = check_reserved,
    .xFileControl = file_control,
    .xSectorSize = sector_size,
    .xDeviceCharacteristics = characteristics,
    .xShmMap = shm_map,
    .xShmLock = shm_lock,
    .xShmBarrier = shm_barrier,
    .xShmUnmap = shm_unmap,
    .xFetch = nullptr,
    .xUnfetch = nullptr,
};

int open_file(sqlite3_vfs*, sqlite3_filename name, sqlite3_file* file, int flags, int* out_flags) {
  FaultyFile* faulty = FaultyFile::of(file);
  faulty->base.pMethods = nullptr;
  if (const int code = plan.check(FileOperation::open)) return code;
  const int code = real_vfs->xOpen(real_vfs, name, faulty->real(), flags, out_flags);
  if (faulty->real()->pMethods) faulty->base.pMethods = &kMethods;
  return code;
}

}  // namespace

void FaultyVfs::install() {
  if (real_vfs) return;
  real_vfs = sqlite3_vfs_find(nullptr);
  static sqlite3_vfs vfs = *real_vfs;
  vfs.zName = kName;
  vfs.szOsFile += static_cast<int>(sizeof(FaultyFile));
  vfs.pNext = nullptr;
  vfs.xOpen = open_file;
  sqlite3_vfs_register(&vfs, 0);
}

void FaultyVfs::fail_from(FileOperation operation, int n, int code) {
  plan = {};
  plan.operation = operation;
  plan.remaining = n;
  plan.code = code;
}

void FaultyVfs::lift() { plan.remaining = -1; }

bool FaultyVfs::has_failed() { return plan.failed; }

void FaultyVfs::at_write(int n, std::function<void()> at) {
  plan = {};
  plan.writes_left = n;
  plan.at_write = std::move(at);
}

}  // namespace hapax
