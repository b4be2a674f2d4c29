"""`hapax work`: any program as a handler."""

import collections
import json
import os
import signal
import time

import pytest

from caller import Caller
from command import FAILED, USAGE, Command
from conftest import eventually
from server import BINARY, SLOWDOWN


@pytest.fixture(params=["store", "url"])
def command(request, tmp_path):
    if request.param == "store":
        return Command(tmp_path, ["--store", f"sqlite:{tmp_path}/q.db"])
    server = request.getfixturevalue("server")
    return Command(tmp_path, ["--url", f"http://127.0.0.1:{server.port}"])


@pytest.fixture
def start(command):
    """Starts workers and ends them with the test."""
    started = []

    def work(*arguments):
        process = command.start("work", *arguments)
        started.append(process)
        return process

    yield work
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def submit(command, type="t", *arguments):
    return command.json("submit", type, *arguments)["execution"]["id"]


def closed(command, id):
    return eventually(lambda: (task := command.json("get", id))["status"] not in ("pending", "running") and task, 30)


def test_a_handler_gets_its_input_and_its_environment(command):
    id = submit(command, "greet", '{"name": "Ada"}')
    handler = 'env="$HAPAX_TASK_ID $HAPAX_TASK_TYPE $HAPAX_ATTEMPT $HAPAX_EFFECT_KEY"\n'
    handler += 'printf \'{"input": %s, "env": "%s"}\' "$(cat)" "$env"'
    ended = command.ok("work", "--exec", handler, "--once")

    result = command.json("get", id)["result"]
    assert result["input"] == {"name": "Ada"}
    assert result["env"].split() == [id, "greet", "1", id]
    assert f"{id} greet attempt 1 completed in" in ended.out


def test_what_is_printed_is_the_result(command):
    printing = ("echo hello; echo world", "echo 42", "true", "echo null")
    ids = [submit(command, "t", json.dumps(line)) for line in printing]
    command.ok("work", "--exec", "tr -d '\"' | sh", "--until-idle", "300ms")

    tasks = [command.json("get", id) for id in ids]
    assert [task["status"] for task in tasks] == ["completed"] * 4
    assert [task.get("result", "nothing") for task in tasks] == ["hello\nworld", 42, "nothing", None]


def test_the_exit_code_decides(command):
    final, again = submit(command, "final"), submit(command, "again", "--retry-initial", "1ms", "--retry-max", "1ms")
    handler = 'echo "sorry for $HAPAX_ATTEMPT" >&2\n[ $HAPAX_TASK_TYPE = final ] && exit 100\n[ $HAPAX_ATTEMPT = 3 ] || exit 7'
    lines = command.ok("work", "--exec", handler, "--until-idle", "500ms", "--json").out.splitlines()

    task = command.json("get", final)
    assert (task["status"], task["attempt"]) == ("failed", 1)
    assert task["error"] == {"type": "FinalError", "message": "exit code 100: sorry for 1"}
    task = command.json("get", again)
    assert (task["status"], task["attempt"]) == ("completed", 3)
    told = [attempt["error"]["message"] for attempt in task["attempts"]]
    assert told == ["exit code 7: sorry for 1", "exit code 7: sorry for 2"]
    outcomes = collections.Counter(json.loads(line)["outcome"] for line in lines)
    assert outcomes == {"failed for good": 1, "failed": 2, "completed": 1}


def test_a_handler_that_is_killed_is_tried_again(command, start, tmp_path):
    id = submit(command, "t", "--retry-initial", "1ms", "--retry-max", "1ms")
    write_pid = f"echo $$ > {tmp_path}/new; mv {tmp_path}/new {tmp_path}/pid"
    start("--exec", f"[ $HAPAX_ATTEMPT = 2 ] && exit 0; {write_pid}; exec sleep 1000")
    eventually((tmp_path / "pid").exists)
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)

    task = closed(command, id)
    assert (task["status"], task["attempt"]) == ("completed", 2)
    assert "killed by signal 9" in task["attempts"][0]["error"]["message"]


def test_cancel_reaches_the_child(command, start, tmp_path):
    id = submit(command)
    on_signal = f"trap 'echo stopped > {tmp_path}/stopped; exit 1' TERM"
    start("--exec", f"{on_signal}; touch {tmp_path}/started; while :; do sleep 0.01; done", "--lease", "1s")
    eventually((tmp_path / "started").exists)
    command.ok("cancel", id)

    task = closed(command, id)
    assert task["status"] == "cancelled"
    assert (tmp_path / "stopped").exists()


