/* capi_peer: the measures of hapax_peer through the C ABI. Takes the same arguments and prints the same line of JSON.
 *
 *   capi_peer --measure drain --count 20000 --store postgres://…      or any other URL of an empty store */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "hapax/capi.h"

enum {
  kInFlight = 32,
  kBatch = 1000,
  kBulkInFlight = 2,
  kCredit = 2000,
  kRoom = 256,
  kText = 512,
  kSteps = 3,
  kLongRuns = 5,
  kWarmUp = 1000
};

static long first;             /* the number of the first task: the warm-up has others */
static long wanted = kSteps;   /* steps of a workflow */
static long run_at_a_time = kInFlight; /* workflows */
static hapax* app;
static hapax_queue* queue;

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double cpu_s(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static void fail(const char* what, const char* why) {
  fprintf(stderr, "capi_peer: %s: %s\n", what, why);
  exit(1);
}

static int write_task(char* out, size_t size, long i, int keyed) {
  int length = snprintf(out, size,
                        "{\"type\":\"noop\",\"input\":{\"i\":%ld,\"user\":\"user-%07ld\",\"action\":\"resize\","
                        "\"note\":\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"}",
                        i, i);
  if (keyed)
    length += snprintf(out + length, size - (size_t)length, ",\"idempotency_key\":\"order-2026-11-15-%09ld\"", i);
  return length + snprintf(out + length, size - (size_t)length, "}");
}

static size_t drain(hapax_completion* completions) {
  struct pollfd readable = {hapax_queue_fd(queue), POLLIN, 0};
  if (poll(&readable, 1, 60000) != 1) fail("the queue", "nothing arrives");
  return hapax_queue_drain(queue, completions, kRoom);
}

/* Keeps that many calls in flight until all are answered with the status. */
static void call_all(long count, long in_flight, int status, void (*start)(long)) {
  long started = 0, answered = 0;
  while (started < count && started < in_flight) start(started++);
  while (answered < count) {
    hapax_completion completions[kRoom];
    const size_t some = drain(completions);
    for (size_t i = 0; i < some; ++i) {
      if (completions[i].status != status) fail("a call", completions[i].body);
      if (started < count) start(started++);
    }
    answered += (long)some;
    hapax_release(completions, some);
  }
}

static void submit(long i) {
  char body[kText];
  const int size = write_task(body, sizeof body, first + i, 1);
  hapax_call(app, queue, (uint64_t)i, "POST", "/v1/tasks", NULL, body, (size_t)size);
}

static void submit_batch(long number) {
  static char body[kBatch * kText];
  size_t size = (size_t)snprintf(body, sizeof body, "{\"tasks\":[");
  for (long i = 0; i < kBatch; ++i) {
    if (i > 0) body[size++] = ',';
    size += (size_t)write_task(body + size, sizeof body - size, number * kBatch + i, 0);
  }
  size += (size_t)snprintf(body + size, sizeof body - size, "]}");
  hapax_call(app, queue, (uint64_t)number, "POST", "/v1/tasks/batch", NULL, body, size);
}

static void start_workflow(long i) {
  char body[kText];
  const int size = snprintf(body, sizeof body, "{\"type\":\"chain\",\"workflow_id\":\"w-%ld\",\"input\":%ld}", i, i);
  hapax_call(app, queue, (uint64_t)i, "POST", "/v1/workflows", NULL, body, (size_t)size);
}

/* The turn that follows so many ended steps. True if it is the last. */
static int run_turn(hapax_worker* worker, const hapax_completion* claim) {
  long events = 0, seen = 0, steps = 0;
  const char* run = strstr(claim->body, "\"run\":{");
  if (run == NULL || sscanf(run, "\"run\":{\"events\":%ld,\"seen\":%ld,\"steps\":%ld", &events, &seen, &steps) != 3)
    fail("a turn", claim->body);
  char turn[kText];
  const int is_last = steps == wanted;
  const int size =
      is_last ? snprintf(turn, sizeof turn, "{\"seen\":%ld,\"end\":{\"kind\":\"completed\",\"result\":%ld}}", events, steps)
              : snprintf(turn, sizeof turn,
                         "{\"seen\":%ld,\"commands\":[{\"step\":%ld,\"kind\":\"task\",\"start\":{\"type\":"
                         "\"step\",\"input\":%ld}}],\"waits_for\":%ld,\"end\":{\"kind\":\"suspended\"}}",
                         events, steps + 1, steps, steps + 1);
  hapax_worker_turn(worker, claim->token, turn, (size_t)size);
  return is_last;
}

/* Works until so many tasks, or workflows, are done and reported. Starts the workflows, so many at a time. */
static void work(long count, int workflows) {
  static const char kOutcome[] = "{\"result\":1}";
  hapax_worker* worker = hapax_worker_new(app, queue, NULL);
  long done = 0, started = 0;
  if (worker == NULL) fail("the worker", "it cannot start");
  hapax_worker_credit(worker, kCredit, workflows ? kInFlight : 0);
  while (workflows && started < count && started < run_at_a_time) start_workflow(started++);
  for (int working = 1; working;) {
    hapax_completion completions[kRoom];
    const size_t some = drain(completions);
    int tasks = 0, turns = 0;
    for (size_t i = 0; i < some; ++i) {
      const hapax_completion* each = &completions[i];
      if (each->kind == HAPAX_TASK) {
        hapax_worker_finish(worker, each->token, kOutcome, sizeof kOutcome - 1);
        if (!workflows) ++done, ++tasks;
      } else if (each->kind == HAPAX_TURN) {
        if (strstr(each->body, "\"continues\":true") == NULL) ++turns;
        if (run_turn(worker, each) == 0) continue;
        ++done;
        if (started < count) start_workflow(started++);
      } else if (each->kind == HAPAX_WORKER_ENDED) {
        working = 0;
      } else if (each->kind != HAPAX_ANSWER || each->status != 201) {
        fail("while working", each->body);
      }
    }
    hapax_release(completions, some);
    if (tasks + turns > 0) hapax_worker_credit(worker, tasks, turns);
    if (done >= count) hapax_worker_drain(worker);
  }
}

