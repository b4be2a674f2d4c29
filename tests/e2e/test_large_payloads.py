"""Lists, claims and histories of large payloads take bounded memory, whatever the limit asks for."""

import pytest

from caller import Caller
from command import Command

LARGE = "x" * 4_000_000
COUNT = 40
MIB = 1 << 20


def peak_bytes(server):
    """The most memory that the server has had so far."""
    return server.status_field("VmHWM") * 1024


@pytest.fixture
def loaded(start_server):
    server = start_server()
    caller = Caller(server)
    ids = [caller.create(queue="q", input=LARGE)["id"] for _ in range(COUNT)]
    # The next life has not had any of it in memory.
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
