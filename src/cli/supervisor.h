// The process between a worker and its handler: it outlives the worker, so that the handler does not.
//
//   worker ──fork──▶ supervisor ──fork──▶ /bin/sh ─▶ whatever the handler starts
//      └──── lifeline, control ──▶ ┘ ◀── every process of them that loses its parent
//
// Every process that the handler starts stays below the supervisor, in whatever session or process group
// (PR_SET_CHILD_SUBREAPER). When the lifeline closes, the worker has ended, be it by SIGKILL: then all of them are
// ended.
#pragma once

namespace hapax {

// What a worker writes to `control`.
inline constexpr char kTerminate = 'T';  // SIGTERM to the handler's process group
inline constexpr char kKill = 'K';       // SIGKILL to all that it has started

struct Supervised {
  const char* command;  // for /bin/sh -c
  char** environment;
  int in, out, err;  // of the handler
  int lifeline;      // its other end is open in the worker, and nowhere else
  int control;
  int status;  // gets the handler's wait status (an int) when it has ended
};

// Called in a process of one thread that was just forked. Runs the handler in a process group of its own, and ends when
// nothing is left of it. Allocates nothing: the process that was forked may have had threads.
[[noreturn]] void supervise(const Supervised& call);

}  // namespace hapax
