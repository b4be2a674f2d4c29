"""100,000 sleeping workflows: the server does nothing for them and keeps nothing in memory."""

import time
from concurrent.futures import ThreadPoolExecutor

from caller import Caller

SLEEPERS = 100_000
BATCH = 1000
FAR = "2099-01-01T00:00:00Z"
IDLE_S = 20


def put_to_sleep(caller, first):
    with ThreadPoolExecutor(16) as pool:  # together they share the store's commits
        begin = lambda n: caller.begin("sleeper", f"sleeper-{n}", queue="sleepers")  # noqa: E731
        list(pool.map(begin, range(first, first + BATCH)))
    body = {"worker": "w", "queues": ["sleepers"], "kinds": ["workflow"], "limit": BATCH}
    claims = caller.http.post("/v1/claims", body).json["claims"]
    assert len(claims) == BATCH
    sleep = [{"step": 1, "kind": "sleep", "until": FAR}]
    turns = [{"lease": c["lease"], "seen": 0, "commands": sleep, "end": {"kind": "suspended"}} for c in claims]
    answer = caller.http.post("/v1/claims/turns", {"turns": turns})
    assert answer.status == 200 and all(turn.get("status") == "suspended" for turn in answer.json["turns"])


def test_sleeping_workflows_cost_no_cpu_and_no_memory(start_server):
    server = start_server()
    caller = Caller(server)
    put_to_sleep(caller, 0)
    few = server.status_field("VmRSS")
    for first in range(BATCH, SLEEPERS, BATCH):
        put_to_sleep(caller, first)
    many = server.status_field("VmRSS")
    server.restart()
    assert caller.workflow(f"sleeper-{SLEEPERS - 1}")["status"] == "suspended"
    fresh = server.status_field("VmRSS")

    # A waiting worker, as in production.
    before = server.cpu_seconds()
    end = time.monotonic() + IDLE_S
    while (left := end - time.monotonic()) > 0:
        body = {"queues": ["sleepers"], "kinds": ["task", "workflow"], "wait": f"{max(1, int(left))}s"}
        assert caller.http.post("/v1/claims", body).json["claims"] == []
    spent = server.cpu_seconds() - before

    print(f"RSS {few} kB with 1,000, {many} kB with {SLEEPERS}, {fresh} kB after a restart; CPU {spent} s in {IDLE_S} s")
    assert spent < 0.02 * IDLE_S, "an idle server is idle"
    # The page cache of the store is bounded; beyond that nothing grows with the number of sleepers.
    assert many - few < 64 * 1024 and fresh - few < 32 * 1024

    caller.signal("sleeper-1", "wake")  # and it still works
    assert caller.cancel_workflow("sleeper-2").json["changed"] is True
