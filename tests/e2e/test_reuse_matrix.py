"""What a submission gets when its identity has an owner: every owner status, reuse policy, on_duplicate and input.

A task is never suspended: only a workflow waits on steps, timers or signals. The six statuses of a task are here.
"""

import itertools

import pytest

INPUT, OTHER_INPUT = {"amount": 10}, {"amount": 11}
RESULT = {"charged": 10}

STATUSES = ["pending", "running", "completed", "failed", "cancelled", "timed_out"]
POLICIES = ["allow_failed", "reject", "allow_closed", "replace"]

DUPLICATE, NEW, CANCEL = "duplicate", "create new", "cancel it, create new"
MATRIX = {
    #             allow_failed  reject     allow_closed  replace
    "pending":   (DUPLICATE,    DUPLICATE, DUPLICATE,    CANCEL),
    "running":   (DUPLICATE,    DUPLICATE, DUPLICATE,    CANCEL),
    "completed": (DUPLICATE,    DUPLICATE, NEW,          NEW),
    "failed":    (NEW,          DUPLICATE, NEW,          NEW),
    "cancelled": (NEW,          DUPLICATE, NEW,          NEW),
    "timed_out": (NEW,          DUPLICATE, NEW,          NEW),
}

CASES = [
    (status, reuse, on_duplicate, input)
    for (status, reuse), on_duplicate, input in itertools.product(
        itertools.product(STATUSES, POLICIES), ["return", "error"], [INPUT, OTHER_INPUT]
    )
]


def make_owner(caller, status, **fields):
    """An execution in that status, and the lease of its attempt if it is running."""
    deadline = {"deadline": "1ms"} if status == "timed_out" else {}
    owner = caller.create(**fields, **deadline)
    lease = None
    if status in ("running", "completed", "failed"):
        lease = caller.claim_one(fields["queue"])["lease"]
    if status == "completed":
        assert caller.finish(lease, RESULT)["ok"]
    if status == "failed":
        assert caller.fail(lease, retryable=False)["ok"]
    if status == "cancelled":
        assert caller.cancel(owner["id"]).status == 200
    if status == "timed_out":
        caller.closed(owner["id"])
    owner = caller.task(owner["id"])
    assert owner["status"] == status
    return owner, lease


@pytest.mark.parametrize("status, reuse, on_duplicate, input", CASES)
def test_a_submission_gets_what_the_matrix_says(caller, fresh, status, reuse, on_duplicate, input):
    queue, key = fresh("queue"), fresh("key")
    owner, lease = make_owner(caller, status, queue=queue, idempotency_key=key, input=INPUT)

    answer = caller.submit(
        queue=queue, idempotency_key=key, input=input, reuse=reuse, on_duplicate=on_duplicate
    )

    body = answer.json
    verdict = MATRIX[status][POLICIES.index(reuse)]
    if verdict != DUPLICATE:
        assert answer.status == 201, answer
        assert body["created"] is True
        assert body["execution"]["id"] != owner["id"]
        assert body["execution"]["status"] == "pending"
        assert body["execution"]["idempotency_key"] == key
        assert body["match"]["superseded"] == owner["id"]
    elif input == OTHER_INPUT:
        assert answer.status == 409, answer
        assert body["error"] == "IdempotencyConflict"
        assert body["existing_execution_id"] == owner["id"]
        assert body["existing_input_hash"] == owner["input_hash"]
        assert body["input_hash"] != owner["input_hash"]
        assert "result" not in body and "input" not in body
    elif on_duplicate == "error":
        assert answer.status == 409, answer
        is_completed = status == "completed"
        assert body["error"] == ("TaskAlreadyCompleted" if is_completed else "TaskAlreadyExists")
        assert body["existing_execution_id"] == owner["id"]
        assert body["status"] == status
        assert body.get("completed_at") == (owner["completed_at"] if is_completed else None)
        assert body.get("result") == (RESULT if status == "completed" else None)
    else:
        assert answer.status == 200, answer
        assert body["created"] is False
        assert body["deduplicated_from"] == owner["created_at"]
        assert body["execution"]["id"] == owner["id"]
        assert body["execution"]["status"] == status
        assert body["match"]["superseded"] is None
        assert body["execution"].get("result") == (RESULT if status == "completed" else None)

    after = caller.task(owner["id"])
    if verdict == CANCEL and status == "running":
        assert after["status"] == "running" and after["cancel_requested"]
        assert caller.heartbeat(lease)["cancel_requested"] is True
    else:
        assert after["status"] == ("cancelled" if verdict == CANCEL else status)
    ids = [execution["id"] for execution in caller.list(idempotency_key=key)]
    assert sorted(ids) == sorted({owner["id"], body.get("execution", owner)["id"]})


