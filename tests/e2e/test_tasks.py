"""The life of a task: claimed in order, run under a lease, retried, timed out, and its result."""

import statistics
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from caller import Caller
from conftest import eventually
from server import SLOWDOWN


def claimed_ids(claims):
    return [claim["execution"]["id"] for claim in claims]


# ---- claiming


def test_claims_go_by_priority_then_run_at_then_id(caller, fresh):
    queue = fresh("queue")
    a = caller.create(queue=queue)
    b = caller.create(queue=queue, priority=5)
    c = caller.create(queue=queue, run_at="2020-01-01T00:00:00Z")
    d = caller.create(queue=queue, priority=5)
    e = caller.create(queue=queue, priority=-1)
    # Within one batch and millisecond, ids still rise in order.
    receipts = caller.batch(*[{"type": "t", "queue": queue}] * 2).json["receipts"]
    f, g = (receipt["execution"] for receipt in receipts)

    claims = caller.claim(queue, limit=10)

    assert claimed_ids(claims) == [x["id"] for x in (b, d, c, a, f, g, e)]


def test_a_claim_takes_at_most_its_limit_and_only_from_its_queues(caller, fresh):
    here, there, elsewhere = fresh("queue"), fresh("queue"), fresh("queue")
    for queue in (here, there, elsewhere):
        for _ in range(3):
            caller.create(queue=queue)

    first = caller.claim(here, there, limit=4)
    rest = caller.claim(here, there, limit=100)

    assert (len(first), len(rest)) == (4, 2)
    assert {claim["execution"]["queue"] for claim in first + rest} == {here, there}


def test_a_claim_tells_the_worker_all_it_needs(caller, fresh):
    queue = fresh("queue")
    task = caller.create("resize", queue=queue, input={"w": 1})

    claim = caller.claim_one(queue, lease="30s")

    assert claim["attempt"] == 1
    assert claim["execution"]["type"] == "resize"
    assert claim["execution"]["input"] == {"w": 1}
    assert claim["execution"]["status"] == "running"
    assert claim["lease"] and claim["lease_expires_at"] > task["created_at"]


def test_the_effect_key_is_the_same_over_all_attempts(caller, fresh):
    queue = fresh("queue")
    caller.create(queue=queue, retry={"initial": "1ms"})
    first = caller.claim_one(queue)
    caller.fail(first["lease"])

    second = caller.claim_one(queue)

    assert second["attempt"] == 2
    assert first["effect_key"] == second["effect_key"] != ""


def test_a_delayed_task_is_not_claimed_before_its_time(caller, fresh):
    queue = fresh("queue")
    started = time.monotonic()
    task = caller.create(queue=queue, delay="300ms")
    assert caller.claim(queue) == []

    claim = caller.claim_one(queue, wait="10s")

    assert claim["execution"]["id"] == task["id"]
    assert time.monotonic() - started >= 0.29


def test_a_long_poll_with_nothing_to_do_ends_with_nothing(caller, fresh):
    started = time.monotonic()

    assert caller.claim(fresh("queue"), wait="200ms") == []

    assert 0.19 <= time.monotonic() - started < 5 * SLOWDOWN


def test_a_waiting_worker_is_woken_at_once(shared_server, caller, fresh):
    queue, worker = fresh("queue"), Caller(shared_server)
    delays = []
    with ThreadPoolExecutor(1) as pool:
        for _ in range(30):
            waiting = pool.submit(lambda: (worker.claim_one(queue), time.monotonic()))
            eventually(lambda: caller.metric("hapax_waiting_claims") >= 1)
            caller.create(queue=queue)
            submitted = time.monotonic()
            delays.append(waiting.result(20)[1] - submitted)

    assert statistics.median(delays) < 0.05 * SLOWDOWN, delays


