// A file system for SQLite that fails on demand, over the real one. Its name in a URI is "faulty".
#pragma once

#include <functional>
#include <string>

namespace hapax {

enum class FileOperation { open, write, sync, truncate };

// One plan at a time, for the whole process; the operations of all files are counted together.
class FaultyVfs {
 public:
  static constexpr const char* kName = "faulty";

  static void install();  // once or more often

  // From its n-th time on (1 is the next), the operation fails with that SQLite code, until lift().
  static void fail_from(FileOperation operation, int n, int code);
  static void lift();
  static bool has_failed();  // since fail_from()

  // In the middle of the n-th write from now, when half of it is in the file, calls `at`. Then the write continues.
  static void at_write(int n, std::function<void()> at);

  static std::string uri(const std::string& path) { return "file:" + path + "?vfs=" + kName; }
};

}  // namespace hapax
