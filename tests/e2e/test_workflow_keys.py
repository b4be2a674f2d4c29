"""The request keys of control operations, row by row, each with 32 callers at the same instant: one effect; all other
callers get the replay or the refusal that the table says."""

import itertools

import pytest

from caller import Caller, workflow_path
from client import Volley, request_bytes
from workflow_worker import WorkflowWorker

CALLERS = 32


@pytest.fixture(scope="module")
def volley(shared_server):
    with Volley([shared_server.port] * CALLERS) as volley:
        yield volley


class Target:
    """A waiting workflow, and one operation on it."""

    def __init__(self, caller, action, queue, workflow_id):
        self.caller, self.action, self.queue, self.workflow_id = caller, action, queue, workflow_id
        caller.begin("w", workflow_id, queue=queue)
        self.worker = WorkflowWorker(caller.http, {"w": waits_for_ever}, {}, [queue])
        self.worker.until_idle()
        if action == "resume":
            assert caller.cancel_workflow(workflow_id).status == 200

    def request(self, key, variant=0, workflow_id=None):
        path = workflow_path(workflow_id or self.workflow_id, PATHS[self.action])
        return request_bytes("POST", path, PARAMETERS[self.action](self.workflow_id, variant), {"Idempotency-Key": key})

    def effects(self):
        """How often it was done."""
        events = self.caller.history(self.workflow_id)
        if self.action == "cancel":
            return int(self.caller.workflow(self.workflow_id)["status"] == "cancelled")
        if self.action == "resume":
            return sum(event["kind"] == "resumed" for event in events)
        if self.action == "signal":
            return sum(event["kind"] == "signal" and "step" not in event for event in events)
        runs = self.caller.http.get(f"/v1/workflows?queue={self.queue}&limit=1000").json["executions"]
        return len(runs) - 1


def waits_for_ever(ctx, _):
    yield ctx.wait_signal("never")


PATHS = {"cancel": "cancel", "resume": "resume", "fork": "fork", "signal": "signals/news"}
PARAMETERS = {
    "cancel": lambda id, variant: {},
    "resume": lambda id, variant: {},
    "fork": lambda id, variant: {"from_step": 1, "workflow_id": f"{id}-fork-{variant}"},
    "signal": lambda id, variant: {"payload": variant},
}
ACTIONS = list(PATHS)
WITH_PARAMETERS = ["fork", "signal"]


@pytest.fixture
def target(caller, fresh):
    return lambda action: Target(caller, action, fresh("queue"), fresh("workflow"))


@pytest.mark.parametrize("action", ACTIONS)
def test_the_same_request_is_done_once_and_replayed(target, volley, fresh, action):
    one = target(action)
    key = fresh("key")

    answers = volley.fire([one.request(key)] * CALLERS)

    assert {answer.status for answer in answers} == {200}
    assert sorted(answer.json["idempotency_replayed"] for answer in answers) == [False] + [True] * (CALLERS - 1)
    told = [{**answer.json, "idempotency_replayed": None} for answer in answers]
    assert all(each == told[0] for each in told)
    assert all(answer.json["changed"] for answer in answers)
    assert one.effects() == 1


