"""Three servers on one PostgreSQL fire a schedule of every second while they are killed at random moments."""

import os
import random
import threading
import time
from datetime import datetime, timedelta, timezone

from scenario import seed
from server import SLOWDOWN, Server

ACTIVITY = {
    "workflow": {"type": "tick"},
    "trigger": {"cron": {"expression": "* * * * * *", "misfire_policy": "catchup", "catchup_limit": 1000, "misfire_grace": "5s"}},
}
STARTED = ("ran", "caught_up")


def all_pages(server, path, member):
    found, cursor = [], None
    while True:
        page = server.client.get(path + (f"&cursor={cursor}" if cursor else "")).json
        found += page[member]
        cursor = page["next_cursor"]
        if not cursor:
            return found


def ledger(server):
    return all_pages(server, "/v1/activities/tick/runs?limit=500", "runs")


def workflow_ids(server):
    return [run["workflow_id"] for run in all_pages(server, "/v1/workflows?limit=500", "executions")]


def seconds_between(first, last):
    count = round((last - first) / timedelta(seconds=1)) + 1
    return [first + timedelta(seconds=n) for n in range(count)]


def instant(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def test_every_second_is_one_workflow_and_one_row_however_often_servers_die(tmp_path, new_postgres):
    seconds = float(os.environ.get("HAPAX_CHAOS_SECONDS") or 15)
    postgres = new_postgres().create().start()
    postgres.ask("CREATE DATABASE hapax")
    servers = [Server(tmp_path / f"server-{n}", store=postgres.url(), arguments=["--log-level", "warn"]) for n in range(3)]
    chance, kills = random.Random(seed()), 0
    try:
        for server in servers:
            server.start(deadline_s=60)
        assert servers[0].client.put("/v1/activities/tick", ACTIVITY).status == 201
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            threading.Event().wait(chance.uniform(0.05, 0.6))  # a random moment, not a wait for a state
            victim = chance.choice(servers)
            victim.kill()
            kills += 1
            threading.Event().wait(chance.uniform(0, 0.4))
            victim.start(deadline_s=60)

        # Another server carries out the decision of a dead one within five seconds.
        last_kill = datetime.fromtimestamp(float(postgres.ask("SELECT extract(epoch FROM now())")), timezone.utc)
        deadline = time.monotonic() + 30 * SLOWDOWN
        while True:
            runs = ledger(servers[0])
            told = {instant(run["scheduled_for"]) for run in runs}
            expected = {at for at in seconds_between(min(told), last_kill.replace(microsecond=0))}
            started = {run["workflow_id"] for run in runs if run["disposition"] in STARTED and instant(run["scheduled_for"]) <= last_kill}
            if expected <= told and started <= set(workflow_ids(servers[0])):
                break
            assert time.monotonic() < deadline, f"never told: {sorted(expected - told)}"
            threading.Event().wait(0.2)

        servers[0].client.post("/v1/activities/tick/pause")
        runs, workflows = settled(servers[0])
    finally:
        for server in servers:
            server.kill()

    print(f"{len(runs)} firings, {kills} kills")
    assert kills > 5, "too little happened to mean anything"
    rows = [run["scheduled_for"] for run in runs]
    assert len(rows) == len(set(rows)), "a firing has two rows"
    assert sorted(map(instant, rows)) == seconds_between(min(map(instant, rows)), max(map(instant, rows))), "a firing has no row"
    assert {run["disposition"] for run in runs} <= set(STARTED), "a firing was skipped"
    assert sorted(workflows) == sorted(run["workflow_id"] for run in runs), "a firing has no workflow, or a workflow has no firing"


def settled(server, deadline_s=30):
    """The ledger and the workflows once they no longer change, because the activity is paused."""
    deadline = time.monotonic() + deadline_s * SLOWDOWN
    while True:
        before = ledger(server), workflow_ids(server)
        threading.Event().wait(6)  # longer than the lease of a decision
        after = ledger(server), workflow_ids(server)
        if before == after:
            return after
        assert time.monotonic() < deadline
