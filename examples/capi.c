/* Hapax from C: submits a task twice, works on it, runs a workflow and reads its answer.
 *
 *   example_capi sqlite:greetings.db        or memory:, postgres://…, s3://…, http://…
 *
 * A real program reads JSON with a library; here a few lines that look for members are enough. */
#include <ctype.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hapax/capi.h"

enum { kRoom = 8, kTextBytes = 256, kResultToken = 1 };

typedef struct {
  hapax* app;
  hapax_queue* queue;
  hapax_worker* worker;
  char result[kTextBytes]; /* of the workflow */
} Program;

/* The text of the first member of that name: "" if there is none. */
static void text_of(const char* json, const char* name, char out[kTextBytes]) {
  char member[kTextBytes];
  snprintf(member, sizeof member, "\"%s\":\"", name);
  out[0] = '\0';
  const char* found = strstr(json, member);
  if (found == NULL) return;
  found += strlen(member);
  snprintf(out, kTextBytes, "%.*s", (int)strcspn(found, "\""), found);
}

/* A call that waits for its answer. The answer is to be released. */
static hapax_completion call(Program* program, const char* method, const char* target, const char* body) {
  hapax_completion answer;
  hapax_call_wait(program->app, method, target, NULL, body, strlen(body), -1, &answer);
  return answer;
}

/* ---- tasks: plain functions */

static void run_task(Program* program, const hapax_completion* claim) {
  char type[kTextBytes], input[kTextBytes], outcome[2 * kTextBytes];
  text_of(claim->body, "type", type);
  text_of(claim->body, "input", input);
  if (strcmp(type, "greet") == 0) {
    snprintf(outcome, sizeof outcome, "{\"result\":\"Hello, %s\"}", input);
  } else {
    for (char* c = input; *c != '\0'; ++c) *c = (char)toupper((unsigned char)*c);
    snprintf(outcome, sizeof outcome, "{\"result\":\"%s\"}", input);
  }
  hapax_worker_finish(program->worker, claim->token, outcome, strlen(outcome));
  hapax_worker_credit(program->worker, 1, 0);
}

/* ---- the workflow: greet, then shout. Its code is replayed from the history at every turn. */

/* The number of the latest event, how many steps have ended, and the result of the last of them. */
static int read_history(const char* events, long* latest, char value[kTextBytes]) {
  int ended = 0;
  *latest = 0;
  value[0] = '\0';
  for (const char* at = strstr(events, "\"no\":"); at != NULL; at = strstr(at + 1, "\"no\":")) {
    *latest = strtol(at + strlen("\"no\":"), NULL, 10);
    char kind[kTextBytes];
    text_of(at, "kind", kind);
    if (strcmp(kind, "closed") != 0) continue;
    ++ended;
    text_of(at, "value", value);
  }
  return ended;
}

static void run_turn(Program* program, const hapax_completion* claim) {
  char run[kTextBytes], input[kTextBytes], target[4 * kTextBytes], value[kTextBytes], turn[4 * kTextBytes];
  text_of(strstr(claim->body, "\"execution\":"), "id", run);
  text_of(claim->body, "input", input);
  snprintf(target, sizeof target, "/v1/workflows/%s/history?run=%s", run, run);
  hapax_completion history = call(program, "GET", target, "");
  long latest = 0;
  const int ended = read_history(history.body, &latest, value);
  hapax_release(&history, 1);
  if (ended == 2) {
    snprintf(turn, sizeof turn, "{\"seen\":%ld,\"end\":{\"kind\":\"completed\",\"result\":\"%s\"}}", latest, value);
  } else {
    snprintf(turn, sizeof turn,
             "{\"seen\":%ld,\"commands\":[{\"step\":%d,\"kind\":\"task\",\"start\":"
             "{\"type\":\"%s\",\"queue\":\"greetings\",\"input\":\"%s\"}}],\"end\":{\"kind\":\"suspended\"}}",
             latest, ended + 1, ended == 0 ? "greet" : "shout", ended == 0 ? input : value);
  }
  hapax_worker_turn(program->worker, claim->token, turn, strlen(turn));
  hapax_worker_credit(program->worker, 0, 1);
}

/* ---- the loop */

static void ask_for_result(Program* program) {
  hapax_call(program->app, program->queue, kResultToken, "GET", "/v1/workflows/greet-ada/result?wait=20s", NULL, NULL,
             0);
}

/* False once the worker has ended. */
static int handle(Program* program, const hapax_completion* completion) {
  switch (completion->kind) {
    case HAPAX_TASK: run_task(program, completion); return 1;
    case HAPAX_TURN: run_turn(program, completion); return 1;
    case HAPAX_ANSWER:
      if (completion->status == 202) { /* not yet */
        ask_for_result(program);
      } else {
        text_of(completion->body, "result", program->result);
        hapax_worker_drain(program->worker);
      }
      return 1;
    case HAPAX_WORKER_ENDED:
      if (completion->status != 200) fprintf(stderr, "the worker ended: %s\n", completion->body);
      return 0;
    default: return 1; /* lost leases, cancel requests: nothing to clean up here */
  }
}

static void work(Program* program) {
  struct pollfd readable = {hapax_queue_fd(program->queue), POLLIN, 0};
  for (int working = 1; working;) {
    hapax_completion completions[kRoom];
    poll(&readable, 1, -1);
    const size_t count = hapax_queue_drain(program->queue, completions, kRoom);
    for (size_t i = 0; i < count; ++i) working = handle(program, &completions[i]) && working;
    hapax_release(completions, count);
  }
}

/* Said twice, it happens once. */
static int submit_twice(Program* program) {
  const char* task = "{\"type\":\"greet\",\"queue\":\"greetings\",\"input\":\"Bob\",\"idempotency_key\":\"greet-bob\"}";
  char first[kTextBytes], second[kTextBytes];
  hapax_completion answer = call(program, "POST", "/v1/tasks", task);
  text_of(answer.body, "id", first);
  hapax_release(&answer, 1);
  answer = call(program, "POST", "/v1/tasks", task);
  text_of(answer.body, "id", second);
  printf("greet-bob: %d, the same task: %s\n", (int)answer.status, strcmp(first, second) == 0 ? "yes" : "no");
  hapax_release(&answer, 1);
  return strcmp(first, second) == 0;
}

int main(int argc, char** argv) {
  char* error = NULL;
  Program program = {0};
  program.app = hapax_open(argc > 1 ? argv[1] : "memory:", NULL, &error);
  if (program.app == NULL) {
    fprintf(stderr, "%s\n", error);
    return 1;
  }
  program.queue = hapax_queue_new(program.app);
  const int is_one = submit_twice(&program);

  hapax_completion started =
      call(&program, "POST", "/v1/workflows",
           "{\"type\":\"greeting\",\"workflow_id\":\"greet-ada\",\"queue\":\"greetings\",\"input\":\"Ada\"}");
  hapax_release(&started, 1);
  program.worker =
      hapax_worker_new(program.app, program.queue,
                       "{\"queues\":[\"greetings\"],\"types\":[\"greet\",\"shout\"],\"workflows\":[\"greeting\"]}");
  hapax_worker_credit(program.worker, kRoom, kRoom);
  ask_for_result(&program);
  work(&program);
  printf("greet-ada: %s\n", program.result);

  hapax_close(program.app);
  hapax_queue_free(program.queue);
  return is_one && strcmp(program.result, "HELLO, ADA") == 0 ? 0 : 1;
}