@pytest.mark.parametrize("action", WITH_PARAMETERS)
def test_other_parameters_under_the_key_are_a_conflict(target, volley, fresh, action):
    one = target(action)
    key = fresh("key")

    answers = volley.fire([one.request(key, variant) for variant in range(2) for _ in range(CALLERS // 2)])

    halves = [answers[: CALLERS // 2], answers[CALLERS // 2 :]]
    done, refused = sorted(halves, key=lambda half: half[0].status)
    assert {answer.status for answer in done} == {200}
    assert sum(not answer.json["idempotency_replayed"] for answer in done) == 1
    assert {(answer.status, answer.json["error"]) for answer in refused} == {(409, "IdempotencyConflict")}
    assert one.effects() == 1


@pytest.mark.parametrize("action, other", itertools.permutations(ACTIONS, 2))
def test_another_action_under_the_key_is_a_conflict(caller, target, volley, fresh, action, other):
    one = target(action)
    key = fresh("key")
    path = workflow_path(one.workflow_id, PATHS[other])
    foreign = request_bytes("POST", path, PARAMETERS[other](one.workflow_id, 0), {"Idempotency-Key": key})
    assert volley.fire([one.request(key)] * CALLERS)[0].status == 200
    before = caller.history(one.workflow_id)

    answers = volley.fire([foreign] * CALLERS)

    assert {(answer.status, answer.json["error"]) for answer in answers} == {(409, "IdempotencyConflict")}
    assert caller.history(one.workflow_id) == before and one.effects() == 1


@pytest.mark.parametrize("action", ACTIONS)
def test_another_workflow_under_the_key_is_a_conflict(target, volley, fresh, action):
    one, other = target(action), target(action)
    key = fresh("key")

    answers = volley.fire([each.request(key) for each in (one, other) for _ in range(CALLERS // 2)])

    statuses = sorted((answers[0].status, answers[-1].status))
    assert statuses == [200, 409]
    assert sorted(answer.status for answer in answers) == [200] * (CALLERS // 2) + [409] * (CALLERS // 2)
    assert sum(answer.json["idempotency_replayed"] for answer in answers) == CALLERS // 2 - 1
    assert one.effects() + other.effects() == 1


def failing(caller, target, action, fresh):
    """A request that is refused, its error, and how to make it possible."""
    if action == "signal":
        one = target("signal")
        caller.cancel_workflow(one.workflow_id)
        return one, (409, "WorkflowClosed"), lambda: caller.resume(one.workflow_id)
    if action == "fork":
        one = target("fork")
        taken = f"{one.workflow_id}-fork-0"
        caller.begin("w", taken, queue=fresh("queue"))
        return one, (409, "WorkflowAlreadyExists"), lambda: None
    one = Target.__new__(Target)
    one.caller, one.action, one.queue, one.workflow_id = caller, "cancel", fresh("queue"), fresh("unknown")
    return one, (404, "WorkflowNotFound"), lambda: caller.begin("w", one.workflow_id, queue=one.queue)


@pytest.mark.parametrize("action", ["cancel", "fork", "signal"])
def test_what_failed_is_not_tried_again_under_its_key(caller, target, volley, fresh, action):
    one, refusal, repair = failing(caller, target, action, fresh)
    key = fresh("key")

    answers = volley.fire([one.request(key)] * CALLERS)

    words = [(answer.status, answer.json["error"]) for answer in answers]
    assert sorted(words) == sorted([refusal] + [(409, "RequestFailedBefore")] * (CALLERS - 1))
    earlier = {answer.json["earlier"]["error"] for answer in answers if "earlier" in answer.json}
    assert earlier == {refusal[1]}
    assert not any(answer.json["idempotency_replayed"] for answer in answers)
    repair()
    late = volley.fire([one.request(key)] * CALLERS)
    assert {(answer.status, answer.json["error"]) for answer in late} == {(409, "RequestFailedBefore")}
    if action == "cancel":
        assert caller.workflow(one.workflow_id)["status"] == "pending"
    fresh_key = volley.fire([one.request(fresh("key")) for _ in range(CALLERS)])
    if action == "fork":
        assert {(answer.status, answer.json["error"]) for answer in fresh_key} == {refusal}
    else:
        assert {answer.status for answer in fresh_key} == {200}


@pytest.mark.parametrize("action", ACTIONS)
def test_different_keys_are_different_requests(target, volley, fresh, action):
    one = target(action)

    answers = volley.fire([one.request(fresh("key"), variant) for variant in range(CALLERS)])

    assert {answer.status for answer in answers} == {200}
    assert not any(answer.json["idempotency_replayed"] for answer in answers)
    changed = sum(answer.json["changed"] for answer in answers)
    assert changed == (1 if action in ("cancel", "resume") else CALLERS)
    assert one.effects() == changed


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize(
    "key, word",
    [(None, "IdempotencyKeyRequired"), ("   ", "InvalidIdempotencyKey"), ("k" * 201, "InvalidIdempotencyKey")],
)
def test_a_key_is_required_and_has_its_limits(caller, target, action, key, word):
    one = target(action)
    headers = {} if key is None else {"Idempotency-Key": key}

    answer = caller.http.post(
        workflow_path(one.workflow_id, PATHS[action]), PARAMETERS[action](one.workflow_id, 0), headers=headers
    )

    assert answer.status == 400
    assert answer.json["error"] in (word, "IdempotencyKeyRequired" if key and not key.strip() else word)
    assert one.effects() == 0


def test_blanks_around_a_key_do_not_count(caller, target, fresh):
    one = target("signal")
    key = fresh("key")

    first = caller.signal(one.workflow_id, "news", 1, key=f" {key} ")
    second = caller.signal(one.workflow_id, "news", 1, key=key)

    assert (first.json["idempotency_replayed"], second.json["idempotency_replayed"]) == (False, True)


def test_a_replay_outlives_the_server(start_server, fresh):
    server = start_server()
    caller = Caller(server)
    one = Target(caller, "signal", "q", "w1")
    first = caller.signal(one.workflow_id, "news", 1, key="k")
    server.kill()
    server.start()

    second = caller.signal(one.workflow_id, "news", 1, key="k")

    assert second.json == {**first.json, "idempotency_replayed": True}
    assert one.effects() == 1
