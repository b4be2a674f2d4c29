"""The limits, the retention and the listing of queues."""

import time
from concurrent.futures import ThreadPoolExecutor

from caller import Caller
from conftest import eventually
from server import SLOWDOWN

# ---- the limits of queues


def test_a_rate_limit_lets_the_burst_go_and_then_the_rate(caller, fresh):
    queue = fresh("queue")
    caller.put_queue(queue, rate_limit="20/sec", burst=5)
    caller.batch(*[{"type": "t", "queue": queue}] * 25)
    started = time.monotonic()
    times = []
    while len(times) < 25:
        claims = caller.claim(queue, limit=25, wait="5s")
        assert claims
        times += [time.monotonic() - started] * len(claims)

    assert sum(at < 0.04 for at in times) <= 6
    assert 0.8 <= times[-1] < 5 * SLOWDOWN  # 20 beyond the burst, at 20 a second: a second, less the clock's graininess


def test_no_more_tasks_run_than_the_queue_allows(caller, fresh):
    queue = fresh("queue")
    caller.put_queue(queue, max_running=2)
    caller.batch(*[{"type": "t", "queue": queue}] * 5)

    first = caller.claim(queue, limit=5)
    assert len(first) == 2
    assert caller.claim(queue, limit=5) == []
    caller.finish(first[0]["lease"])

    assert len(caller.claim(queue, limit=5, wait="5s")) == 1


def test_tasks_with_one_concurrency_key_run_one_at_a_time(caller, fresh):
    queue = fresh("queue")
    for key in ("a", "a", "b", None):
        caller.create(queue=queue, **({"concurrency_key": key} if key else {}))

    first = caller.claim(queue, limit=10)
    assert sorted(claim["execution"].get("concurrency_key") or "" for claim in first) == ["", "a", "b"]
    assert caller.claim(queue, limit=10) == []
    caller.finish(next(c["lease"] for c in first if c["execution"].get("concurrency_key") == "a"))

    assert caller.claim_one(queue)["execution"]["concurrency_key"] == "a"


def test_a_queue_may_allow_more_per_concurrency_key(caller, fresh):
    queue = fresh("queue")
    caller.put_queue(queue, concurrency_limit=2)
    for _ in range(3):
        caller.create(queue=queue, concurrency_key="k")

    assert len(caller.claim(queue, limit=10)) == 2


def test_a_paused_queue_hands_out_nothing_until_it_is_unpaused(shared_server, caller, fresh):
    queue = fresh("queue")
    assert caller.http.post(f"/v1/queues/{queue}/pause").status == 200
    task = caller.create(queue=queue)
    assert caller.claim(queue, wait="100ms") == []
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(Caller(shared_server).claim_one, queue, "20s")
        assert caller.http.post(f"/v1/queues/{queue}/unpause").status == 200
        assert waiting.result(20)["execution"]["id"] == task["id"]


# ---- retention and listing


def test_with_no_retention_a_task_is_deleted_as_it_closes(shared_server, caller, fresh):
    queue = fresh("queue")
    caller.put_queue(queue, retention="0")
    task = caller.create(queue=queue)
    claim = caller.claim_one(queue)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(Caller(shared_server).result, task["id"], "20s")
        eventually(lambda: caller.metric("hapax_waiting_results") >= 1)
        assert caller.finish(claim["lease"], {"n": 1})["ok"]
        assert waiting.result(20).json["result"] == {"n": 1}

    assert caller.http.get(f"/v1/tasks/{task['id']}").status == 404
    assert caller.list(queue=queue) == []


def test_a_queue_that_was_used_stays_known_when_it_is_empty(caller, fresh):
    queue = fresh("queue")
    assert caller.http.get(f"/v1/queues/{queue}").json["known"] is False
    caller.create(queue=queue)
    assert caller.finish(caller.claim_one(queue)["lease"])["ok"]
    view = caller.http.get(f"/v1/queues/{queue}").json
    assert (view["known"], view["pending"], view["running"]) == (True, 0, 0)
    assert queue in [each["name"] for each in caller.http.get("/v1/queues").json["queues"]]


def test_a_raised_rate_limit_counts_at_once(caller, fresh):
    queue = fresh("queue")
    caller.put_queue(queue, rate_limit="2/day")
    for _ in range(10):
        caller.create(queue=queue)
    assert len(caller.claim(queue, limit=10)) == 2
    assert caller.claim(queue, limit=10) == []
    caller.put_queue(queue, rate_limit="1000/sec")
    assert len(caller.claim(queue, limit=10, wait="5s")) == 8


def test_cleanup_deletes_what_is_past_its_retention(start_server, fresh):
    caller = Caller(start_server(config='[cleanup]\ninterval = "100ms"\n[queues.q]\nretention = "50ms"\n'))
    task = caller.create(queue="q")
    caller.finish(caller.claim_one("q")["lease"])

    eventually(lambda: caller.http.get(f"/v1/tasks/{task['id']}").status == 404)


def test_listing_is_newest_first_filtered_and_paged(caller, fresh):
    queue, type = fresh("queue"), fresh("type")
    tasks = [caller.create(type if n % 2 else "other", queue=queue, input=n) for n in range(7)]
    caller.cancel(tasks[0]["id"])
    newest_first = [task["id"] for task in reversed(tasks)]

    pages, cursor = [], ""
    while cursor is not None:
        page = caller.http.get(f"/v1/tasks?queue={queue}&limit=3" + (f"&cursor={cursor}" if cursor else "")).json
        pages.append([execution["id"] for execution in page["executions"]])
        cursor = page["next_cursor"]

    assert sum(pages, []) == newest_first
    assert [len(page) for page in pages if page] == [3, 3, 1]
    assert [e["id"] for e in caller.list(queue=queue, status="cancelled")] == [tasks[0]["id"]]
    assert len(caller.list(queue=queue, type=type)) == 3
    assert caller.http.get("/v1/tasks?status=nonsense").status == 400
    assert caller.http.get("/v1/tasks?limit=0").status == 400
    assert caller.http.get("/v1/tasks?cursor=nonsense").status == 400
    assert caller.http.get("/v1/tasks?colour=red").status == 400