def test_one_task_wakes_one_of_many_waiting_workers(shared_server, caller, fresh):
    queue = fresh("queue")
    workers = [Caller(shared_server) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(worker.claim, queue, wait="2s") for worker in workers]
        eventually(lambda: caller.metric("hapax_waiting_claims") >= 8)
        caller.create(queue=queue)
        assert sorted(len(future.result(20)) for future in waiting) == [0] * 7 + [1]


# ---- leases


def test_a_finish_closes_the_task_and_repeating_it_is_answered_again(caller, fresh):
    queue = fresh("queue")
    task = caller.create(queue=queue)
    lease = caller.claim_one(queue)["lease"]

    assert caller.finish(lease, {"n": 1})["ok"] is True
    assert caller.finish(lease, {"n": 1})["ok"] is True

    assert caller.task(task["id"])["result"] == {"n": 1}


def test_an_expired_lease_makes_the_task_claimable_and_fences_the_old_worker(caller, fresh):
    queue = fresh("queue")
    task = caller.create(queue=queue)
    stale = caller.claim_one(queue, lease="1s")

    current = caller.claim_one(queue, wait="10s")

    assert (current["execution"]["id"], current["attempt"]) == (task["id"], 2)
    refused = caller.finish(stale["lease"], "stale")
    assert refused["error"] == "LeaseLost" and "ok" not in refused
    assert caller.heartbeat(stale["lease"])["ok"] is False
    assert caller.fail(stale["lease"])["error"] == "LeaseLost"
    assert caller.finish(current["lease"], "current")["ok"]
    execution = caller.task(task["id"])
    assert execution["result"] == "current"
    assert [(a["attempt"], a["error"]["type"]) for a in execution["attempts"]] == [(1, "LeaseExpired")]


def test_a_heartbeat_keeps_the_lease(caller, fresh):
    queue = fresh("queue")
    caller.create(queue=queue)
    claim = caller.claim_one(queue, lease="1s")

    beat = caller.heartbeat(claim["lease"], "30s")

    assert beat["ok"] is True and beat["cancel_requested"] is False
    assert caller.claim(queue, wait="1200ms") == []
    assert caller.finish(claim["lease"])["ok"]


def test_a_task_that_is_given_back_costs_no_attempt_and_goes_to_a_waiting_worker(caller, fresh):
    queue = fresh("queue")
    task = caller.create(queue=queue, max_attempts=1)
    for _ in range(5):
        claim = caller.claim_one(queue)
        assert claim["attempt"] == 1
        with ThreadPoolExecutor(1) as others:
            waiting = others.submit(caller.claim, queue, wait="20s", worker="other")
            (returned, lost) = caller.give_back(claim["lease"], "nonsense")
            assert returned == {"lease": claim["lease"], "ok": True, "cancel_requested": False}
            assert lost == {"lease": "nonsense", "ok": False, "cancel_requested": False}
            started = time.monotonic()
            (taken,) = waiting.result()
            assert time.monotonic() - started < 10 and taken["attempt"] == 1
        assert caller.give_back(claim["lease"])[0]["ok"] is False
        assert caller.finish(claim["lease"])["error"] == "LeaseLost"
        caller.give_back(taken["lease"])
    assert caller.task(task["id"])["status"] == "pending" and caller.task(task["id"])["attempt"] == 0
    assert caller.finish(caller.claim_one(queue)["lease"], "done")["ok"]


def test_giving_back_closes_what_was_to_be_cancelled(caller, fresh):
    queue = fresh("queue")
    task = caller.create(queue=queue)
    lease = caller.claim_one(queue)["lease"]
    caller.cancel(task["id"])
    assert caller.give_back(lease)[0] == {"lease": lease, "ok": True, "cancel_requested": True}
    assert caller.task(task["id"])["status"] == "cancelled"


def test_tokens_that_were_never_given_out_are_lost_leases(caller, fresh):
    queue = fresh("queue")
    caller.create(queue=queue)
    lease = caller.claim_one(queue)["lease"]
    forged = lease[:-4] + ("AAAA" if lease[-4:] != "AAAA" else "BBBB")

    assert caller.finish(forged, 1)["error"] == "LeaseLost"

    assert caller.finish(lease, 2)["ok"]


