"""Workflows over HTTP, run by a worker that knows nothing but docs/protocol.md."""

import datetime

import pytest

from caller import Caller
from conftest import eventually
from workflow_worker import TIMED_OUT, Any, ContinueAsNew, StepFailed, WorkflowWorker

PAST = "2026-01-27T12:00:00.000Z"


def soon(ms):
    at = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(milliseconds=ms)
    return at.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


@pytest.fixture
def worker(shared_server, fresh):
    """make(workflow function, tasks=…) is a worker for it, in its own queue."""

    def make(function, queue=None, **tasks):
        return WorkflowWorker(Caller(shared_server).http, {"w": function}, tasks, [queue or fresh("queue")])

    return make


def begin(caller, worker, fresh, input=None, **fields):
    workflow_id = fresh("workflow")
    caller.begin("w", workflow_id, queue=worker.queues[0], input=input, **fields)
    return workflow_id


def returns_at_once(ctx, _):
    return
    yield


def kinds(events):
    return [event["kind"] for event in events]


# ---- the life of a workflow


def test_a_workflow_runs_its_steps_and_returns(caller, worker, fresh):
    def code(ctx, order):
        payment = yield ctx.task("charge", order, queue=queue)
        return {"payment": payment}

    ran = []
    queue = fresh("queue")
    mine = worker(code, queue, charge=lambda input, execution: ran.append(execution) or "ch_1")
    workflow_id = begin(caller, mine, fresh, {"order": 7})

    closed = mine.until_closed(workflow_id)

    assert closed["status"] == "completed" and closed["result"] == {"payment": "ch_1"}
    assert closed["workflow_id"] == workflow_id
    run = caller.workflow(workflow_id)
    (step,) = ran
    assert step["parent"] == run["id"] and step["parent_workflow_id"] == workflow_id and step["step"] == 1
    assert step["name"] == f"task-{run['id']}:charge:1"
    assert run["kind"] == "workflow" and run["workflow_id"] == run["idempotency_key"] == workflow_id
    assert run["steps"] == 1 and run["history_length"] >= 2
    events = caller.history(workflow_id)
    assert kinds(events)[:2] == ["task", "closed"]
    assert events[0]["execution_id"] == events[1]["execution_id"] == step["id"]
    assert events[1]["value"] == "ch_1"


def test_a_claim_carries_what_the_last_turn_did_not_know(caller, worker, fresh):
    def code(ctx, _):
        yield ctx.task("a", queue=queue)
        yield ctx.task("a", queue=queue)

    queue = fresh("queue")
    mine = worker(code, queue, a=lambda *_: 1)
    workflow_id = begin(caller, mine, fresh)

    (first,) = mine.claim(["workflow"])
    assert first["run"] == {"events": 0, "seen": 0, "steps": 0} and first["events"] == []
    mine.run_turn(first)
    assert caller.workflow(workflow_id)["status"] == "suspended"
    assert mine.claim(["workflow"]) == []
    mine.work(["task"])
    (second,) = mine.claim(["workflow"])
    assert kinds(second["events"]) == ["task", "closed"]
    assert second["run"]["seen"] == 0 and second["run"]["steps"] == 1
    mine.run_turn(second)
    mine.work(["task"])
    (third,) = mine.claim(["workflow"])
    assert third["run"]["seen"] == 2 and kinds(third["events"]) == ["task", "closed"]
    assert mine.run_turn(third) == {"lease": third["lease"], "ok": True, "status": "completed"}


def test_claims_take_the_kinds_they_name(caller, worker, fresh):
    mine = worker(returns_at_once)
    begin(caller, mine, fresh)
    task = caller.create("t", queue=mine.queues[0])

    assert [c["execution"]["id"] for c in caller.claim(mine.queues[0], limit=10)] == [task["id"]]
    assert [c["execution"]["kind"] for c in mine.claim(["workflow"], limit=10)] == ["workflow"]


