// A test's own directory, removed with the test.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

namespace hapax {

class TempDir {
 public:
  // In the system's directory for temporary files.
  TempDir();
  // In the fastest place, for tests in which nothing has to survive a power cut.
  static TempDir in_memory_if_possible();

  ~TempDir();
  TempDir(TempDir&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TempDir& operator=(TempDir&&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  explicit TempDir(const std::filesystem::path& parent);

  std::filesystem::path path_;
};

}  // namespace hapax
