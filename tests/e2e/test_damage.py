"""Flipped bytes in the store's file: every answer is what was written, or a 503 that says so."""

import random
import re

import pytest

from caller import Caller
from command import Command
from conftest import eventually

COUNT = 200


@pytest.fixture
def written(start_server):
    """A server with tasks, some of them completed; what was written; and its file, closed."""
    server = start_server()
    caller = Caller(server)
    inputs, results = {}, {}
    for n in range(COUNT):
        input = {"n": n, "text": f"payload-{n:04}-" + "x" * (20 + n * 17 % 3000)}
        inputs[caller.create(queue="q", input=input)["id"]] = input
    for claim in caller.http.post("/v1/claims", {"queues": ["q"], "limit": COUNT // 2}).json["claims"]:
        result = {"done": claim["execution"]["id"], "text": "result-" + "y" * 50}
        caller.finish(claim["lease"], result)
        results[claim["execution"]["id"]] = result
    server.stop()
    return server, inputs, results


def flip_payloads(server, count):
    """Flips one bit in that many payloads."""
    content = bytearray(server.database.read_bytes())
    places = [match.start() + 3 for match in re.finditer(rb"payload-\d{4}|result-y", content)]
    for place in random.Random(17).sample(places, count):
        content[place] ^= 1 << 2
    server.database.write_bytes(content)


def test_what_is_answered_is_what_was_written_or_says_that_it_is_damaged(written):
    server, inputs, results = written
    flip_payloads(server, 40)
    server.start()
    caller = Caller(server)

    damaged = set()
    for id, input in inputs.items():
        answer = caller.http.get(f"/v1/tasks/{id}")
        if answer.status == 503:
            assert answer.json["error"] == "StoreCorrupt"
            assert id in answer.json["message"]
            damaged.add(id)
        else:
            assert answer.status == 200
            assert answer.json["input"] == input
            assert answer.json.get("result") == results.get(id)
    assert len(damaged) > 20

    eventually(lambda: all(re.search(f"critical damaged: .*{id}", server.log) for id in damaged))

    for query in ("", "&queue=q", "&type=charge"):
        page = caller.http.get(f"/v1/tasks?limit=1000{query}").json
        assert {entry["id"] for entry in page["damaged"]} == damaged
        assert {entry["error"] for entry in page["damaged"]} == {"StoreCorrupt"}
        assert all(entry["id"] in entry["message"] for entry in page["damaged"])
        assert {execution["id"] for execution in page["executions"]} == set(inputs) - damaged
    seen = [
        entry["id"]
        for status in ("pending", "completed")
        for entry in caller.http.get(f"/v1/tasks?limit=1000&status={status}").json.get("damaged", [])
    ]
    assert sorted(seen) == sorted(damaged)

    claims = caller.http.post("/v1/claims", {"queues": ["q"], "limit": COUNT}).json["claims"]
    assert {claim["execution"]["id"] for claim in claims} == set(inputs) - set(results) - damaged
    for claim in claims:
        assert claim["execution"]["input"] == inputs[claim["execution"]["id"]]


def test_doctor_names_what_is_damaged(written, tmp_path):
    server, _, _ = written
    doctor = Command(tmp_path, ["--store", f"sqlite:{server.database}"])
    assert "none of them damaged" in doctor.ok("doctor", "--deep").out
    flip_payloads(server, 10)
    ended = doctor.run("doctor", "--deep")
    assert ended.code == 1
    assert "restore" in ended.out
    assert len(re.findall(r"^fail  damage", ended.out, re.MULTILINE)) >= 5
