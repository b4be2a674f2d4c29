"""Lists, claims and histories of large payloads take bounded memory, whatever their limit."""

import pytest

from caller import Caller
from command import Command

LARGE = "x" * 4_000_000
COUNT = 40
MIB = 1 << 20


def peak_bytes(server):
    """The server's peak memory so far."""
    return server.status_field("VmHWM") * 1024


@pytest.fixture
def loaded(start_server):
    server = start_server()
    caller = Caller(server)
    ids = [caller.create(queue="q", input=LARGE)["id"] for _ in range(COUNT)]
    # The restarted server has none of it in memory.
    server.restart()
    return server, Caller(server), ids


def test_a_list_of_large_tasks_is_read_page_by_page(loaded):
    server, caller, ids = loaded
    cursor, listed = "", []
    while cursor is not None:
        page = caller.http.get(f"/v1/tasks?limit=1000{cursor and '&cursor=' + cursor}")
        assert page.status == 200
        assert len(page.body) < 10 * MIB
        listed += [execution["id"] for execution in page.json["executions"]]
        cursor = page.json["next_cursor"]
    assert listed == list(reversed(ids))
    assert peak_bytes(server) < 160 * MIB  # all of them are 160 MB, and an answer has its bytes more than once


def test_claims_of_large_tasks_hand_out_what_fits_and_leave_the_rest_to_the_next(loaded):
    server, caller, ids = loaded
    claimed = []
    while len(claimed) < COUNT:
        answer = caller.http.post("/v1/claims", {"queues": ["q"], "limit": 100})
        claims = answer.json["claims"]
        assert claims, "what did not fit stays claimable"
        assert len(answer.body) < 10 * MIB
        claimed += [claim["execution"]["id"] for claim in claims]
        assert all(claim["attempt"] == 1 for claim in claims)
    assert claimed == ids
    assert peak_bytes(server) < 160 * MIB


def test_list_on_the_command_line_pages_on_by_itself(loaded, tmp_path):
    server, _, ids = loaded
    listed = Command(tmp_path, ["--url", f"http://127.0.0.1:{server.port}"]).ok("list", "--limit", "1000", "--json").json
    assert [execution["id"] for execution in listed["executions"]] == list(reversed(ids))
    assert listed["next_cursor"] is None


def test_a_batch_of_duplicates_of_large_results_gets_a_receipt_each(start_server):
    server = start_server()
    caller = Caller(server)
    created = caller.create("t", idempotency_key="k", queue="q")["id"]
    lease = caller.http.post("/v1/claims", {"queues": ["q"]}).json["claims"][0]["lease"]
    assert caller.http.post("/v1/claims/finish", {"outcomes": [{"lease": lease, "result": LARGE}]}).status == 200
    task = {"type": "t", "idempotency_key": "k", "queue": "q"}

    answer = caller.batch(*[task] * COUNT, {**task, "on_duplicate": "error"}, {**task, "idempotency_key": "new"})
    assert len(answer.body) < 10 * MIB
    *duplicates, refused, new = answer.json["receipts"]
    assert [receipt["execution"]["id"] for receipt in duplicates] == [created] * COUNT
    assert [receipt.get("result_omitted", False) for receipt in duplicates] == [False] * 2 + [True] * (COUNT - 2)
    assert duplicates[0]["execution"]["result"] == LARGE
    assert duplicates[-1]["execution"]["status"] == "completed" and "result" not in duplicates[-1]["execution"]
    assert refused["error"] == "TaskAlreadyCompleted" and refused["result_omitted"]
    assert new["created"] and "result_omitted" not in new
    assert peak_bytes(server) < 120 * MIB
    assert caller.http.post("/v1/tasks", task).json["execution"]["result"] == LARGE  # alone it has all of it