def test_a_handler_is_ended_at_its_timeout(command, tmp_path):
    id = submit(command, "t", "--timeout", "300ms", "--max-attempts", "1")
    started = time.monotonic()
    ended = command.ok("work", "--exec", f"echo $$ > {tmp_path}/pid; exec sleep 1000", "--once", "--lease", "10m")
    assert time.monotonic() - started < 10 * SLOWDOWN
    assert f"{id} t attempt 1 timed out in" in ended.out and "completed in" not in ended.out
    assert not os.path.exists(f"/proc/{(tmp_path / 'pid').read_text().strip()}")
    assert closed(command, id)["status"] == "timed_out"


def test_a_report_that_is_refused_is_not_shown_as_completed(command):
    command.ok("queues", "set", "default", "cancel_grace=1ms")
    id = submit(command)
    there = f"$HAPAX_TASK_ID {' '.join(command.where)}"
    handler = f"{BINARY} cancel {there} >&2\nuntil {BINARY} get {there} --json | grep -q '\"cancelled\"'; do sleep 0.05; done"
    ended = command.run("work", "--exec", handler, "--once", "--lease", "10m")
    assert ended.code == FAILED, ended
    assert f"{id} t attempt 1 refused in" in ended.out and " completed in" not in ended.out
    summary, error = ended.err.splitlines()[-2:]
    assert summary == "0 completed, 0 failed attempts, 1 whose report was not accepted"
    assert f"the report was not accepted: task {id} attempt 1: the lease was lost" in error
    assert command.json("get", id)["status"] == "cancelled"


def test_sigterm_drains(command, start, tmp_path):
    id, waiting = submit(command), submit(command, "other", "--priority", "-1")
    worker = start("--exec", f"touch {tmp_path}/started; while [ ! -e {tmp_path}/go ]; do sleep 0.01; done; echo 1")
    eventually((tmp_path / "started").exists)
    worker.send_signal(signal.SIGTERM)
    assert worker.stderr.readline().startswith("working on default at")
    assert worker.stderr.readline().startswith("stopping on signal 15: finishing what runs")
    (tmp_path / "go").touch()

    assert worker.wait(20 * SLOWDOWN) == 0
    assert command.json("get", id)["result"] == 1
    assert command.json("get", waiting)["status"] == "pending"


def test_a_worker_that_is_killed_loses_nothing(command, start, tmp_path):
    id = submit(command)
    first = start("--exec", f"touch {tmp_path}/started; exec sleep 1000", "--lease", "1s")
    eventually((tmp_path / "started").exists)
    first.kill()

    start("--exec", "echo second", "--lease", "1s")
    task = closed(command, id)
    assert (task["status"], task["result"]) == ("completed", "second")
    assert task["attempts"][0]["error"]["type"] == "LeaseExpired"


def ended_by(command, start, tmp_path, end):
    """Ends a worker whose handler has a child, a grandchild in its own session, and one that ignores signals."""
    submit(command)
    files = [tmp_path / name for name in ("shell", "child", "session", "deaf")]
    handler = (
        f"echo $$ > {files[0]}\nsleep 1000 & echo $! > {files[1]}\n"
        f"setsid sh -c 'echo $$ > {files[2]}; sleep 1000; true' &\n"
        f"(trap '' TERM; setsid setsid sh -c 'echo $$ > {files[3]}; while :; do sleep 1; done') &\nwait"
    )
    worker = start("--exec", handler, "--lease", "60s")
    pids = [int(eventually(lambda file=file: file.exists() and file.read_text().strip())) for file in files]
    assert all(os.path.exists(f"/proc/{pid}") for pid in pids)
    end(worker)
    worker.wait(20 * SLOWDOWN)
    for pid in pids:
        eventually(lambda pid=pid: not os.path.exists(f"/proc/{pid}"), 10)


def test_all_that_a_handler_started_ends_with_a_killed_worker(command, start, tmp_path):
    ended_by(command, start, tmp_path, lambda worker: worker.kill())


def test_all_that_a_handler_started_ends_with_the_second_sigterm(command, start, tmp_path):
    def twice(worker):
        worker.send_signal(signal.SIGTERM)
        assert worker.stderr.readline().startswith("working on")
        assert worker.stderr.readline().startswith("stopping on signal 15")
        worker.send_signal(signal.SIGTERM)

    ended_by(command, start, tmp_path, twice)


