#include "support/temp_dir.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>

namespace hapax {

TempDir::TempDir() : TempDir(std::filesystem::temp_directory_path()) {}

TempDir::TempDir(const std::filesystem::path& parent) {
  std::string name = (parent / "hapax-test-XXXXXX").string();
  if (!mkdtemp(name.data())) throw std::system_error(errno, std::generic_category(), "cannot make " + name);
  path_ = name;
}

TempDir TempDir::in_memory_if_possible() {
  const char* memory = "/dev/shm";
  return access(memory, W_OK) == 0 ? TempDir(std::filesystem::path(memory)) : TempDir();
}

TempDir::~TempDir() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace hapax
