/* For LD_PRELOAD: a disk that needs DISK_SYNC_MS for each sync. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int sync_slowly(long call, int file) {
  const char* text = getenv("DISK_SYNC_MS");
  const long ms = text == NULL ? 0 : strtol(text, NULL, 10);
  const struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&pause, NULL);
  return (int)syscall(call, file);
}

int fsync(int file) { return sync_slowly(SYS_fsync, file); }
int fdatasync(int file) { return sync_slowly(SYS_fdatasync, file); }