def test_steps_in_parallel_wait_for_all_or_any(caller, worker, fresh):
    def code(ctx, _):
        together = yield [ctx.task("double", n, queue=queue) for n in range(5)]
        index, _ = yield Any(ctx.wait_signal("never"), ctx.task("double", 21, queue=queue))
        return [together, index]

    queue = fresh("queue")
    mine = worker(code, queue, double=lambda n, _: 2 * n)
    workflow_id = begin(caller, mine, fresh)

    assert mine.until_closed(workflow_id)["result"] == [[0, 2, 4, 6, 8], 1]
    assert len(caller.list(parent=workflow_id)) == len(caller.list(parent=caller.workflow(workflow_id)["id"])) == 6


def test_sleeps_side_effects_and_versions_are_recorded(caller, worker, fresh):
    calls = []

    def code(ctx, _):
        number = ctx.side_effect("roll", lambda: calls.append(1) or len(calls))
        version = ctx.version("new-tax", 3)
        yield ctx.sleep(soon(50))
        return [number, version]

    mine = worker(code)
    workflow_id = begin(caller, mine, fresh)

    assert mine.until_closed(workflow_id)["result"] == [1, 3]
    assert len(calls) == 1
    assert kinds(caller.history(workflow_id))[:4] == ["side_effect", "version", "sleep", "fired"]


def test_a_signal_arrives_before_or_during_a_wait_or_too_late(caller, worker, fresh):
    def code(ctx, _):
        first = yield ctx.wait_signal("go")
        second = yield ctx.wait_signal("go")
        third = yield ctx.wait_signal("go", until=PAST)
        return [first, second, third is TIMED_OUT]

    mine = worker(code)
    workflow_id = begin(caller, mine, fresh)

    assert caller.signal(workflow_id, "go", {"n": 1}).status == 200
    mine.until_idle()
    assert caller.workflow(workflow_id)["status"] == "suspended"
    assert caller.signal(workflow_id, "go", {"n": 2}).json["signal"] == "go"
    assert mine.until_closed(workflow_id)["result"] == [{"n": 1}, {"n": 2}, True]


def test_a_signal_without_a_payload_differs_from_null(caller, worker, fresh):
    def code(ctx, _):
        yield ctx.wait_signal("a")
        yield ctx.wait_signal("b")

    mine = worker(code)
    workflow_id = begin(caller, mine, fresh)
    caller.signal(workflow_id, "a")
    caller.signal(workflow_id, "b", None)
    mine.until_closed(workflow_id)

    signals = [event for event in caller.history(workflow_id) if event["kind"] == "signal" and "step" in event]
    assert ["value" in event for event in signals] == [False, True]


def test_a_failed_step_is_an_error_that_the_code_may_handle(caller, worker, fresh):
    def code(ctx, _):
        try:
            yield ctx.task("break", queue=queue, max_attempts=1)
        except StepFailed as failed:
            yield ctx.task("undo", queue=queue)
            return failed.error

    def breaks(*_):
        raise ValueError("no funds")

    queue = fresh("queue")
    mine = worker(code, queue, **{"break": breaks, "undo": lambda *_: None})
    workflow_id = begin(caller, mine, fresh)

    assert mine.until_closed(workflow_id)["result"] == {"type": "ValueError", "message": "no funds"}


def test_a_step_whose_key_was_used_before_gets_the_stored_result(caller, worker, fresh):
    queue, key = fresh("queue"), fresh("key")
    caller.create("charge", queue=queue, idempotency_key=key, input=7)
    caller.finish(caller.claim_one(queue)["lease"], "ch_1")

    def code(ctx, _):
        return (yield ctx.task("charge", 7, queue=queue, idempotency_key=key))

    mine = worker(code, queue)
    workflow_id = begin(caller, mine, fresh)

    assert mine.until_closed(workflow_id)["result"] == "ch_1"


def test_a_child_runs_under_its_own_id(caller, worker, fresh):
    def parent(ctx, depth):
        if depth == 0:
            return "leaf"
        return (yield ctx.child("w", depth - 1, queue=queue, **({"workflow_id": child_id} if depth == 2 else {})))

    queue, child_id = fresh("queue"), fresh("child")
    mine = worker(parent, queue)
    workflow_id = begin(caller, mine, fresh, 2)

    assert mine.until_closed(workflow_id)["result"] == "leaf"
    child = caller.workflow(child_id)
    assert child["parent_workflow_id"] == workflow_id and child["step"] == 1 and "name" not in child
    grandchild = caller.workflow(f"child-{child['id']}:1")
    assert grandchild["parent_workflow_id"] == child_id


