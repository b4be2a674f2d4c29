"""Cancelling, resuming, forking and signalling workflows: what each does."""

import pytest

from caller import Caller
from conftest import eventually
from workflow_worker import WorkflowWorker

STEPS = 5


class Ledger:
    """What the steps did, in order, and which of them should fail."""

    def __init__(self):
        self.ran = []
        self.broken = set()

    def step(self, n, execution):
        self.ran.append(n)
        if n in self.broken:
            raise RuntimeError(f"step {n} is broken")
        return f"{n} by {execution['parent_workflow_id']}"


def five_steps(ctx, queue):
    results = []
    for n in range(1, STEPS + 1):
        results.append((yield ctx.task("step", n, queue=queue, max_attempts=1)))
    return results


@pytest.fixture
def line(caller, fresh):
    """A workflow of five steps, its worker and what its steps did."""

    class Line:
        def __init__(self):
            self.queue, self.workflow_id, self.ledger = fresh("queue"), fresh("workflow"), Ledger()
            self.worker = WorkflowWorker(caller.http, {"five": five_steps}, {"step": self.ledger.step}, [self.queue])

        def begin(self, **fields):
            caller.begin("five", self.workflow_id, queue=self.queue, input=self.queue, **fields)
            return self

        def advance(self, steps):
            """Works until that many steps have run and the next one is asked for."""
            eventually(lambda: self.worker.work() and len(self.ledger.ran) >= steps)
            while self.worker.work(["workflow"]):
                pass

        def status(self, workflow_id=None):
            return caller.workflow(workflow_id or self.workflow_id)["status"]

    return Line()


# ---- fork


@pytest.mark.parametrize("from_step", range(1, STEPS + 2))
def test_a_fork_takes_over_what_was_before_and_runs_the_rest_anew(caller, line, from_step):
    line.begin().worker.until_closed(line.workflow_id)
    line.ledger.ran.clear()
    new = f"{line.workflow_id}-fork"

    answer = caller.fork(line.workflow_id, from_step, workflow_id=new)

    assert answer.status == 200
    body = answer.json
    assert (body["workflow_id"], body["forked_from"], body["from_step"]) == (new, line.workflow_id, from_step)
    assert body["execution_id"] == caller.workflow(new)["id"]
    result = line.worker.until_closed(new)["result"]
    assert line.ledger.ran == list(range(from_step, STEPS + 1))
    assert result == [f"{n} by {line.workflow_id if n < from_step else new}" for n in range(1, STEPS + 1)]
    assert caller.history(new)[0]["kind"] == "forked"
    assert line.status() == "completed"


def test_a_fork_without_an_id_has_one_made_from_the_request_key(caller, line, fresh):
    line.begin().worker.until_closed(line.workflow_id)
    key = fresh("key")

    first, again = caller.fork(line.workflow_id, 3, key=key), caller.fork(line.workflow_id, 3, key=key)

    assert first.json["workflow_id"] == again.json["workflow_id"] == f"{line.workflow_id}:fork-{key}"
    assert again.json["idempotency_replayed"] is True
    assert line.worker.until_closed(first.json["workflow_id"])["status"] == "completed"


def test_an_open_workflow_can_be_forked_and_goes_on(caller, line):
    line.begin().advance(2)

    answer = caller.fork(line.workflow_id, 2)

    assert answer.status == 200
    for workflow_id in (line.workflow_id, answer.json["workflow_id"]):
        assert line.worker.until_closed(workflow_id)["status"] == "completed"


@pytest.mark.parametrize("from_step", [STEPS + 2, 1000])
def test_a_step_that_there_is_not_cannot_be_forked_from(caller, line, from_step):
    line.begin().worker.until_closed(line.workflow_id)

    answer = caller.fork(line.workflow_id, from_step)

    assert (answer.status, answer.json["error"], answer.json["pointer"]) == (400, "InvalidRequest", "/from_step")
    assert answer.json["steps"] == STEPS and str(STEPS) in answer.json["message"]


@pytest.mark.parametrize("body, pointer", [({"from_step": -1}, "/from_step"), ({"from_step": "1"}, "/from_step"),
                                           ({"from_step": 1, "workflow_id": ""}, "/workflow_id"), ({"from_step": 1, "x": 1}, "/x")])
def test_a_fork_that_makes_no_sense_says_where(caller, line, body, pointer):
    line.begin()
    answer = caller.control_workflow("fork", line.workflow_id, None, body)
    assert (answer.status, answer.json["error"], answer.json["pointer"]) == (400, "InvalidRequest", pointer)


def test_a_fork_does_not_take_an_id_in_use(caller, line, fresh):
    line.begin()
    owner = caller.begin("five", fresh("owner"), queue=fresh("queue"))

    answer = caller.fork(line.workflow_id, 1, workflow_id=owner["workflow_id"])

    assert (answer.status, answer.json["error"]) == (409, "WorkflowAlreadyExists")
    assert answer.json["existing_execution_id"] == owner["id"]


# ---- resume


def test_a_failed_workflow_resumes_from_its_last_completed_step(caller, line):
    line.ledger.broken = {3}
    closed = line.begin().worker.until_closed(line.workflow_id)
    assert closed["status"] == "failed" and line.ledger.ran == [1, 2, 3]

    line.ledger.broken.clear()
    answer = caller.resume(line.workflow_id)

    assert answer.status == 200
    assert (answer.json["workflow_id"], answer.json["changed"]) == (line.workflow_id, True)
    assert line.worker.until_closed(line.workflow_id)["status"] == "completed"
    assert line.ledger.ran == [1, 2, 3, 3, 4, 5]


