"""A worker that dies in the middle of a handler, and one that is suspended and reports too late."""

import os
import signal

import pytest

from server import SLOWDOWN

PATIENT_WORKER = os.environ["HAPAX_PATIENT_WORKER"]


@pytest.fixture
def work(start, server, tmp_path):
    """work("a") starts a worker of that name; go("a") lets its handler end."""

    def start_worker(name):
        return start(PATIENT_WORKER, f"http://127.0.0.1:{server.port}", name, go_file(tmp_path, name))

    return start_worker


def go_file(tmp_path, name):
    return tmp_path / f"go-{name}"


def submit(server):
    return server.client.post("/v1/tasks", {"type": "wait", "idempotency_key": "once"}).json["execution"]["id"]


def closed(server, task):
    answer = server.client.get(f"/v1/tasks/{task}/result?wait={30 * SLOWDOWN if SLOWDOWN == 1 else 60}s")
    assert answer.status == 200, answer.json
    return answer.json["execution"]


def test_another_worker_finishes_what_a_killed_one_had_begun(server, work, tmp_path):
    task = submit(server)
    first = work("first")
    number, effect_key = first.stdout.readline().split()[1:]
    assert number == "1"
    first.send_signal(signal.SIGKILL)
    first.wait()

    go_file(tmp_path, "second").touch()
    second = work("second")
    assert second.stdout.readline().split() == ["started", "2", effect_key]
    execution = closed(server, task)

    assert (execution["status"], execution["result"], execution["attempt"]) == ("completed", "second", 2)


def test_the_late_answer_of_a_worker_that_slept_too_long_is_refused(server, work, tmp_path):
    task = submit(server)
    first = work("first")
    assert first.stdout.readline().startswith("started 1 ")
    first.send_signal(signal.SIGSTOP)  # like a closed laptop, a swapping host, a paused container

    second = work("second")
    assert second.stdout.readline().startswith("started 2 ")

    # The first worker continues, its handler ends, and it reports while the second one still runs.
    go_file(tmp_path, "first").touch()
    first.send_signal(signal.SIGCONT)
    assert first.stdout.readline().startswith("ended 1")
    first.send_signal(signal.SIGTERM)  # it reports its result and ends
    assert first.wait(20 * SLOWDOWN) == 0
    still = server.client.get(f"/v1/tasks/{task}").json
    assert (still["status"], still["attempt"]) == ("running", 2)

    go_file(tmp_path, "second").touch()
    execution = closed(server, task)
    assert (execution["status"], execution["result"], execution["attempt"]) == ("completed", "second", 2)