def test_a_workflow_continues_as_new_and_its_result_is_waited_for_over_all_runs(caller, worker, fresh):
    def code(ctx, n):
        yield ctx.sleep(PAST)
        if n > 0:
            raise ContinueAsNew(n - 1)
        return "done"

    mine = worker(code)
    workflow_id = begin(caller, mine, fresh, 3)
    first = caller.workflow(workflow_id)["id"]

    closed = mine.until_closed(workflow_id)

    assert closed["result"] == "done" and closed["id"] != first
    answer = caller.http.get(f"/v1/workflows?workflow_id={workflow_id}")
    runs = answer.json["executions"]
    assert [run["input"] for run in runs] == [0, 1, 2, 3]
    assert [run.get("continued_as") for run in runs] == [None, *(run["id"] for run in runs[:-1])]
    assert kinds(caller.history(workflow_id, run=first))[-1] == "continued"


def test_code_that_does_not_match_leaves_the_workflow_suspended_until_it_does(caller, worker, fresh):
    def right(ctx, _):
        yield ctx.task("a", queue=queue)
        yield ctx.task("b", queue=queue)
        return "right"

    def wrong(ctx, _):
        yield ctx.task("z", queue=queue)

    queue = fresh("queue")
    mine = worker(right, queue, a=lambda *_: 1, b=lambda *_: 2)
    workflow_id = begin(caller, mine, fresh)
    mine.work(["workflow"])
    mine.work(["task"])

    mine.workflows["w"] = wrong
    mine.work(["workflow"])
    stuck = caller.workflow(workflow_id)
    assert stuck["status"] == "suspended" and stuck["stuck_turns"] == 1
    assert stuck["error"] == {"type": "NonDeterminism", "message": "step 1: expected task a, found task z"}
    assert "stuck" in kinds(caller.history(workflow_id))

    mine.workflows["w"] = right
    assert mine.until_closed(workflow_id)["result"] == "right"
    assert "stuck_turns" not in caller.workflow(workflow_id)


def test_a_lost_lease_changes_nothing_and_a_repeated_turn_is_answered_again(caller, worker, fresh):
    def code(ctx, _):
        yield ctx.wait_signal("go")

    mine = worker(code)
    workflow_id = begin(caller, mine, fresh)
    (claim,) = mine.claim(["workflow"])
    turn = {"lease": claim["lease"], "seen": 0, "end": {"kind": "suspended"},
            "commands": [{"step": 1, "kind": "wait_signal", "name": "go"}]}

    first, second = mine.commit(turn), mine.commit(turn)
    assert first == second == {"lease": claim["lease"], "ok": True, "status": "suspended"}
    assert len(caller.history(workflow_id)) == 1
    caller.signal(workflow_id, "go")
    assert mine.commit(turn) == first
    (returned,) = mine.claim(["workflow"])
    assert caller.http.post("/v1/claims/return", {"leases": [returned["lease"]]}).json["leases"][0]["ok"]
    (again,) = mine.claim(["workflow"])
    lost = mine.commit({"lease": returned["lease"], "seen": 3, "end": {"kind": "completed"}})
    assert lost["error"] == "LeaseLost"
    assert mine.commit({"lease": again["lease"], "seen": 3, "end": {"kind": "completed", "result": None}})["ok"]
    assert caller.workflow_result(workflow_id).json["result"] is None


def test_a_turn_in_a_batch_has_its_own_outcome(caller, worker, fresh):
    mine = worker(returns_at_once)
    ids = [begin(caller, mine, fresh) for _ in range(3)]
    claims = mine.claim(["workflow"], limit=3)
    turns = [{"lease": claim["lease"], "seen": 0, "end": {"kind": "completed"}} for claim in claims]
    turns.insert(1, {"lease": "nobody's", "seen": 0, "end": {"kind": "completed"}})

    answer = caller.http.post("/v1/claims/turns", {"turns": turns})

    assert answer.status == 200
    assert [turn.get("ok") for turn in answer.json["turns"]] == [True, None, True, True]
    assert {caller.workflow(id)["status"] for id in ids} == {"completed"}