def test_a_handler_sees_nothing_of_the_workers_secrets(command):
    id = submit(command)
    secrets = {"HAPAX_TOKEN": "secret", "AWS_SECRET_ACCESS_KEY": "secret", "MODE": "fast", "LEVEL": "1"}
    command.ok("work", "--exec", "env", "--once", "--env", "MODE", "--env", "LEVEL=3", "--env", "ABSENT", environment=secrets)
    seen = dict(line.split("=", 1) for line in command.json("get", id)["result"].splitlines())
    assert "secret" not in seen.values()
    assert (seen["MODE"], seen["LEVEL"], seen["PATH"], seen["LC_ALL"]) == ("fast", "3", "/usr/bin:/bin", "C")
    assert seen["HAPAX_TASK_ID"] == id and "ABSENT" not in seen
    assert command.run("work", "--exec", "env", "--env", "=x").code == USAGE


def test_a_handler_finds_no_secrets_in_the_environment_of_its_parent(command):
    id = submit(command)
    handler = "tr '\\0' '\\n' < /proc/$PPID/environ; cat /proc/$PPID/comm"
    command.ok("work", "--exec", handler, "--once", environment={"HAPAX_TOKEN": "secret", "PGPASSWORD": "secret"})
    seen = command.json("get", id)["result"]
    assert "hapax" in seen and "secret" not in seen



def test_once_fails_if_the_report_was_not_accepted(server, tmp_path):
    command = Command(tmp_path, ["--url", f"http://127.0.0.1:{server.port}"])
    id = submit(command)
    ended = command.run("work", "--exec", f"kill -9 {server.process.pid}", "--once", "--lease", "1s")
    assert ended.code == FAILED, ended
    assert f"the report was not accepted: task {id} attempt 1: the report could not be sent" in ended.err


def test_types_decide_the_queue_and_others_are_not_taken(command):
    command.ok("types", "set", "charge", "queue=payments")
    charge, other = submit(command, "charge"), submit(command, "other", "--queue", "payments", "--max-attempts", "1")
    ended = command.ok("work", "--exec", "echo 1", "--type", "charge", "--until-idle", "300ms")

    assert command.json("get", charge)["status"] == "completed"
    task = command.json("get", other)
    assert (task["status"], task["attempt"]) == ("pending", 0)
    assert "other" not in ended.err
    command.ok("work", "--exec", "echo 2", "--type", "other", "--queue", "payments", "--once")
    assert command.json("get", other)["result"] == 2


def test_handlers_run_at_once(command, tmp_path):
    for _ in range(4):
        submit(command)
    # Each waits for the others, so it ends only if all four run at once.
    handler = f"touch {tmp_path}/here-$HAPAX_TASK_ID\nwhile [ $(ls {tmp_path} | grep -c here-) -lt 4 ]; do sleep 0.01; done"
    command.ok("work", "--exec", handler, "--concurrency", "4", "--until-idle", "300ms")
    assert [task["status"] for task in command.json("list")["executions"]] == ["completed"] * 4


def test_a_thousand_tasks_with_a_handler_that_fails_one_time_in_three(server, tmp_path):
    caller = Caller(server)
    options = {"max_attempts": 20, "retry": {"initial": "1ms", "factor": 1, "max": "1ms"}}
    answer = caller.batch(*[{"type": "flaky", "input": i, **options} for i in range(1000)])
    assert all(receipt["created"] for receipt in answer.json["receipts"])
    # Every third run fails, counted over all tasks and attempts: a file grows by a byte with each.
    handler = tmp_path / "handler.sh"
    handler.write_text(
        "read input\n"
        f"exec 9>>{tmp_path}/runs; flock 9; printf x >&9; runs=$(stat -c %s {tmp_path}/runs); flock -u 9\n"
        '[ $((runs % 3)) = 0 ] && { echo "run $runs failed" >&2; exit 1; }\n'
        "echo $((input * 2))\n"
    )
    command = Command(tmp_path, ["--url", f"http://127.0.0.1:{server.port}"])
    started = time.monotonic()
    ended = command.ok("work", "--exec", f"sh {handler}", "--concurrency", 8, "--until-idle", "1s", deadline_s=150)
    print(f"1,000 tasks in {time.monotonic() - started:.1f} s: {ended.err.splitlines()[-1]}")

    tasks = command.json("list", "--limit", 2000)["executions"]
    assert [task["status"] for task in tasks] == ["completed"] * 1000
    assert all(task["result"] == task["input"] * 2 for task in tasks)
    runs = (tmp_path / "runs").stat().st_size
    failures = sum(len(task["attempts"]) for task in tasks)
    assert runs == 1000 + failures and failures == runs // 3
    assert all(task["attempt"] == 1 + len(task["attempts"]) for task in tasks)
    assert all("exit code 1: run" in attempt["error"]["message"] for task in tasks for attempt in task["attempts"])
    assert ended.err.splitlines()[-1] == f"1000 completed, {failures} failed attempts"
