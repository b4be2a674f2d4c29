"""A submission sent again under its id is the same submission."""

import secrets
import time
import uuid

import pytest

from caller import Caller


def draw_id():
    """A UUIDv7."""
    milliseconds = time.time_ns() // 1_000_000
    number = milliseconds << 80 | 7 << 76 | secrets.randbits(12) << 64 | 0b10 << 62 | secrets.randbits(62)
    return str(uuid.UUID(int=number))


def test_a_submission_that_comes_again_under_its_id_gets_its_first_answer(caller, fresh):
    type, queue, id = fresh("type"), fresh("queue"), draw_id()
    first = caller.submit(type, input=1, queue=queue, id=id)
    assert first.status == 201 and first.json["execution"]["id"] == id
    caller.fail(caller.claim_one(queue)["lease"], retryable=False)

    again = caller.submit(type, input=1, queue=queue, id=id)

    assert again.status == 201 and again.json["created"] and again.json["execution"]["status"] == "failed"
    assert again.headers["location"] == f"/v1/tasks/{id}"
    (receipt,) = caller.batch({"type": type, "input": 1, "queue": queue, "id": id}).json["receipts"]
    assert receipt["created"] and receipt["execution"]["id"] == id
    assert caller.claim(queue) == []


def test_a_replacing_submission_that_comes_again_does_not_replace_itself(caller, fresh):
    key = fresh("key")
    owner = caller.create("t", idempotency_key=key)
    fields = {"idempotency_key": key, "reuse": "replace", "on_duplicate": "error", "id": draw_id()}

    answers = [caller.submit("t", **fields) for _ in range(3)]

    assert [answer.status for answer in answers] == [201] * 3
    assert {answer.json["match"]["superseded"] for answer in answers} == {owner["id"]}
    assert {answer.json["execution"]["status"] for answer in answers} == {"pending"}


def test_a_workflow_that_is_started_again_under_its_id_is_one(caller, fresh):
    body = {"type": "t", "workflow_id": fresh("flow"), "on_duplicate": "error", "id": draw_id(), "queue": fresh("queue")}

    answers = [caller.http.post("/v1/workflows", body) for _ in range(2)]

    assert [answer.status for answer in answers] == [201, 201]
    assert answers[0].json["execution"]["id"] == answers[1].json["execution"]["id"] == body["id"]


def test_an_id_is_refused_with_another_input_or_type(caller, fresh):
    id = draw_id()
    caller.create("t", input=1, id=id)

    for other in ({"input": 2}, {"input": 2, "idempotency_key": fresh("key")}):
        refused = caller.submit("t", id=id, **other)
        assert refused.status == 409 and refused.json["error"] == "IdempotencyConflict", refused
        assert refused.json["existing_execution_id"] == id
    refused = caller.submit("u", input=1, id=id)
    assert refused.status == 409 and "another type" in refused.json["message"], refused


@pytest.mark.parametrize("id", ["", "x", "00000000-0000-0000-0000-000000000000", "6ba7b810-9dad-41d1-80b4-00c04fd430c8"])
def test_an_id_is_a_uuid_of_version_7(caller, id):
    refused = caller.submit("t", id=id)
    assert refused.status == 400 and (refused.json["error"], refused.json["pointer"]) == ("InvalidId", "/id"), refused
    (receipt,) = caller.batch({"type": "t", "id": id}).json["receipts"]
    assert (receipt["error"], receipt["pointer"]) == ("InvalidId", "/tasks/0/id")


def test_an_id_of_another_namespace_is_refused(shared_server, caller, fresh):
    id = draw_id()
    caller.create("t", input={"secret": 1}, id=id)

    refused = Caller(shared_server, namespace=fresh("space")).submit("t", input={"secret": 1}, id=id)

    assert refused.status == 400 and refused.json["error"] == "InvalidId", refused
    assert "existing_execution_id" not in refused.json
