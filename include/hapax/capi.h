/* The C ABI of Hapax: the whole HTTP API inside your process, for programs and SDKs in any language.
 *
 *   char* error = NULL;
 *   hapax* app = hapax_open("sqlite:orders.db", NULL, &error);
 *   hapax_completion answer;
 *   hapax_call_wait(app, "POST", "/v1/tasks", NULL, body, strlen(body), -1, &answer);
 *   printf("%d %s\n", answer.status, answer.body);
 *   hapax_release(&answer, 1);
 *   hapax_close(app);
 *
 * A call is what a request is over HTTP: a method, a target ("/v1/tasks?limit=10"), headers and a body. It is answered
 * with a status, headers and a body. On memory:, sqlite:, postgres:// and s3:// URLs the calls are handled within this
 * process, without sockets, by the code that a server has; on http:// and https:// URLs they go to that server. See
 * docs/http.md for the routes and docs/embedding.md for how to write an SDK on this header.
 *
 * Rules for all functions:
 *
 * - Any thread may call any function at any time, also several at once on one handle.
 * - Nothing calls back into the program. Answers arrive on a queue, which has a file descriptor to wait on.
 * - No function blocks, except hapax_open, hapax_close, hapax_call_wait and hapax_test_*.
 * - A handle that is NULL, closed or of another kind is an error that is answered, never undefined behaviour: handles
 *   are numbers in the shape of pointers, are never used twice, and must not be dereferenced.
 * - After fork() the child must open handles of its own: those of the parent are answered with the error ForkError,
 *   and their files and connections are not touched.
 * - Strings are UTF-8 and end with a zero byte, unless a size stands beside them. They are copied before the function
 *   returns.
 * - The interface is stable: functions, and members of options and bodies, are added; none is changed or removed. Take
 *   unknown kinds of completions and unknown members of JSON objects as absent.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hapax_app hapax_app;     /* an open store or a server */
typedef struct hapax_queue hapax_queue; /* where answers arrive */
typedef struct hapax_worker hapax_worker;
#ifndef __cplusplus
typedef hapax_app hapax; /* in C++ that is the namespace of the C++ library */
#endif

/* Something that has happened. Filled in by the library; the strings live until hapax_release. */
typedef struct hapax_completion {
  uint64_t token;      /* of the call, as given; of a worker's completion: the number of the claim */
  int32_t kind;        /* a HAPAX_… below */
  int32_t status;      /* the HTTP status; 0: there was no answer, and the body says why */
  const char* headers; /* a JSON object: {"Content-Type":"application/json"}; ends with a zero byte, as the body does */
  size_t headers_size; /* without the zero byte */
  const char* body;    /* never NULL */
  size_t body_size;    /* without the zero byte */
  hapax_worker* worker; /* of a worker's completion; NULL otherwise */
  void* memory;         /* the library's own: leave it alone */
} hapax_completion;

/* The kinds of completions. The values never change. */
enum {
  HAPAX_ANSWER = 1,           /* a call was answered */
  HAPAX_TASK = 2,             /* a worker has claimed a task: run it, then hapax_worker_finish */
  HAPAX_TURN = 3,             /* a worker has claimed a turn of a workflow: run it, then hapax_worker_turn */
  HAPAX_CANCEL_REQUESTED = 4, /* the task of this claim is to be cancelled: end it soon, and report that as an error */
  HAPAX_TIME_OVER = 5,        /* the time of this attempt is over: the engine ends it; stop, and report that */
  HAPAX_LEASE_LOST = 6,       /* the claim is gone, and what was reported of it is not done: drop what belongs to it */
  HAPAX_REFUSED = 7,          /* what was reported of this claim is malformed (status 400); the claim is still yours */
  HAPAX_WORKER_ENDED = 8      /* nothing more comes from this worker. A status other than 200: it could not work */
};

/* Where there is no answer, the status is 0 and the body is {"error", "message"} as in the errors of the HTTP API, with
 * "safe_to_retry": whether the same call may be made again. It counts on an "id" in submissions: without one, and
 * without a key, the same submission again is another task. The errors:
 *
 *   InvalidHandle   the handle is NULL or was never one of that kind
 *   Closed          the handle was closed
 *   ForkError       the handle belongs to the parent process
 *   InvalidCall     the method, target or headers are not what they should be
 *   QueueFull       the queue has as many calls without a drained answer as it may have; drain it first
 *   Timeout         of hapax_call_wait
 *   Cancelled       the call to a server was ended by hapax_cancel or hapax_close
 *   StoreUnavailable, OutcomeUnknown    the server cannot be reached; its answer was lost
 */

/* 1. It rises when functions are added. */
int32_t hapax_abi_version(void);

/* Opens a store or connects to a server: "memory:", "sqlite:FILE", "postgres://…", "s3://…", "http://…", "https://…".
 * The options are a JSON object, or NULL for the defaults:
 *
 *   namespace   of calls without the header Hapax-Namespace; "default"
 *   token       for a server that asks for one
 *   create      false: a store that does not exist is an error; true
 *   migrate     true: upgrades a store with an older schema; false
 *   max_calls   how many calls a queue may have that were not answered, or whose answers were not drained; 65536
 *
 * Returns NULL if that fails; *error_json is then {"error", "message"}, valid until the next hapax_open or
 * hapax_test_open on this thread. A server is connected to by the first call, so it may be away now. In a child that was
 * forked while a sqlite: URL was open, no sqlite: URL can be opened: SQLite does not survive that. Fork first. */
hapax_app* hapax_open(const char* url, const char* options_json, char** error_json);

/* Ends calls that wait, waits for those that are being committed, and closes the store. Every call is answered before it
 * returns: its answer is in its queue. */
void hapax_close(hapax_app* app);