def test_a_replaced_running_owner_is_cancelled_after_its_grace_and_fenced(caller, fresh):
    queue, key = fresh("queue"), fresh("key")
    caller.put_queue(queue, cancel_grace="50ms")
    owner, lease = make_owner(caller, "running", queue=queue, idempotency_key=key)

    replacement = caller.create(queue=queue, idempotency_key=key, reuse="replace")

    assert caller.closed(owner["id"])["status"] == "cancelled"
    assert caller.finish(lease)["error"] == "LeaseLost"
    assert caller.claim_one(queue)["execution"]["id"] == replacement["id"]


def test_after_a_replacement_the_key_belongs_to_the_new_execution(caller, fresh):
    key = fresh("key")
    caller.create(idempotency_key=key)
    replacement = caller.create(idempotency_key=key, reuse="replace")

    answer = caller.submit(idempotency_key=key)

    assert answer.status == 200
    assert answer.json["execution"]["id"] == replacement["id"]


def test_the_policy_of_the_type_holds_where_the_request_names_none(caller, fresh):
    type, key = fresh("type"), fresh("key")
    caller.put_type(type, reuse="replace", on_duplicate="error")
    owner = caller.create(type, idempotency_key=key)
    assert caller.submit(type, idempotency_key=key, reuse="reject").json["error"] == "TaskAlreadyExists"

    replacement = caller.submit(type, idempotency_key=key)

    assert replacement.status == 201
    assert replacement.json["match"]["superseded"] == owner["id"]


# ---- batches


def test_the_first_of_equal_identities_in_a_batch_creates_and_the_second_dedupes_onto_it(caller, fresh):
    key, other = fresh("key"), fresh("key")
    tasks = [{"type": "charge", "idempotency_key": name} for name in (key, key, other, key)]

    answer = caller.batch(*tasks)

    assert answer.status == 200, answer
    receipts = answer.json["receipts"]
    assert [receipt["created"] for receipt in receipts] == [True, False, True, False]
    ids = [receipt["execution"]["id"] for receipt in receipts]
    assert ids[0] == ids[1] == ids[3] != ids[2]


def test_a_batch_that_is_sent_again_creates_nothing_and_gives_the_same_executions(caller, fresh):
    tasks = [{"type": "charge", "idempotency_key": fresh("key"), "input": n} for n in range(50)]

    first, second = caller.batch(*tasks).json["receipts"], caller.batch(*tasks).json["receipts"]

    assert all(receipt["created"] for receipt in first)
    assert not any(receipt["created"] for receipt in second)
    assert [receipt["execution"]["id"] for receipt in first] == [receipt["execution"]["id"] for receipt in second]


def test_each_submission_of_a_batch_has_its_own_outcome(caller, fresh):
    key, context = fresh("key"), {"identity": "contextual", "identity_fields": ["/order"]}
    answer = caller.batch(
        {"type": "charge", "idempotency_key": key, "input": 1},
        {"type": "charge", "idempotency_key": key, "input": 2},
        {"type": "charge", "idempotency_key": key, "input": 1, "on_duplicate": "error"},
        {"type": "charge", "input": {}, **context},
        {"type": "charge"},
    )

    assert answer.status == 200, answer
    created, conflict, existing, missing, unkeyed = answer.json["receipts"]
    assert created["created"] and unkeyed["created"]
    assert conflict["error"] == "IdempotencyConflict"
    assert existing["error"] == "TaskAlreadyExists"
    assert conflict["existing_execution_id"] == existing["existing_execution_id"] == created["execution"]["id"]
    assert missing["error"] == "IdentityFieldMissing"


def test_a_batch_takes_1000_submissions_and_not_one_more(caller, fresh):
    queue = fresh("queue")
    tasks = [{"type": "charge", "queue": queue}] * 1000

    assert len(caller.batch(*tasks).json["receipts"]) == 1000
    refused = caller.batch(*tasks, {"type": "charge", "queue": queue})

    assert refused.status == 400
    assert refused.json["pointer"] == "/tasks"
    assert caller.http.get(f"/v1/queues/{queue}").json["pending"] == 1000
