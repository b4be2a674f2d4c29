#include "cli/health_check.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <vector>

namespace hapax {

namespace {

using Verdict = Finding::Verdict;
using Steady = std::chrono::steady_clock;

std::string format_bytes(std::uint64_t bytes) {
  const double mib = static_cast<double>(bytes) / (1 << 20);
  return mib < 1024 ? fmt::format("{:.0f} MiB", mib) : fmt::format("{:.1f} GiB", mib / 1024);
}

}  // namespace

Finding judge_clock(Time now, bool synchronised) {
  constexpr Time kWritten = std::chrono::sys_days(std::chrono::year(2026) / 1 / 1);
  if (now < kWritten) {
    return {Verdict::fail, "clock",
            fmt::format("it is {} here, which is before this program was written; set the clock", format_time(now))};
  }
  if (!synchronised) {
    return {Verdict::warn, "clock",
            fmt::format("{}, but it is not synchronised; run chrony or systemd-timesyncd", format_time(now))};
  }
  return {Verdict::ok, "clock", format_time(now)};
}

Finding check_clock(Time now) {
  timex state{};
  const int answer = adjtimex(&state);
  return judge_clock(now, answer != TIME_ERROR);
}

Finding judge_open_files(std::uint64_t soft, std::uint64_t hard) {
  constexpr std::uint64_t kLittle = 1024, kEnough = 4096;
  if (hard < kLittle) {
    return {Verdict::fail, "open files",
            fmt::format("at most {}; a server needs one for each connection: raise it with ulimit -n", hard)};
  }
  if (hard < kEnough) {
    return {Verdict::warn, "open files",
            fmt::format("at most {}; each waiting worker takes one: raise LimitNOFILE or ulimit -Hn", hard)};
  }
  return {Verdict::ok, "open files", fmt::format("{}, and a server raises it to {}", soft, hard)};
}

Finding check_open_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return {Verdict::warn, "open files", "the limit cannot be read"};
  return judge_open_files(limit.rlim_cur, limit.rlim_max);
}

Finding judge_disk_space(const std::string& directory, std::uint64_t free_bytes) {
  constexpr std::uint64_t kNone = 64ULL << 20, kLittle = 1ULL << 30;
  const std::string text = fmt::format("{} free in {}", format_bytes(free_bytes), directory);
  if (free_bytes < kNone)
    return {Verdict::fail, "disk space", text + "; a full disk refuses every submission: make room"};
  if (free_bytes < kLittle)
    return {Verdict::warn, "disk space", text + "; make room, or shorten the retention of queues"};
  return {Verdict::ok, "disk space", text};
}

Finding check_disk_space(const std::string& directory) {
  struct statvfs disk{};
  if (statvfs(directory.c_str(), &disk) != 0) {
    return {Verdict::fail, "disk space", fmt::format("{}: {}", directory, std::strerror(errno))};
  }
  return judge_disk_space(directory, static_cast<std::uint64_t>(disk.f_bavail) * disk.f_frsize);
}

std::optional<Finding> check_privacy(const std::string& file) {
  std::vector<std::string> open;
  for (const char* ending : {"", "-wal", "-shm"}) {
    struct stat status{};
    if (stat((file + ending).c_str(), &status) == 0 && (status.st_mode & 0077) != 0) open.push_back(file + ending);
  }
  if (open.empty()) return std::nullopt;
  return Finding{Verdict::warn, "permissions",
                 fmt::format("other users of this machine can read the store; run chmod 600 {}", fmt::join(open, " "))};
}

Finding judge_sync_rate(const std::string& directory, double per_second) {
  constexpr double kSlow = 100, kUnbelievable = 50'000;
  const std::string text = fmt::format("{:.0f} synced writes a second in {}", per_second, directory);
  if (per_second < kSlow) {
    return {Verdict::warn, "disk speed",
            text + "; each commit waits for one: a faster disk makes single submissions faster"};
  }
  if (per_second > kUnbelievable) {
    return {Verdict::warn, "disk speed", text + "; no disk is that fast: this one does not survive a power cut"};
  }
  return {Verdict::ok, "disk speed", text};
}

Finding check_sync_rate(const std::string& directory) {
  std::string path = directory + "/hapax-doctor-XXXXXX";
  const int file = mkstemp(path.data());
  if (file < 0) {
    return {Verdict::fail, "disk speed", fmt::format("cannot write in {}: {}", directory, std::strerror(errno))};
  }
  unlink(path.c_str());
  const std::vector<char> page(4096, 'h');
  constexpr int kMost = 200;
  constexpr auto kLongest = std::chrono::milliseconds(500);
  const auto start = Steady::now();
  int done = 0;
  bool failed = false;
  while (done < kMost && Steady::now() - start < kLongest && !failed) {
    failed = write(file, page.data(), page.size()) < 0 || fdatasync(file) != 0;
    ++done;
  }
  const int why = errno;
  close(file);
  if (failed)
    return {Verdict::fail, "disk speed", fmt::format("cannot write in {}: {}", directory, std::strerror(why))};
  return judge_sync_rate(directory, done / std::chrono::duration<double>(Steady::now() - start).count());
}

Finding judge_schedules(std::string_view name_space, std::span<const ActivityView> activities) {
  std::string ahead;
  for (const ActivityView& activity : activities) {
    if (!activity.fired_ahead_until) continue;
    ahead +=
        fmt::format("{}{} up to {}", ahead.empty() ? "" : ", ", activity.id, format_time(*activity.fired_ahead_until));
  }
  if (ahead.empty()) {
    return {Finding::Verdict::ok, "schedules",
            fmt::format("none of the {} activities in namespace {} has fired ahead of the clock", activities.size(),
                        name_space)};
  }
  return {Finding::Verdict::warn, "schedules",
          fmt::format(
              "the clock ran ahead once, and fired ahead of time: {}. They continue after that; what has "
              "fired does not fire again. hapax trigger ID starts one now, and a changed expression takes effect now",
              ahead)};
}

}  // namespace hapax
