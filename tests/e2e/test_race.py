"""Many submissions of one identity at the same instant: one creates, all others get that one."""

from collections import Counter

import pytest

from client import Volley, request_bytes

CALLERS = 64
ROUNDS = 200


@pytest.fixture(params=["memory", "sqlite"])
def any_server(request, start_server):
    return start_server(store="memory:" if request.param == "memory" else None)


def submission(key, input):
    return request_bytes("POST", "/v1/tasks", {"type": "charge", "idempotency_key": key, "input": input})


def executions_of(server, key):
    answer = server.client.get(f"/v1/tasks?idempotency_key={key}")
    assert answer.status == 200, answer
    return answer.json["executions"]


def test_one_of_64_callers_of_a_key_creates_and_all_get_its_execution(any_server):
    with Volley([any_server.port] * CALLERS) as volley:
        for turn in range(ROUNDS):
            key = f"order-{turn}"
            answers = volley.fire([submission(key, {"order": turn})] * CALLERS)

            assert Counter(answer.status for answer in answers) == {201: 1, 200: CALLERS - 1}, answers
            ids = {answer.json["execution"]["id"] for answer in answers}
            assert len(ids) == 1, ids
            assert all(answer.json["created"] == (answer.status == 201) for answer in answers)
            assert [execution["id"] for execution in executions_of(any_server, key)] == list(ids)


def test_one_of_64_callers_with_different_inputs_creates_and_the_others_conflict_with_it(any_server):
    with Volley([any_server.port] * CALLERS) as volley:
        for turn in range(ROUNDS):
            key = f"order-{turn}"
            answers = volley.fire([submission(key, {"caller": caller}) for caller in range(CALLERS)])

            assert Counter(answer.status for answer in answers) == {201: 1, 409: CALLERS - 1}, answers
            winner = next(answer.json["execution"] for answer in answers if answer.status == 201)
            losers = [answer.json for answer in answers if answer.status == 409]
            assert {loser["error"] for loser in losers} == {"IdempotencyConflict"}
            assert {loser["existing_execution_id"] for loser in losers} == {winner["id"]}
            assert {loser["existing_input_hash"] for loser in losers} == {winner["input_hash"]}
            own_hashes = {loser["input_hash"] for loser in losers}
            assert len(own_hashes) == CALLERS - 1 and winner["input_hash"] not in own_hashes
            assert not any("caller" in loser for loser in losers)
            assert [execution["id"] for execution in executions_of(any_server, key)] == [winner["id"]]