/* Fails unless so many have completed. */
static void expect_completed(const char* kind, long count) {
  long found = 0;
  char target[kText] = "", cursor[64] = "";
  do {
    hapax_completion page;
    snprintf(target, sizeof target, "/v1/%s?status=completed&limit=1000%s", kind, cursor);
    if (hapax_call_wait(app, "GET", target, NULL, NULL, 0, -1, &page) != 200) fail(target, page.body);
    for (const char* at = strstr(page.body, "\"status\":\"completed\""); at != NULL; ++found)
      at = strstr(at + 1, "\"status\":\"completed\"");
    const char* next = strstr(page.body, "\"next_cursor\":\"");
    cursor[0] = '\0';
    if (next != NULL) snprintf(cursor, sizeof cursor, "&cursor=%.36s", next + strlen("\"next_cursor\":\""));
    hapax_release(&page, 1);
  } while (cursor[0] != '\0');
  if (found != count) fail(kind, "not all are completed");
}

/* Fails unless so many wait. */
static void expect_pending(long count) {
  hapax_completion view;
  hapax_call_wait(app, "GET", "/v1/queues/default", NULL, NULL, 0, -1, &view);
  const char* pending = strstr(view.body, "\"pending\":");
  if (pending == NULL || strtol(pending + strlen("\"pending\":"), NULL, 10) != count) fail("pending", view.body);
  hapax_release(&view, 1);
}

static int run_measure(const char* measure, long count, double* start, double* used) {
  const int is_bulk = strcmp(measure, "bulk") == 0, is_drain = strcmp(measure, "drain") == 0;
  if (is_drain) call_all(count / kBatch, kBulkInFlight, 200, submit_batch);
  if (strcmp(measure, "submit_duplicate") == 0) call_all(count, kInFlight, 201, submit);
  if (strcmp(measure, "submit_key") == 0) {
    first = -kWarmUp;
    call_all(kWarmUp, kInFlight, 201, submit);
    first = 0;
  }
  if (strcmp(measure, "long_workflow") == 0) {
    wanted = count;
    run_at_a_time = 1;
  }
  *start = now_s();
  *used = cpu_s();
  if (strcmp(measure, "long_workflow") == 0) return work(kLongRuns, 1), 1;
  if (strcmp(measure, "submit_key") == 0) return call_all(count, kInFlight, 201, submit), 1;
  if (strcmp(measure, "submit_duplicate") == 0) return call_all(count, kInFlight, 200, submit), 1;
  if (is_bulk) return call_all(count / kBatch, kBulkInFlight, 200, submit_batch), 1;
  if (is_drain) return work(count / kBatch * kBatch, 0), 1;
  if (strcmp(measure, "workflow") == 0) return work(count, 1), 1;
  return 0;
}

int main(int argc, char** argv) {
  const char *measure = "", *url = NULL;
  long count = 0;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--measure") == 0) measure = argv[i + 1];
    if (strcmp(argv[i], "--count") == 0) count = strtol(argv[i + 1], NULL, 10);
    if (strcmp(argv[i], "--store") == 0 || strcmp(argv[i], "--postgres") == 0) url = argv[i + 1];
  }
  char* error = NULL;
  app = url != NULL && count > 0 ? hapax_open(url, NULL, &error) : NULL;
  if (app == NULL) fail("opening", error != NULL ? error : "--measure, --count and --store are needed");
  queue = hapax_queue_new(app);
  double start = 0, used = 0;
  const int is_known = run_measure(measure, count, &start, &used);
  const double seconds = now_s() - start;
  const int is_long = strcmp(measure, "long_workflow") == 0, is_short = strcmp(measure, "workflow") == 0;
  const double done = is_long ? (double)(count * kLongRuns) : (double)count, cpu_us = (cpu_s() - used) * 1e6 / done;
  if (strcmp(measure, "submit_key") == 0) expect_pending(count + kWarmUp);
  if (strcmp(measure, "submit_duplicate") == 0) expect_pending(count);
  if (strcmp(measure, "bulk") == 0) expect_pending(count / kBatch * kBatch);
  if (strcmp(measure, "drain") == 0) expect_completed("tasks", count / kBatch * kBatch);
  if (is_short || is_long) expect_completed("workflows", is_long ? kLongRuns : count);
  printf("{\"peer\":\"Hapax from C\",\"version\":\"%s\",\"measure\":\"%s\",", HAPAX_PEER_VERSION, measure);
  if (is_known) {
    const char* unit = is_long ? "steps" : is_short ? "workflows" : "tasks";
    printf("\"unit\":\"%s/s\",\"count\":%ld,\"seconds\":%.4f,\"value\":%.1f,\"client_cpu_us\":%.2f}\n", unit, count,
           seconds, done / seconds, cpu_us);
  } else {
    printf("\"unsupported\":true}\n");
  }
  hapax_close(app);
  hapax_queue_free(queue);
  return 0;
}