/* A queue of completions, best one for each event loop. NULL if the handle is not open. It outlives the handle, so that
 * the last answers can be drained. */
hapax_queue* hapax_queue_new(hapax_app* app);

/* A descriptor (an eventfd) that is readable while completions wait: for poll, epoll, kqueue-like loops. Do not read it;
 * hapax_queue_drain does. It belongs to the queue. -1 if the handle is wrong. */
int hapax_queue_fd(hapax_queue* queue);

/* Moves up to `max` completions into `out` and returns how many. Returns at once, with 0 if there are none. Each one must
 * be given to hapax_release. */
size_t hapax_queue_drain(hapax_queue* queue, hapax_completion* out, size_t max);

/* Frees what completions hold. Releasing one twice does nothing. */
void hapax_release(hapax_completion* completions, size_t n);

/* Ends a queue, with its descriptor. What was not drained is dropped, and so are later answers. */
void hapax_queue_free(hapax_queue* queue);

/* Starts a call. Exactly one completion with its token arrives in the queue, whatever happens. The headers are a JSON
 * object of strings, {"Idempotency-Key": "cancel-456"}, or NULL; the body is `size` bytes and may be NULL if that is 0.
 * A queue with max_calls calls in it takes no more: such a call is answered with QueueFull, and nothing was done. If the
 * queue itself is a wrong handle, nothing happens. */
void hapax_call(hapax_app* app, hapax_queue* queue, uint64_t token, const char* method, const char* target,
                const char* headers_json, const char* body, size_t size);

/* The same for callers without a loop: waits for the answer, at most `timeout_ms` (forever if negative), and returns its
 * status; 0 if there was none. `out` is filled in either way, and must be released. After a Timeout the call is
 * cancelled as by hapax_cancel; whether it was done is not known. */
int32_t hapax_call_wait(hapax_app* app, const char* method, const char* target, const char* headers_json,
                        const char* body, size_t size, int64_t timeout_ms, hapax_completion* out);

/* Ends the waiting of all calls with this token: a long poll that nobody awaits any more. It is then answered as if its
 * time were over (of a server: with Cancelled). A call that does not wait is answered as ever. */
void hapax_cancel(hapax_app* app, uint64_t token);

/* A worker: it claims tasks and turns of workflows on its own threads, keeps their leases alive, and reports how they
 * ended, many in one commit. The program runs the code, wherever it likes. Options, all optional:
 *
 *   queues      that it works on; ["default"]
 *   types       the types of tasks that it runs; all. What it gets of others is given back
 *   workflows   the types of workflows that it runs; all
 *   name        for people to read; host and process id
 *   lease       how long a claim stays this worker's after the process dies; "60s"
 *   sdk         {"name", "version"} of the library on top of it
 *
 * It claims nothing until it has credit. Its completions arrive in the queue, each with the worker and, as its token,
 * the number of the claim. A claim that was not drained for the length of a lease goes back, followed by its
 * HAPAX_LEASE_LOST. NULL if that fails: then a HAPAX_WORKER_ENDED without a worker says why. Before the queue is freed,
 * drain the worker. */
hapax_worker* hapax_worker_new(hapax_app* app, hapax_queue* queue, const char* options_json);

/* The program has room for so many more tasks and turns; less, if negative. Each claim takes one, and no claim is made
 * without. So give the credit of a claim again when it is reported. */
void hapax_worker_credit(hapax_worker* worker, int32_t tasks, int32_t turns);

/* The end of a HAPAX_TASK, whose body is a claim as in the answer of POST /v1/claims. The outcome is an item of POST
 * /v1/claims/finish without its lease: {"result": …}, {} for no result, or {"error": {"type", "message", "retryable"}}.
 * NULL gives the task back unstarted, which costs no attempt. There is no answer unless it is not accepted: then
 * HAPAX_LEASE_LOST or HAPAX_REFUSED. A claim that is not there any more is ignored. */
void hapax_worker_finish(hapax_worker* worker, uint64_t claim, const char* outcome_json, size_t size);

/* The end of a HAPAX_TURN, whose body is a claim with the "run" and its "events" (docs/protocol.md). The turn is an item
 * of POST /v1/claims/turns without its lease: {"seen", "commands", "end"}. NULL gives it back. Answered as above: after
 * HAPAX_LEASE_LOST drop what you keep of the run.
 *
 * Quick steps within their turn: if the turn is suspended, and its last command is a task that the code waits for alone
 * (no other step is open), add "waits_for": the number of that step. If the rules allow it, that task comes as the next
 * HAPAX_TASK, beyond the credit. Once it has completed, the turn comes again under the same claim, with "continues":
 * true, and the task's end among its events: run on, and report the turn again. A program that has not kept the run
 * reports NULL then. Nothing else changes, whether or not the worker makes use of it. */
void hapax_worker_turn(hapax_worker* worker, uint64_t claim, const char* turn_json, size_t size);

/* No more claims. The handle takes reports until HAPAX_WORKER_ENDED says that everything was reported. */
void hapax_worker_drain(hapax_worker* worker);

/* For tests: an app in memory whose clock stands still, so that a workflow of twelve months takes some milliseconds. The
 * options are those of hapax_open, and "starts_at": the time at which it begins, "2026-01-01T00:00:00Z". */
hapax_app* hapax_test_open(const char* options_json, char** error_json);

/* Lets so much time pass. What becomes due happens at its time, one after the other: timers, delays, retries, schedules.
 * Before the clock moves on, this waits until no task or turn is running, and what can be claimed is claimed, for up to
 * 10 seconds; what no worker takes is waited for only shortly. So the program must run its tasks and turns on another
 * thread than this one. Does nothing for other apps. */
void hapax_test_advance(hapax_app* app, int64_t ms);

#ifdef __cplusplus
}
#endif