def test_a_batch_of_outcomes_is_answered_one_by_one_in_order(caller, fresh):
    queue = fresh("queue")
    for _ in range(3):
        caller.create(queue=queue)
    leases = [claim["lease"] for claim in caller.claim(queue, limit=3)]

    outcomes = caller.http.post(
        "/v1/claims/finish",
        {
            "outcomes": [
                {"lease": leases[0], "result": 1},
                {"lease": leases[1][:-4] + "zzzz"},
                {"lease": leases[2], "error": {"type": "Boom", "message": "x", "retryable": False}},
            ]
        },
    ).json["outcomes"]

    assert [outcome.get("ok") for outcome in outcomes] == [True, None, True]
    assert outcomes[1]["error"] == "LeaseLost"


# ---- retries, timeouts, deadlines


def test_a_failed_attempt_is_retried_until_none_is_left_and_every_error_is_kept(caller, fresh):
    queue = fresh("queue")
    task = caller.create(queue=queue, max_attempts=3, retry={"initial": "1ms", "factor": 1, "max": "5ms"})
    for attempt in (1, 2, 3):
        claim = caller.claim_one(queue, worker=f"worker-{attempt}")
        assert claim["attempt"] == attempt
        assert caller.fail(claim["lease"], message=f"failure {attempt}")["ok"]

    execution = caller.task(task["id"])
    assert execution["status"] == "failed"
    assert execution["error"] == {"type": "Boom", "message": "failure 3"}
    assert [(a["attempt"], a["error"]["message"], a["worker"]) for a in execution["attempts"]] == [
        (n, f"failure {n}", f"worker-{n}") for n in (1, 2, 3)
    ]
    assert caller.claim(queue) == []


def test_a_failure_that_is_not_retryable_is_final(caller, fresh):
    queue = fresh("queue")
    task = caller.create(queue=queue, max_attempts=5)

    caller.fail(caller.claim_one(queue)["lease"], retryable=False)

    assert caller.task(task["id"])["status"] == "failed"


def test_a_repeated_failure_report_counts_once(caller, fresh):
    queue = fresh("queue")
    task = caller.create(queue=queue, max_attempts=2, retry={"initial": "1ms", "max": "1ms"})
    first = caller.claim_one(queue)
    caller.fail(first["lease"])
    second = caller.claim_one(queue)

    assert caller.fail(first["lease"])["ok"]

    assert caller.task(task["id"])["status"] == "running"
    assert caller.finish(second["lease"])["ok"]


def test_the_pause_before_a_retry_stays_within_the_backoff(caller, fresh):
    queue = fresh("queue")
    task = caller.create(queue=queue, retry={"initial": "10m", "factor": 2, "max": "1h"})
    before = caller.task(task["id"])["created_at"]

    caller.fail(caller.claim_one(queue)["lease"])

    execution = caller.task(task["id"])
    assert execution["status"] == "pending"
    assert before <= execution["run_at"]
    assert caller.claim(queue) == [] or execution["run_at"] <= before


def test_an_attempt_that_takes_too_long_is_taken_away_and_the_last_one_times_out(caller, fresh):
    queue = fresh("queue")
    task = caller.create(queue=queue, timeout="100ms", max_attempts=2, retry={"initial": "1ms", "max": "1ms"})
    first = caller.claim_one(queue)
    second = caller.claim_one(queue, wait="10s")
    assert second["attempt"] == 2
    assert caller.finish(first["lease"])["error"] == "LeaseLost"

    execution = caller.closed(task["id"])

    assert execution["status"] == "timed_out"
    assert [a["error"]["type"] for a in execution["attempts"]] == ["AttemptTimeout"] * 2
    assert caller.finish(second["lease"])["error"] == "LeaseLost"