def test_a_worker_that_dies_loses_its_turn_and_nothing_else(caller, worker, fresh):
    def code(ctx, _):
        return (yield ctx.task("a", queue=queue))

    queue = fresh("queue")
    mine = worker(code, queue, a=lambda *_: 1)
    workflow_id = begin(caller, mine, fresh)
    (claim,) = mine.claim(["workflow"], lease="1s")
    eventually(lambda: caller.workflow(workflow_id)["status"] == "pending", deadline_s=20)

    assert mine.commit({"lease": claim["lease"], "seen": 0, "end": {"kind": "completed"}})["error"] == "LeaseLost"
    assert mine.until_closed(workflow_id)["result"] == 1


# ---- starting and reading


def test_a_workflow_id_starts_one_workflow(caller, fresh):
    workflow_id = fresh("w/ü %?#")
    first = caller.start("w", workflow_id, input=1)
    again = caller.start("w", workflow_id, input=1)
    by_header = caller.http.post("/v1/workflows", {"type": "w", "input": 1}, headers={"Idempotency-Key": "x" + fresh("h")})

    assert (first.status, again.status, by_header.status) == (201, 200, 201)
    assert again.json["execution"]["id"] == first.json["execution"]["id"]
    assert caller.workflow(workflow_id)["id"] == first.json["execution"]["id"]
    conflict = caller.start("w", workflow_id, input=2)
    assert (conflict.status, conflict.json["error"]) == (409, "IdempotencyConflict")
    exists = caller.start("w", workflow_id, input=1, on_duplicate="error")
    assert (exists.status, exists.json["error"]) == (409, "WorkflowAlreadyExists")
    caller.cancel_workflow(workflow_id)
    closed = caller.start("w", workflow_id, input=1, on_duplicate="error", reuse="reject")
    assert (closed.status, closed.json["error"]) == (409, "WorkflowAlreadyExists")
    anew = caller.start("w", workflow_id, input=2)
    assert anew.status == 201
    assert caller.workflow(workflow_id)["id"] == anew.json["execution"]["id"]


def test_a_task_with_the_same_key_is_another_identity(caller, fresh):
    key = fresh("key")
    caller.begin("w", key)

    assert caller.submit("w", idempotency_key=key).status == 201


@pytest.mark.parametrize(
    "body, pointer",
    [
        ({"type": "w"}, "/workflow_id"),
        ({"workflow_id": "x"}, "/type"),
        ({"type": "w", "workflow_id": " "}, "/workflow_id"),
        ({"type": "w", "workflow_id": "x" * 256}, "/workflow_id"),
        ({"type": "w", "workflow_id": "x", "idempotency_key": "y"}, "/idempotency_key"),
        ({"type": "w", "workflow_id": "x", "identity": "strict"}, "/identity"),
        ({"type": "w", "workflow_id": "x", "colour": 1}, "/colour"),
    ],
)
def test_a_start_that_makes_no_sense_says_where(caller, body, pointer):
    answer = caller.http.post("/v1/workflows", body)
    assert (answer.status, answer.json["error"], answer.json["pointer"]) == (400, "InvalidRequest", pointer)


TURN = {"lease": "x", "seen": 0, "end": {"kind": "suspended"}}