def test_a_cancelled_workflow_resumes_from_its_last_completed_step(caller, line):
    line.begin().advance(2)
    assert caller.cancel_workflow(line.workflow_id).json["status"] == "cancelled"
    line.worker.until_idle()
    assert line.ledger.ran == [1, 2]

    assert caller.resume(line.workflow_id).json["changed"] is True

    assert line.worker.until_closed(line.workflow_id)["status"] == "completed"
    assert line.ledger.ran == [1, 2, 3, 4, 5]


def test_a_timed_out_workflow_resumes_from_its_last_completed_step(caller, line):
    line.begin(deadline="500ms").advance(1)
    eventually(lambda: line.status() == "timed_out")
    ran = list(line.ledger.ran)

    assert caller.resume(line.workflow_id).json["changed"] is True

    assert line.worker.until_closed(line.workflow_id)["status"] == "completed"
    assert sorted(set(line.ledger.ran)) == [1, 2, 3, 4, 5]
    assert line.ledger.ran[: len(ran)] == ran and line.ledger.ran.count(1) == 1


def test_a_workflow_is_resumed_on_its_own_queue(caller, line):
    line.begin()
    caller.cancel_workflow(line.workflow_id)
    caller.resume(line.workflow_id)
    assert caller.workflow(line.workflow_id)["queue"] == line.queue


@pytest.mark.parametrize("state", ["pending", "running", "suspended", "completed"])
def test_there_is_nothing_to_resume_in_what_is_open_or_completed(caller, line, state):
    line.begin()
    if state == "running":
        line.worker.claim(["workflow"])
    elif state == "suspended":
        line.worker.work(["workflow"])
    elif state == "completed":
        line.worker.until_closed(line.workflow_id)

    answer = caller.resume(line.workflow_id)

    assert (answer.status, answer.json["changed"], answer.json["status"]) == (200, False, state)
    assert line.status() == state


def test_a_workflow_whose_id_has_another_owner_stays_closed(caller, line):
    line.ledger.broken = {1}
    line.begin().worker.until_closed(line.workflow_id)
    old = caller.workflow(line.workflow_id)["id"]
    new = caller.begin("five", line.workflow_id, queue=line.queue, input=line.queue)

    answer = caller.resume(line.workflow_id)

    assert (answer.status, answer.json["changed"]) == (200, False), "the latest run is open"
    assert answer.json["execution_id"] == new["id"] != old
    assert caller.task(old)["status"] == "failed"


# ---- cancel


def test_a_cancel_takes_open_steps_and_children_along(caller, fresh):
    def parent(ctx, _):
        yield [ctx.task("t", queue=idle), ctx.child("leaf", queue=queue, workflow_id=child)]

    def leaf(ctx, _):
        yield ctx.task("t", queue=idle)

    queue, idle, child, workflow_id = fresh("queue"), fresh("queue"), fresh("child"), fresh("workflow")
    worker = WorkflowWorker(caller.http, {"parent": parent, "leaf": leaf}, {}, [queue])
    caller.begin("parent", workflow_id, queue=queue)
    worker.until_idle()
    assert len(caller.list(queue=idle, status="pending")) == 2

    answer = caller.cancel_workflow(workflow_id)

    assert (answer.status, answer.json["status"], answer.json["changed"]) == (200, "cancelled", True)
    assert caller.workflow(child)["status"] == "cancelled"
    assert {task["status"] for task in caller.list(queue=idle)} == {"cancelled"}
    again = caller.cancel_workflow(workflow_id)
    assert (again.status, again.json["changed"]) == (200, False)


def test_a_cancel_ends_the_lease_of_a_running_turn(caller, line):
    line.begin()
    (claim,) = line.worker.claim(["workflow"])

    assert caller.cancel_workflow(line.workflow_id).json["status"] == "cancelled"

    assert caller.heartbeat(claim["lease"])["ok"] is False
    assert line.worker.run_turn(claim)["error"] == "LeaseLost"
    line.worker.until_idle()
    assert line.status() == "cancelled" and line.ledger.ran == []


# ---- signal


def test_a_signal_is_delivered_once_per_request_key(caller, fresh):
    def collect(ctx, _):
        got = []
        while True:
            value = yield ctx.wait_signal("add")
            if value == "stop":
                return got
            got.append(value)

    queue, workflow_id, keys = fresh("queue"), fresh("workflow"), [fresh("key") for _ in range(3)]
    worker = WorkflowWorker(caller.http, {"collect": collect}, {}, [queue])
    caller.begin("collect", workflow_id, queue=queue)
    for n, key in enumerate(keys):
        for attempt in range(3):
            answer = caller.signal(workflow_id, "add", n, key=key)
            assert (answer.status, answer.json["idempotency_replayed"]) == (200, attempt > 0)
        worker.until_idle()
    caller.signal(workflow_id, "add", "stop")

    assert worker.until_closed(workflow_id)["result"] == [0, 1, 2]


def test_a_signal_to_a_closed_workflow_is_refused(caller, line):
    line.begin().worker.until_closed(line.workflow_id)
    answer = caller.signal(line.workflow_id, "late")
    assert (answer.status, answer.json["error"]) == (409, "WorkflowClosed")


def test_namespaces_do_not_hear_each_other(shared_server, fresh):
    shop, bank = Caller(shared_server, namespace="shop"), Caller(shared_server, namespace="bank")
    workflow_id = fresh("workflow")
    shop.begin("w", workflow_id)

    assert bank.signal(workflow_id, "s").status == 404
    assert bank.cancel_workflow(workflow_id).status == 404
    assert bank.http.get(f"/v1/workflows/{workflow_id}").status == 404
    bank.begin("w", workflow_id)
    assert shop.cancel_workflow(workflow_id).status == 200
    assert bank.workflow(workflow_id)["status"] == "pending"