def test_past_its_deadline_a_task_is_timed_out_whether_it_runs_or_not(caller, fresh):
    queue = fresh("queue")
    waiting = caller.create(queue=queue, deadline="1s", delay="1h")
    running = caller.create(queue=queue, deadline="1s")
    lease = caller.claim_one(queue)["lease"]

    assert caller.closed(waiting["id"])["status"] == "timed_out"
    assert caller.closed(running["id"])["status"] == "timed_out"

    assert caller.finish(lease)["error"] == "LeaseLost"
    assert caller.task(running["id"])["error"]["type"] == "DeadlineExceeded"


# ---- results


def test_the_result_can_be_waited_for(shared_server, caller, fresh):
    queue = fresh("queue")
    task = caller.create(queue=queue)
    assert caller.result(task["id"]).status == 202
    lease = caller.claim_one(queue)["lease"]
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(Caller(shared_server).result, task["id"], "20s")
        started = time.monotonic()
        caller.finish(lease, [1, 2])
        answer = waiting.result(20)

    assert time.monotonic() - started < 5 * SLOWDOWN
    assert (answer.status, answer.json["status"], answer.json["result"]) == (200, "completed", [1, 2])


def test_a_wait_for_a_result_ends_without_one(caller, fresh):
    task = caller.create(queue=fresh("queue"))

    answer = caller.result(task["id"], wait="100ms")

    assert (answer.status, answer.json["status"]) == (202, "pending")


@pytest.mark.parametrize("result", [None, 0, "", [], {}, False, {"big": 9007199254740993}, "ünï\u0000"])
def test_any_json_value_is_a_result(caller, fresh, result):
    queue = fresh("queue")
    task = caller.create(queue=queue)

    caller.finish(caller.claim_one(queue)["lease"], result)

    assert caller.task(task["id"])["result"] == result
    assert caller.result(task["id"]).json["result"] == result


def test_nothing_returned_is_not_null(caller, fresh):
    queue = fresh("queue")
    task = caller.create(queue=queue)

    caller.finish(caller.claim_one(queue)["lease"])

    assert "result" not in caller.task(task["id"])
    assert "result" not in caller.result(task["id"]).json


# ---- submit and run here


def test_a_submission_that_runs_here_gets_a_claim(caller, fresh):
    queue, key = fresh("queue"), fresh("key")
    here = {"worker": "here", "lease": "30s"}
    first = caller.submit(queue=queue, idempotency_key=key, input={"n": 1}, run_here=here).json

    claim = first["claim"]
    assert first["created"] and first["execution"]["status"] == "running"
    assert claim["attempt"] == 1 and claim["effect_key"] == first["execution"]["id"]
    assert claim["execution"]["input"] == {"n": 1} and claim["lease_expires_at"]
    assert caller.claim(queue) == []
    again = caller.submit(queue=queue, idempotency_key=key, input={"n": 1}, id=first["execution"]["id"], run_here=here)
    assert again.json["claim"]["lease"] == claim["lease"], "the lost answer is repeated"
    other = caller.submit(queue=queue, idempotency_key=key, input={"n": 1}, run_here=here)
    assert "claim" not in other.json and other.json["execution"]["status"] == "running"

    done = caller.http.post("/v1/claims/finish", {"outcomes": [{"lease": claim["lease"], "result": 7}]})
    assert done.json["outcomes"][0]["ok"]
    late = caller.submit(queue=queue, idempotency_key=key, input={"n": 1}, run_here=here)
    assert late.status == 200 and "claim" not in late.json and late.json["execution"]["result"] == 7


def test_what_a_dead_runner_left_is_run_here_as_attempt_two(caller, fresh):
    queue, key = fresh("queue"), fresh("key")
    caller.submit(queue=queue, idempotency_key=key, run_here={"worker": "dead", "lease": "1s"})

    taken = eventually(
        lambda: caller.submit(queue=queue, idempotency_key=key, run_here={"worker": "next"}).json.get("claim")
    )

    assert taken["attempt"] == 2
