"""Updates over HTTP: the code of a workflow answers, once per request key, whoever dies meanwhile."""

import threading

import pytest

from caller import Caller
from workflow_worker import WorkflowWorker


def stock(ctx, left):
    state = {"left": left}

    def reserve(count):
        if count > state["left"]:
            raise ValueError(f"only {state['left']} left")
        state["left"] -= count
        return state["left"]

    ctx.on("reserve", reserve)
    yield ctx.wait_signal("close")
    return state["left"]


@pytest.fixture
def shop(shared_server, caller, fresh):
    worker = WorkflowWorker(Caller(shared_server).http, {"stock": stock}, queues=[fresh("queue")])
    workflow_id = fresh("workflow")
    caller.begin("stock", workflow_id, queue=worker.queues[0], input=10)
    return worker, workflow_id


def update(caller, workflow_id, key, payload, wait="0", name="reserve"):
    return caller.http.post(
        f"/v1/workflows/{workflow_id}/updates/{name}?wait={wait}", {"payload": payload}, headers={"Idempotency-Key": key}
    )


def close(caller, workflow_id, fresh):
    answer = caller.http.post(
        f"/v1/workflows/{workflow_id}/signals/close", {}, headers={"Idempotency-Key": fresh("key")}
    )
    assert answer.status == 200, answer


def test_an_update_is_answered_once_per_request_key(caller, shop, fresh):
    worker, workflow_id = shop
    first, other = fresh("key"), fresh("key")

    pending = update(caller, workflow_id, first, 3)
    assert pending.status == 202 and pending.json["status"] == "pending" and not pending.json["idempotency_replayed"]
    worker.until_idle()

    for _ in range(2):
        answered = update(caller, workflow_id, first, 3)
        assert answered.status == 200, answered
        assert answered.json["result"] == 7 and answered.json["idempotency_replayed"]
        assert answered.json["workflow_id"] == workflow_id and answered.json["update"] == "reserve"
    update(caller, workflow_id, other, 2)
    worker.until_idle()
    assert update(caller, workflow_id, other, 2).json["result"] == 5
    close(caller, workflow_id, fresh)
    assert worker.until_closed(workflow_id)["result"] == 5
    assert update(caller, workflow_id, first, 3).json["result"] == 7, "also when it is closed"
    assert caller.http.get(f"/v1/workflows/{workflow_id}/values").json["values"] == {}


def test_waiting_for_the_answer_ends_with_it(caller, shared_server, shop, fresh):
    worker, workflow_id = shop
    key, answers = fresh("key"), []
    asks = threading.Thread(
        target=lambda: answers.append(update(Caller(shared_server), workflow_id, key, 1, wait="30s"))
    )
    asks.start()
    while asks.is_alive():
        worker.work(wait="200ms")
    asks.join()
    assert answers[0].status == 200 and answers[0].json["result"] == 9


def test_what_the_code_refuses_stays_refused(caller, shop, fresh):
    worker, workflow_id = shop
    key = fresh("key")
    update(caller, workflow_id, key, 11)
    worker.until_idle()
    for _ in range(2):
        refused = update(caller, workflow_id, key, 11)
        assert refused.status == 409, refused
        assert refused.json["error"] == "UpdateRefused" and refused.json["type"] == "ValueError"
        assert refused.json["message"] == "only 10 left"


def test_a_worker_that_dies_before_its_commit_changes_nothing(caller, shop, fresh):
    worker, workflow_id = shop
    key = fresh("key")
    update(caller, workflow_id, key, 4)
    lost = worker.claim(kinds=["workflow"], lease="1s")
    assert len(lost) == 1
    assert worker.until_idle() is None
    assert update(caller, workflow_id, key, 4, wait="0").status == 202
    while update(caller, workflow_id, key, 4).status == 202:
        worker.work(wait="500ms")
    assert update(caller, workflow_id, key, 4).json["result"] == 6


def test_only_an_open_workflow_answers(caller, shop, fresh):
    worker, workflow_id = shop
    unknown = update(caller, fresh("workflow"), fresh("key"), 1)
    assert unknown.status == 404 and unknown.json["error"] == "WorkflowNotFound"

    unheard = fresh("key")
    update(caller, workflow_id, unheard, 1, name="nobody-knows-this")
    close(caller, workflow_id, fresh)
    worker.until_closed(workflow_id)

    late = update(caller, workflow_id, unheard, 1, name="nobody-knows-this")
    assert late.status == 409 and late.json["error"] == "WorkflowClosed", late
    closed = update(caller, workflow_id, fresh("key"), 1)
    assert closed.status == 409 and closed.json["error"] == "WorkflowClosed"


def test_a_key_stands_for_one_question(caller, shop, fresh):
    _, workflow_id = shop
    key = fresh("key")
    update(caller, workflow_id, key, 1)
    for answer in (
        update(caller, workflow_id, key, 2),
        update(caller, workflow_id, key, 1, name="other"),
        caller.http.post(
            f"/v1/workflows/{workflow_id}/signals/reserve", {"payload": 1}, headers={"Idempotency-Key": key}
        ),
    ):
        assert answer.status == 409 and answer.json["error"] == "IdempotencyConflict", answer


def test_bad_updates_are_refused_and_change_nothing(caller, shop, fresh):
    _, workflow_id = shop
    path = f"/v1/workflows/{workflow_id}/updates"
    key = {"Idempotency-Key": fresh("key")}
    for where, answer in (
        ("key", caller.http.post(path + "/reserve", {"payload": 1})),
        ("name", caller.http.post(path + "/" + "x" * 201, {"payload": 1}, headers=key)),
        ("wait", caller.http.post(path + "/reserve?wait=soon", {"payload": 1}, headers=key)),
        ("wait", caller.http.post(path + "/reserve?wait=61s", {"payload": 1}, headers=key)),
        ("body", caller.http.post(path + "/reserve", {"colour": 1}, headers=key)),
        ("signal", caller.http.post(f"/v1/workflows/{workflow_id}/signals/hapax.update:reserve", {}, headers=key)),
    ):
        assert answer.status == 400, (where, answer)
    history = caller.http.get(f"/v1/workflows/{workflow_id}/history").json["events"]
    assert history == []
