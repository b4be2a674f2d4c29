"""Two server processes on one SQLite file behave like one."""

import statistics
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from caller import Caller
from client import RawConnection, Volley, request_bytes
from conftest import eventually
from server import SLOWDOWN

CALLERS = 64
ROUNDS = 100


@pytest.fixture
def two_servers(start_server, tmp_path):
    store = f"sqlite:{tmp_path / 'shared.db'}"
    return start_server("one", store=store), start_server("two", store=store)


def submission(key, input):
    return request_bytes("POST", "/v1/tasks", {"type": "charge", "idempotency_key": key, "input": input})


def test_one_of_64_callers_at_two_servers_creates_and_all_get_its_execution(two_servers):
    one, two = two_servers
    caller = Caller(one)
    with Volley([one.port, two.port] * (CALLERS // 2)) as volley:
        for turn in range(ROUNDS):
            answers = volley.fire([submission(f"order-{turn}", turn)] * CALLERS)

            assert Counter(answer.status for answer in answers) == {201: 1, 200: CALLERS - 1}, answers
            ids = {answer.json["execution"]["id"] for answer in answers}
            assert [e["id"] for e in caller.list(idempotency_key=f"order-{turn}")] == list(ids)


def test_one_of_64_callers_with_different_inputs_at_two_servers_creates(two_servers):
    one, two = two_servers
    with Volley([one.port, two.port] * (CALLERS // 2)) as volley:
        for turn in range(ROUNDS):
            answers = volley.fire([submission(f"order-{turn}", caller) for caller in range(CALLERS)])

            assert Counter(answer.status for answer in answers) == {201: 1, 409: CALLERS - 1}, answers
            winner = next(answer.json["execution"]["id"] for answer in answers if answer.status == 201)
            assert {a.json["existing_execution_id"] for a in answers if a.status == 409} == {winner}


def test_no_task_is_handed_out_at_both(two_servers):
    one, two = (Caller(server) for server in two_servers)
    one.batch(*[{"type": "t", "queue": "q"}] * 500)
    gate = threading.Barrier(8)

    def take_all(caller):
        gate.wait()
        taken = []
        while claims := caller.claim("q", limit=7):
            taken += [claim["execution"]["id"] for claim in claims]
        return taken

    with ThreadPoolExecutor(8) as pool:
        taken = sum(pool.map(take_all, [one, two] * 4), [])

    assert len(taken) == len(set(taken)) == 500


def wake_up_delays(submit_at, claim_at, tries=30):
    submitter, worker, delays = Caller(submit_at), Caller(claim_at), []
    with ThreadPoolExecutor(1) as pool:
        for _ in range(tries):
            waiting = pool.submit(lambda: (worker.claim_one("q"), time.monotonic()))
            eventually(lambda: waiting_claims(claim_at) == 1)
            sent = time.monotonic()
            task = submitter.create(queue="q")
            claim, woken = waiting.result(20)
            assert claim["execution"]["id"] == task["id"]
            delays.append((woken - sent) * 1000)
    return delays


def waiting_claims(server):
    return Caller(server).metric("hapax_waiting_claims")


def test_a_worker_waiting_at_one_server_is_woken_by_a_submission_at_the_other(two_servers):
    one, two = two_servers
    for attempt in (1, 2):
        delays_ms = wake_up_delays(submit_at=one, claim_at=two)
        print(f"median {statistics.median(delays_ms):.1f} ms, max {max(delays_ms):.1f} ms")
        if statistics.median(delays_ms) < 50 * SLOWDOWN and max(delays_ms) < 100 * SLOWDOWN:
            return
        # Try once more: the machine may have stalled.
    raise AssertionError(f"woken too late, in ms: {sorted(delays_ms)}")


def test_waiting_workers_cost_no_cpu(two_servers):
    one, two = two_servers
    poll = request_bytes("POST", "/v1/claims", {"worker": "w", "queues": ["idle"], "wait": "30s"})
    connections = [RawConnection(server.port) for server in two_servers for _ in range(100)]
    for connection in connections:
        connection.send(poll)
    eventually(lambda: waiting_claims(one) == waiting_claims(two) == 100)

    before = [server.cpu_seconds() for server in two_servers]
    start = time.monotonic()
    assert Caller(one).claim("also-idle", wait="2s") == []
    passed = time.monotonic() - start
    shares = [(server.cpu_seconds() - was) / passed for server, was in zip(two_servers, before)]

    print("share of a core while idle:", ", ".join(f"{share:.1%}" for share in shares))
    assert max(shares) < 0.04 * SLOWDOWN
    for connection in connections:
        connection.close()


def test_settings_put_at_one_are_used_at_the_other(two_servers):
    one, two = (Caller(server) for server in two_servers)
    one.put_queue("q", max_running=1)
    one.put_type("strict_one", identity="strict")
    eventually(lambda: two.http.get("/v1/queues/q").json.get("settings", {}).get("max_running") == 1)
    two.batch(*[{"type": "t", "queue": "q"}] * 3)

    assert len(two.claim("q", limit=3)) == 1
    assert one.claim("q", limit=3) == []
    eventually(lambda: two.submit("strict_one", input=1).json["match"])

    one.http.post("/v1/queues/q/pause")
    eventually(lambda: two.http.get("/v1/queues/q").json["settings"].get("paused"))


def test_a_rate_limit_holds_over_both(two_servers):
    one, two = (Caller(server) for server in two_servers)
    one.put_queue("q", rate_limit="1/hour", burst=4)
    eventually(lambda: two.http.get("/v1/queues/q").json["settings"].get("burst") == 4)
    one.batch(*[{"type": "t", "queue": "q"}] * 20)

    assert len(one.claim("q", limit=3)) == 3
    assert len(two.claim("q", limit=10)) == 1
    assert one.claim("q", limit=10) == two.claim("q", limit=10) == []


def test_a_task_whose_server_and_worker_died_is_handed_out_by_the_other(two_servers):
    one, two = two_servers
    task = Caller(one).create(queue="q")
    lost = Caller(one).claim_one("q", lease="1s")
    one.kill()

    claim = Caller(two).claim_one("q", wait="20s")

    assert (claim["execution"]["id"], claim["attempt"]) == (task["id"], 2)
    assert Caller(two).finish(lost["lease"])["error"] == "LeaseLost"


def test_a_finish_at_one_wakes_who_waits_for_the_result_at_the_other(two_servers):
    one, two = (Caller(server) for server in two_servers)
    task = one.create(queue="q")
    lease = one.claim_one("q")["lease"]
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(two.result, task["id"], "20s")
        started = time.monotonic()
        one.finish(lease, 42)
        answer = waiting.result(30)

    assert answer.json["result"] == 42
    assert time.monotonic() - started < 5 * SLOWDOWN
