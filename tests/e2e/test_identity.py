"""Which two submissions are the same, and for how long."""

import hashlib
import json
from datetime import datetime

import pytest

from caller import Caller
from conftest import eventually
from server import SLOWDOWN
from workflow_worker import WorkflowWorker

WINDOW = f"{SLOWDOWN}s"  # long enough to do something within it, short enough to see its end


def canonical(document):
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def sha256(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def identity_hash(tag, name, strategy, material, namespace="default"):
    return sha256(canonical(["hapax/1", namespace, tag, name, strategy, material]))


def same(first, second):
    assert first.status in (200, 201) and second.status in (200, 201), (first, second)
    return first.json["execution"]["id"] == second.json["execution"]["id"]


# ---- strategies


def test_an_undeclared_type_is_always_unique(caller, fresh):
    type = fresh("type")
    first, second = caller.submit(type, input={"hello": 1}), caller.submit(type, input={"hello": 1})

    assert (first.status, second.status) == (201, 201)
    assert not same(first, second)
    assert first.json["match"] is None


def test_a_declared_type_is_strict_unless_it_says_otherwise(caller, fresh):
    type = fresh("type")
    caller.put_type(type)

    first, again, other = (caller.submit(type, input={"n": n}) for n in (1, 1, 2))

    assert (first.status, again.status, other.status) == (201, 200, 201)
    assert same(first, again) and not same(first, other)
    assert again.json["match"]["strategy"] == "strict"


def test_the_undeclared_strategy_of_the_server_can_be_set(start_server, fresh):
    caller = Caller(start_server(config='[identity]\nundeclared = "strict"\n'))

    assert same(caller.submit(input=1), caller.submit(input=1))


def test_a_request_may_name_its_own_strategy(caller, fresh):
    type = fresh("type")
    caller.put_type(type, identity="strict")

    unique = caller.submit(type, identity="always_unique"), caller.submit(type, identity="always_unique")
    assert not same(*unique)
    undeclared = fresh("type")
    assert same(caller.submit(undeclared, identity="strict"), caller.submit(undeclared, identity="strict"))


def test_a_key_in_the_request_wins_over_every_strategy(caller, fresh):
    type = fresh("type")
    caller.put_type(type, identity="always_unique")
    key = fresh("key")

    first = caller.submit(type, idempotency_key=key)
    second = caller.submit(type, idempotency_key=key, identity="strict")

    assert same(first, second)
    assert second.json["match"]["strategy"] == "caller_provided"


def test_contextual_identity_compares_only_the_named_fields(caller, fresh):
    type = fresh("type")
    caller.put_type(type, identity="contextual", identity_fields=["/order/id", "/kind"])

    first = caller.submit(type, input={"order": {"id": 7}, "kind": "a", "note": "first"})
    again = caller.submit(type, input={"order": {"id": 7}, "kind": "a", "note": "second"})
    other = caller.submit(type, input={"order": {"id": 8}, "kind": "a", "note": "first"})

    assert same(first, again) and again.status == 200
    assert not same(first, other)


def test_a_missing_identity_field_is_an_error_that_names_it(caller, fresh):
    type = fresh("type")
    caller.put_type(type, identity="contextual", identity_fields=["/order_id", "/line"])

    answer = caller.submit(type, input={"order_id": 1})

    assert answer.status == 400
    assert answer.json["error"] == "IdentityFieldMissing"
    assert "/line" in answer.json["message"] or "/line" in answer.json["pointer"]
    assert caller.list(type=type) == []


def test_a_field_that_is_null_is_there(caller, fresh):
    type = fresh("type")
    caller.put_type(type, identity="contextual", identity_fields=["/a"])

    assert same(caller.submit(type, input={"a": None}), caller.submit(type, input={"a": None, "b": 1}))


def test_a_type_that_wants_keys_refuses_a_submission_without(caller, fresh):
    type = fresh("type")
    caller.put_type(type, identity="caller_provided")

    answer = caller.submit(type)

    assert answer.status == 400
    assert answer.json["error"] == "IdempotencyKeyRequired"
    assert caller.submit(type, idempotency_key="k").status == 201


def test_the_header_stands_for_the_key(caller, fresh):
    key = fresh("key")

    first = caller.submit(headers={"Idempotency-Key": key})
    second = caller.submit(idempotency_key=key)

    assert same(first, second)
    assert first.json["execution"]["idempotency_key"] == key


def test_a_header_and_a_field_that_disagree_are_refused(caller, fresh):
    answer = caller.submit(headers={"Idempotency-Key": fresh("key")}, idempotency_key=fresh("key"))

    assert answer.status == 400


# ---- scopes


def test_a_key_is_unique_within_its_scope(caller, fresh):
    key, a, b, q1, q2 = fresh("key"), fresh("type"), fresh("type"), fresh("queue"), fresh("queue")

    def submit(type, queue, scope):
        return caller.submit(type, queue=queue, scope=scope, idempotency_key=key)

    assert same(submit(a, q1, "type"), submit(a, q2, "type"))
    assert not same(submit(a, q1, "type"), submit(b, q1, "type"))
    assert same(submit(a, q1, "queue"), submit(a, q1, "queue"))
    assert not same(submit(a, q1, "queue"), submit(a, q2, "queue"))
    assert same(submit(a, q1, "global"), submit(a, q2, "global"))
    assert same(submit(a, q1, "tenant-9"), submit(a, q2, "tenant-9"))
    assert not same(submit(a, q1, "tenant-9"), submit(a, q1, "tenant-10"))


@pytest.mark.parametrize("scope", ["queue", "global", "tenant-9"])
def test_a_key_of_a_wider_scope_is_no_other_types(caller, fresh, scope):
    key, a, b, queue = fresh("key"), fresh("type"), fresh("type"), fresh("queue")
    owner = caller.submit(a, queue=queue, scope=scope, idempotency_key=key).json["execution"]

    stranger = caller.submit(b, queue=queue, scope=scope, idempotency_key=key)

    assert (stranger.status, stranger.json["error"]) == (409, "IdempotencyConflict")
    assert stranger.json["existing_execution_id"] == owner["id"]
    assert "another type" in stranger.json["message"]


def test_a_custom_scope_never_meets_a_type_or_queue_of_the_same_name(caller, fresh):
    key, name = fresh("key"), fresh("name")

    by_type = caller.submit(name, queue=name, idempotency_key=key)
    by_queue = caller.submit(name, queue=name, idempotency_key=key, scope="queue")
    by_name = caller.submit(name, queue=name, idempotency_key=key, scope=name)

    assert len({answer.json["execution"]["id"] for answer in (by_type, by_queue, by_name)}) == 3
    assert not same(
        caller.submit("queue", idempotency_key=key), caller.submit("queue", idempotency_key=key, scope="queue")
    )


def test_parts_of_an_identity_do_not_run_into_each_other(caller, fresh):
    word = fresh("a")

    assert not same(
        caller.submit(scope=f"{word}:b", idempotency_key="c"), caller.submit(scope=word, idempotency_key="b:c")
    )


def test_namespaces_are_apart(shared_server, fresh):
    key = fresh("key")
    one, two = Caller(shared_server, namespace="one"), Caller(shared_server, namespace="two")
    queue = fresh("queue")

    first, second = one.submit(queue=queue, idempotency_key=key), two.submit(queue=queue, idempotency_key=key)

    assert (first.status, second.status) == (201, 201)
    mine = first.json["execution"]["id"]
    assert two.http.get(f"/v1/tasks/{mine}").status == 404
    assert [e["id"] for e in one.list(queue=queue)] == [mine]
    assert [c["execution"]["id"] for c in one.claim(queue, limit=10)] == [mine]
    two.put_queue(queue, max_running=7)
    assert one.http.get(f"/v1/queues/{queue}").json["settings"].get("max_running") is None


# ---- hashes


@pytest.mark.parametrize(
    "scope, tag", [("type", "type"), ("queue", "queue"), ("global", "global"), ("köln", "custom")]
)
def test_the_identity_hash_is_the_documented_one(caller, fresh, scope, tag):
    type, queue, key = fresh("type"), fresh("queue"), fresh("key") + ' "quoted" \\ é \u20ac'
    name = {"type": type, "queue": queue, "global": "", "custom": scope}[tag]

    receipt = caller.submit(type, queue=queue, idempotency_key=key, scope=scope).json

    assert receipt["match"]["scope"] == scope
    assert receipt["match"]["identity_hash"] == identity_hash(tag, name, "caller_provided", key)


def test_the_strict_hash_covers_the_input_and_the_contextual_one_the_fields(caller, fresh):
    type = fresh("type")
    document = {"b": [1, "x", None, True], "a": {"z": 1, "y": 2.5}}

    strict = caller.submit(type, identity="strict", input=document).json
    contextual = caller.submit(
        type, identity="contextual", identity_fields=["/b/1", "/a/y"], input=document
    ).json

    assert strict["match"]["identity_hash"] == identity_hash("type", type, "strict", document)
    material = {"/b/1": "x", "/a/y": 2.5}
    assert contextual["match"]["identity_hash"] == identity_hash("type", type, "contextual", material)
    assert strict["execution"]["input_hash"] == sha256(canonical(document))


def test_the_namespace_is_part_of_the_hash(shared_server, fresh):
    key = fresh("key")
    receipt = Caller(shared_server, namespace="tenant").submit("charge", idempotency_key=key).json

    assert receipt["match"]["identity_hash"] == identity_hash("type", "charge", "caller_provided", key, "tenant")


def submit_text(caller, type, input_text):
    body = f'{{"type": "{type}", "identity": "strict", "input": {input_text}}}'
    return caller.http.post("/v1/tasks", raw=body.encode())


def test_integers_are_exact(caller, fresh):
    type = fresh("type")

    big, less = submit_text(caller, type, "9007199254740993"), submit_text(caller, type, "9007199254740992")

    assert not same(big, less)
    id = big.json["execution"]["id"]
    assert b"9007199254740993" in caller.http.get(f"/v1/tasks/{id}").body


@pytest.mark.parametrize(
    "one, other",
    [
        ('{"a":1,"b":2}', '{"b" : 2, "a":1}'),
        ("1", "1.0"),
        ("1e2", "100"),
        ('"\\u00e9"', '"é"'),
        ("0", "-0"),
        ('{"a":{"x":1,"y":[1,2]}}', '{"a":{"y":[1,2],"x":1}}'),
    ],
)
def test_the_same_value_written_differently_is_the_same_input(caller, fresh, one, other):
    type = fresh("type")

    assert same(submit_text(caller, type, one), submit_text(caller, type, other))


@pytest.mark.parametrize(
    "one, other", [("[1,2]", "[2,1]"), ("1", '"1"'), ("null", "{}"), ("0.1", "0.10000000000000002")]
)
def test_different_values_are_different_inputs(caller, fresh, one, other):
    type = fresh("type")

    assert not same(submit_text(caller, type, one), submit_text(caller, type, other))


def test_a_member_named_twice_is_refused(caller, fresh):
    type = fresh("type")

    answer = submit_text(caller, type, '{"a": 1, "b": 2, "a": 1}')

    assert answer.status == 400
    assert "a" in answer.json["message"]
    assert caller.list(type=type) == []


# ---- the window


def complete(caller, queue, result=None):
    claim = caller.claim_one(queue)
    assert caller.finish(claim["lease"], result)["ok"]


def test_a_window_shorter_than_the_retention_ends_while_the_execution_stays(caller, fresh):
    queue, key = fresh("queue"), fresh("key")
    owner = caller.create(queue=queue, idempotency_key=key, idempotency_ttl=WINDOW)
    complete(caller, queue)
    assert caller.submit(queue=queue, idempotency_key=key).status == 200

    renewed = eventually(
        lambda: (answer := caller.submit(queue=queue, idempotency_key=key, idempotency_ttl=WINDOW)).status == 201
        and answer.json
    )

    assert renewed["execution"]["id"] != owner["id"]
    assert caller.task(owner["id"])["status"] == "completed"


def test_an_active_execution_holds_its_key_beyond_the_window(caller, fresh):
    key = fresh("key")
    owner = caller.create(idempotency_key=key, idempotency_ttl="1ms")
    assert caller.result(owner["id"], wait="50ms").status == 202

    answer = caller.submit(idempotency_key=key)

    assert answer.status == 200
    assert answer.json["execution"]["id"] == owner["id"]


def test_a_window_longer_than_the_retention_leaves_a_tombstone(caller, fresh):
    queue, key = fresh("queue"), fresh("key")
    caller.put_queue(queue, retention="0")
    owner = caller.create(queue=queue, idempotency_key=key, input=1, idempotency_ttl="1h")
    complete(caller, queue, {"charged": 1})
    assert caller.http.get(f"/v1/tasks/{owner['id']}").status == 404

    duplicate = caller.submit(queue=queue, idempotency_key=key, input=1)
    conflict = caller.submit(queue=queue, idempotency_key=key, input=2)
    error = caller.submit(queue=queue, idempotency_key=key, input=1, on_duplicate="error")

    assert duplicate.status == 200
    assert duplicate.json["result_expired"] is True
    assert duplicate.json["execution"]["id"] == owner["id"]
    assert duplicate.json["execution"]["status"] == "completed"
    assert "result" not in duplicate.json["execution"]
    assert (conflict.status, conflict.json["error"]) == (409, "IdempotencyConflict")
    assert (error.status, error.json["error"]) == (409, "TaskAlreadyCompleted")


def test_a_tombstone_ends_with_its_window(caller, fresh):
    queue, key = fresh("queue"), fresh("key")
    caller.put_queue(queue, retention="0")
    owner = caller.create(queue=queue, idempotency_key=key, idempotency_ttl=WINDOW)
    complete(caller, queue)

    renewed = eventually(
        lambda: (answer := caller.submit(queue=queue, idempotency_key=key, idempotency_ttl=WINDOW)).status == 201
        and answer.json
    )

    assert renewed["execution"]["id"] != owner["id"]


def test_without_a_window_the_key_lives_as_long_as_the_retention(caller, fresh):
    queue, key = fresh("queue"), fresh("key")
    caller.put_queue(queue, retention=WINDOW)
    caller.create(queue=queue, idempotency_key=key)
    complete(caller, queue)
    assert caller.submit(queue=queue, idempotency_key=key).status == 200

    eventually(lambda: caller.submit(queue=queue, idempotency_key=key).status == 201)


def test_with_no_retention_and_no_window_the_key_is_free_as_the_task_closes(caller, fresh):
    queue, key = fresh("queue"), fresh("key")
    caller.put_queue(queue, retention="0")
    caller.create(queue=queue, idempotency_key=key)
    complete(caller, queue)

    assert caller.submit(queue=queue, idempotency_key=key).status == 201


def test_the_window_of_the_request_wins_over_the_type_and_that_over_the_queue(caller, fresh):
    queue, type = fresh("queue"), fresh("type")
    caller.put_queue(queue, idempotency_ttl="1h")

    def hours(**fields):
        key = fresh("key")
        owner = caller.submit(type, queue=queue, idempotency_key=key, **fields).json
        told = owner["match"]["expires_at"]
        caller.cancel(owner["execution"]["id"])
        receipt = caller.submit(type, queue=queue, idempotency_key=key, reuse="reject").json
        created = datetime.fromisoformat(receipt["execution"]["created_at"].replace("Z", "+00:00"))
        assert receipt["match"]["expires_at"] == told
        expires = datetime.fromisoformat(told.replace("Z", "+00:00"))
        return (expires - created).total_seconds() / 3600

    assert hours() == 1
    caller.put_type(type, idempotency_ttl="2h", identity="caller_provided")
    assert hours() == 2
    assert hours(idempotency_ttl="3h") == 3


# ---- dry run, look up, release


def test_a_dry_run_says_what_would_happen_and_changes_nothing(caller, fresh):
    queue, key = fresh("queue"), fresh("key")

    would_create = caller.submit(queue=queue, idempotency_key=key, dry_run=True)
    assert would_create.status == 200
    assert would_create.json["created"] is True
    assert caller.list(queue=queue) == []
    assert caller.http.get(f"/v1/tasks/{would_create.json['execution']['id']}").status == 404

    owner = caller.create(queue=queue, idempotency_key=key)
    assert caller.submit(queue=queue, idempotency_key=key, dry_run=True).json["execution"]["id"] == owner["id"]
    assert caller.submit(queue=queue, idempotency_key=key, input=1, dry_run=True).status == 409
    would_replace = caller.submit(queue=queue, idempotency_key=key, reuse="replace", dry_run=True)
    assert would_replace.json["match"]["superseded"] == owner["id"]
    assert [(e["id"], e["status"]) for e in caller.list(queue=queue)] == [(owner["id"], "pending")]


def test_an_identity_can_be_looked_up_by_its_key(caller, fresh):
    type, key = fresh("type"), fresh("key")
    assert caller.http.get(f"/v1/identities?type={type}&key={key}").status == 404
    receipt = caller.submit(type, idempotency_key=key).json

    answer = caller.http.get(f"/v1/identities?type={type}&key={key}")

    assert answer.status == 200, answer
    assert answer.json["identity_hash"] == receipt["match"]["identity_hash"]
    assert answer.json["execution_id"] == answer.json["execution"]["id"] == receipt["execution"]["id"]
    assert answer.json["live"] is True
    assert caller.http.get(f"/v1/identities?type={type}&scope=global&key={key}").status == 404


def test_a_released_identity_is_free_for_the_next_submission(caller, fresh):
    key = fresh("key")
    receipt = caller.submit(idempotency_key=key).json
    hash = receipt["match"]["identity_hash"]

    assert caller.http.delete(f"/v1/identities/{hash}").json["released"] is True

    assert caller.submit(idempotency_key=key).status == 201
    assert caller.task(receipt["execution"]["id"])["status"] == "pending"
    assert caller.http.delete(f"/v1/identities/sha256:{'0' * 64}").json["released"] is False


def test_a_namespace_cannot_release_the_identity_of_another(shared_server, caller, fresh):
    key = fresh("key")
    hash = caller.submit(idempotency_key=key).json["match"]["identity_hash"]

    assert Caller(shared_server, namespace="stranger").http.delete(f"/v1/identities/{hash}").json["released"] is False
    assert caller.submit(idempotency_key=key).status == 200


# ---- declaring and tuning types


def test_tuning_a_type_does_not_change_what_is_the_same(caller, fresh):
    type = fresh("type")
    view = caller.http.patch(f"/v1/types/{type}", {"max_attempts": 7}).json
    assert view["declared"] is False and view["settings"] == {"max_attempts": 7}
    assert view["identity"] == {"strategy": "always_unique", "from": "undeclared", "steps": "always_unique"}

    first, second = caller.submit(type, input=1), caller.submit(type, input=1)
    assert not same(first, second)
    assert first.json["execution"]["max_attempts"] == 7

    caller.put_type(type, max_attempts=7)
    view = caller.http.get(f"/v1/types/{type}").json
    assert view["identity"] == {"strategy": "strict", "from": "declared", "steps": "always_unique"}
    view = caller.http.patch(f"/v1/types/{type}", {"max_attempts": None, "retry": {"max": "9s"}}).json
    assert view["declared"] is True and view["settings"] == {"retry": {"max": "9s"}}
    assert same(caller.submit(type, input=1), caller.submit(type, input=1))
    for wrong in ({"max_attempts": 0}, {"color": None}, [], {"identity": "contextual"}):
        assert caller.http.patch(f"/v1/types/{type}", wrong).status == 400, wrong
    assert caller.http.get(f"/v1/types/{type}").json["settings"] == {"retry": {"max": "9s"}}


def twice(ctx, input):
    first = yield ctx.task(input["type"], "x", queue=input["queue"])
    second = yield ctx.task(input["type"], "x", queue=input["queue"])
    return [first, second]


@pytest.mark.parametrize("declare", ["patch", "put"])
def test_a_default_never_merges_steps(caller, fresh, declare):
    type, queue = fresh("tick"), fresh("queue")
    assert caller.http.request(declare.upper(), f"/v1/types/{type}", {"max_attempts": 7}).status == 200
    ran = []
    worker = WorkflowWorker(caller.http, {"twice": twice}, {type: lambda *_: ran.append(1)}, [queue])
    for _ in range(2):
        caller.begin("twice", fresh("flow"), queue=queue, input={"type": type, "queue": queue})
        worker.until_idle()
    assert len(ran) == 4


def test_a_history_says_which_steps_share_an_earlier_task(caller, fresh):
    type, queue, workflow_id = fresh("tick"), fresh("queue"), fresh("flow")
    assert caller.http.patch(f"/v1/types/{type}", {"identity": "strict"}).status == 200
    worker = WorkflowWorker(caller.http, {"twice": twice}, {type: lambda *_: 1}, [queue])
    caller.begin("twice", workflow_id, queue=queue, input={"type": type, "queue": queue})
    worker.until_idle()

    first, second = (event for event in caller.history(workflow_id) if event["kind"] == "task")
    assert "deduplicated" not in first and "status" not in first
    assert second["deduplicated"] is True and second["status"] == "completed"
    assert second["execution_id"] == first["execution_id"]


# ---- another type


@pytest.mark.parametrize("scope", ["queue", "global", "orders"])
def test_a_key_that_several_types_share_is_a_conflict_for_another_type(caller, fresh, scope):
    key, queue = fresh("key"), fresh("queue")
    owner = caller.create("charge", queue=queue, scope=scope, idempotency_key=key, input=1)

    for dry_run in (True, False):
        answer = caller.submit("refund", queue=queue, scope=scope, idempotency_key=key, input=1, dry_run=dry_run)
        assert (answer.status, answer.json["error"]) == (409, "IdempotencyConflict")
        assert answer.json["existing_execution_id"] == owner["id"]
        assert "another type" in answer.json["message"] and "input" not in answer.json
    batch = caller.batch({"type": "refund", "queue": queue, "scope": scope, "idempotency_key": key, "input": 1})
    assert batch.json["receipts"][0]["error"] == "IdempotencyConflict"
    assert len(caller.list(queue=queue)) == 1


def test_a_workflow_id_with_another_type_is_a_conflict(caller, fresh):
    workflow_id, queue = fresh("flow"), fresh("queue")
    caller.begin("charge", workflow_id, queue=queue, input=1)
    answer = caller.start("refund", workflow_id, queue=queue, input=1)
    assert (answer.status, answer.json["error"]) == (409, "IdempotencyConflict")
    assert "another type" in answer.json["message"]
    assert caller.workflow(workflow_id)["type"] == "charge"
