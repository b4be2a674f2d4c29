// The process between a worker and its handler: ends the handler when the worker dies.
//
//   worker ──fork──▶ supervisor ──fork──▶ /bin/sh ─▶ the handler's processes
//      └──── lifeline, control ──▶ ┘ ◀── every one of them that loses its parent
//
// Every process that the handler starts stays below the supervisor, in any session or process group
// (PR_SET_CHILD_SUBREAPER). When the lifeline closes, the worker has ended, possibly by SIGKILL; then the supervisor
// ends all of them.
#pragma once

namespace hapax {

// What a worker writes to `control`.
inline constexpr char kTerminate = 'T';  // SIGTERM to the handler's process group
inline constexpr char kKill = 'K';       // SIGKILL to everything it has started

struct Supervised {
  const char* command;  // for /bin/sh -c
  char** environment;
  int in, out, err;  // of the handler
  int lifeline;      // its other end is open in the worker only
  int control;
  int status;  // gets the handler's wait status (an int) when it has ended
};

// Called in a freshly forked process with one thread. Runs the handler in its own process group, and ends when nothing
// of it is left. Allocates nothing: the forked process may have had threads.
[[noreturn]] void supervise(const Supervised& call);

}  // namespace hapax