@pytest.mark.parametrize(
    "turn, pointer",
    [
        ({}, "/lease"),
        ({"lease": "x", "end": {}}, "/seen"),
        ({"lease": "x", "seen": 0}, "/end"),
        ({**TURN, "end": {"kind": "paused"}}, "/end/kind"),
        ({**TURN, "end": {"kind": "failed"}}, "/end/error"),
        ({**TURN, "end": {"kind": "completed", "error": {}}}, "/end/error"),
        ({**TURN, "commands": [{"kind": "sleep", "until": PAST}]}, "/commands/0/step"),
        ({**TURN, "commands": [{"step": 1, "kind": "closed"}]}, "/commands/0/kind"),
        ({**TURN, "commands": [{"step": 1, "kind": "sleep"}]}, "/commands/0/until"),
        ({**TURN, "commands": [{"step": 1, "kind": "task"}]}, "/commands/0/start"),
        ({**TURN, "commands": [{"step": 1, "kind": "task", "start": {"type": ""}}]}, "/commands/0/start/type"),
        ({**TURN, "commands": [{"step": 1, "kind": "child", "start": {"type": "a", "scope": "b"}}]}, "/commands/0/start/scope"),
        ({**TURN, "commands": [{"step": 1, "kind": "side_effect", "name": "n"}]}, "/commands/0/value"),
        ({**TURN, "commands": [{"step": 1, "kind": "version", "name": "n", "value": "1"}]}, "/commands/0/value"),
        (
            {**TURN, "commands": [{"step": 1, "kind": "sleep", "until": PAST}, {"step": 3, "kind": "sleep", "until": PAST}]},
            "/commands/1/step",
        ),
    ],
)
def test_a_turn_that_makes_no_sense_says_where(caller, turn, pointer):
    answer = caller.http.post("/v1/claims/turns", {"turns": [turn]})
    assert (answer.status, answer.json["error"], answer.json["pointer"]) == (400, "InvalidRequest", "/turns/0" + pointer)


def test_histories_are_read_page_by_page(caller, worker, fresh):
    def code(ctx, _):
        for n in range(25):
            ctx.side_effect(f"n{n}", lambda: n)
        yield ctx.wait_signal("never")

    mine = worker(code)
    workflow_id = begin(caller, mine, fresh)
    mine.until_idle()
    whole = caller.history(workflow_id)
    assert len(whole) == 26

    pages, after = [], 0
    while after is not None:
        answer = caller.http.get(f"/v1/workflows/{workflow_id}/history?after={after}&limit=10").json
        pages.append(answer["events"])
        after = answer["next_after"]
    assert [len(page) for page in pages] == [10, 10, 6]
    assert [event for page in pages for event in page] == whole
    run = caller.workflow(workflow_id)["id"]
    assert caller.history(run, run=run) == whole
    other = caller.begin("w", fresh("workflow"))["id"]
    assert caller.http.get(f"/v1/workflows/{workflow_id}/history?run={other}").status == 404


def test_an_unknown_workflow_is_a_404_everywhere(caller, fresh):
    unknown = fresh("unknown")
    for path in ("", "/history", "/result"):
        answer = caller.http.get(f"/v1/workflows/{unknown}{path}")
        assert (answer.status, answer.json["error"]) == (404, "WorkflowNotFound")
    answers = [caller.cancel_workflow(unknown), caller.resume(unknown), caller.fork(unknown, 1), caller.signal(unknown, "s")]
    for answer in answers:
        assert (answer.status, answer.json["error"]) == (404, "WorkflowNotFound")


def test_workflows_are_listed_apart_from_tasks(caller, fresh):
    queue = fresh("queue")
    ids = [caller.begin("w", fresh("workflow"), queue=queue)["id"] for _ in range(3)]
    caller.create("t", queue=queue)

    page = caller.http.get(f"/v1/workflows?queue={queue}&limit=2").json
    rest = caller.http.get(f"/v1/workflows?queue={queue}&limit=2&cursor={page['next_cursor']}").json

    assert [e["id"] for e in page["executions"] + rest["executions"]] == ids[::-1]
    assert rest["next_cursor"] is None
    assert len(caller.list(queue=queue)) == 1
    assert caller.list(parent=fresh("unknown")) == []


def test_a_result_is_waited_for(caller, worker, fresh):
    mine = worker(returns_at_once)
    workflow_id = begin(caller, mine, fresh)
    assert caller.workflow_result(workflow_id).status == 202
    mine.until_idle()
    answer = caller.workflow_result(workflow_id, wait="10s")
    assert (answer.status, answer.json["status"]) == (200, "completed")
    assert "result" not in answer.json
