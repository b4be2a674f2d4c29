"""Cancelling and retrying tasks, and the request keys that make repeating safe."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from caller import Caller


def test_a_pending_task_is_cancelled_at_once(caller, fresh):
    queue = fresh("queue")
    task = caller.create(queue=queue)

    answer = caller.cancel(task["id"])

    assert answer.status == 200
    assert (answer.json["status"], answer.json["changed"]) == ("cancelled", True)
    assert answer.json["idempotency_replayed"] is False
    assert caller.claim(queue) == []


def test_a_running_task_hears_of_its_cancel_and_may_still_finish(caller, fresh):
    queue = fresh("queue")
    task = caller.create(queue=queue)
    lease = caller.claim_one(queue)["lease"]

    assert caller.cancel(task["id"]).json["status"] == "running"

    beat = caller.heartbeat(lease)
    assert beat["ok"] is True and beat["cancel_requested"] is True
    assert caller.finish(lease, "done anyway")["ok"]
    assert caller.task(task["id"])["status"] == "completed"


def test_a_worker_that_gives_up_a_cancelled_task_closes_it(caller, fresh):
    queue = fresh("queue")
    task = caller.create(queue=queue)
    lease = caller.claim_one(queue)["lease"]
    caller.cancel(task["id"])

    caller.fail(lease)

    assert caller.task(task["id"])["status"] == "cancelled"


def test_after_the_grace_a_cancelled_task_is_closed_and_its_worker_fenced(caller, fresh):
    queue = fresh("queue")
    caller.put_queue(queue, cancel_grace="100ms")
    task = caller.create(queue=queue)
    lease = caller.claim_one(queue)["lease"]
    caller.cancel(task["id"])

    execution = caller.closed(task["id"])

    assert execution["status"] == "cancelled"
    assert caller.finish(lease)["error"] == "LeaseLost"
    assert caller.heartbeat(lease)["ok"] is False


def test_cancelling_a_closed_task_changes_nothing(caller, fresh):
    task = caller.create()
    caller.cancel(task["id"])

    again = caller.cancel(task["id"])

    assert (again.status, again.json["status"], again.json["changed"]) == (200, "cancelled", False)


def failed_task(caller, queue):
    task = caller.create(queue=queue, max_attempts=1)
    assert caller.fail(caller.claim_one(queue)["lease"])["ok"]
    return task


def test_a_retry_gives_a_failed_task_new_attempts(caller, fresh):
    queue = fresh("queue")
    task = failed_task(caller, queue)

    answer = caller.retry(task["id"])

    assert (answer.status, answer.json["status"], answer.json["changed"]) == (200, "pending", True)
    claim = caller.claim_one(queue)
    assert claim["attempt"] == 2
    assert caller.finish(claim["lease"])["ok"]
    assert caller.task(task["id"])["status"] == "completed"


def test_only_what_did_not_complete_can_be_retried(caller, fresh):
    queue = fresh("queue")
    pending = caller.create(queue=queue)
    assert caller.retry(pending["id"]).status == 409
    lease = caller.claim_one(queue)["lease"]
    assert caller.retry(pending["id"]).status == 409
    caller.finish(lease)
    assert caller.retry(pending["id"]).status == 409


def test_a_retry_does_not_bring_back_a_key_that_has_another_owner(caller, fresh):
    queue, key = fresh("queue"), fresh("key")
    old = caller.create(queue=queue, idempotency_key=key, max_attempts=1)
    caller.fail(caller.claim_one(queue)["lease"])
    new = caller.create(queue=queue, idempotency_key=key)

    answer = caller.retry(old["id"])

    assert answer.status == 409
    assert new["id"] in answer.body.decode()
    assert caller.task(old["id"])["status"] == "failed"


@pytest.mark.parametrize("action", ["cancel", "retry"])
def test_a_request_key_is_required_and_has_its_limits(caller, fresh, action):
    task = failed_task(caller, fresh("queue")) if action == "retry" else caller.create()
    path = f"/v1/tasks/{task['id']}/{action}"

    missing = caller.http.post(path)
    blank = caller.http.post(path, headers={"Idempotency-Key": "   "})
    long = caller.http.post(path, headers={"Idempotency-Key": "k" * 201})

    assert (missing.status, missing.json["error"]) == (400, "IdempotencyKeyRequired")
    assert blank.status == 400 and blank.json["error"] in ("InvalidIdempotencyKey", "IdempotencyKeyRequired")
    assert (long.status, long.json["error"]) == (400, "InvalidIdempotencyKey")
    assert caller.task(task["id"])["status"] == ("failed" if action == "retry" else "pending")
    assert caller.http.post(path, headers={"Idempotency-Key": "k" * 195 + fresh("")[:5].ljust(5, "x")}).status == 200


@pytest.mark.parametrize("action", ["cancel", "retry"])
def test_the_same_request_again_is_replayed(caller, fresh, action):
    queue, key = fresh("queue"), fresh("key")
    task = failed_task(caller, queue) if action == "retry" else caller.create(queue=queue)
    first = caller.control(action, task["id"], key)
    if action == "retry":
        assert caller.finish(caller.claim_one(queue)["lease"])["ok"]

    second = caller.control(action, task["id"], key)

    assert (first.status, second.status) == (200, 200)
    assert first.json["idempotency_replayed"] is False
    assert second.json == {**first.json, "idempotency_replayed": True}


def test_a_request_that_failed_is_not_run_again_under_its_key(caller, fresh):
    queue, key = fresh("queue"), fresh("key")
    task = caller.create(queue=queue)
    first = caller.retry(task["id"], key)
    caller.cancel(task["id"])

    second = caller.retry(task["id"], key)

    assert first.status == 409
    assert (second.status, second.json["error"]) == (409, "RequestFailedBefore")
    assert first.json["error"] in second.body.decode()
    assert caller.task(task["id"])["status"] == "cancelled"


def test_a_request_key_belongs_to_one_action_and_one_task(caller, fresh):
    key, task, other = fresh("key"), caller.create(), caller.create()
    assert caller.cancel(task["id"], key).status == 200

    for answer in (caller.cancel(other["id"], key), caller.retry(task["id"], key)):
        assert (answer.status, answer.json["error"]) == (409, "IdempotencyConflict")
    assert caller.task(other["id"])["status"] == "pending"
    assert caller.task(task["id"])["status"] == "cancelled"


@pytest.mark.parametrize("action", ["cancel", "retry"])
def test_of_32_callers_with_one_request_key_one_runs_it_and_all_get_its_answer(shared_server, caller, fresh, action):
    key = fresh("key")
    task = failed_task(caller, fresh("queue")) if action == "retry" else caller.create()
    gate = threading.Barrier(32)

    def call(_):
        mine = Caller(shared_server)
        gate.wait()
        return mine.control(action, task["id"], key)

    with ThreadPoolExecutor(32) as pool:
        answers = list(pool.map(call, range(32)))

    assert {answer.status for answer in answers} == {200}
    assert sorted(answer.json["idempotency_replayed"] for answer in answers) == [False] + [True] * 31
    assert all(answer.json["changed"] for answer in answers)


def test_a_request_for_an_unknown_task_is_a_404(caller, fresh):
    unknown = "019bf2d4-0000-7000-8000-000000000000"

    assert caller.cancel(unknown).status == 404
    assert caller.retry(unknown).status == 404
