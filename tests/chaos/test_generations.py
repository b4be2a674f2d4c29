"""Workers that share a queue under load, each with types that the other lacks, both killed at random: two generations
of a program, as in a deploy that never ends. Each gets only what it knows, no task fails for lack of a worker, and only
killed workers lose attempts."""

import collections
import os
import random
import subprocess
import threading
import time

from caller import Caller
from scenario import CLOSED, seed
from server import SLOWDOWN, Server, clean_environment

CPP_WORKER = [os.environ["HAPAX_GENERATION_WORKER"]]  # which has the workflow `order`
GENERATIONS = {"old": (CPP_WORKER, ("charge", "ship")), "new": (CPP_WORKER, ("charge", "fraud_check"))}
RESULTS = {"order": "charge fraud_check ship "}
SUBMITTERS, PAUSE_S = 4, 0.03


class Workers:
    """Two workers of each kind. Every process has its own name."""

    def __init__(self, kinds, directory, port):
        self.kinds, self.directory, self.port = kinds, directory, port
        self.lives = collections.Counter()
        self.running = {}  # place: (name, process)
        self.killed = set()
        for place in [(kind, n) for kind in kinds for n in range(2)]:
            self.start(place)

    def start(self, place):
        self.lives[place] += 1
        name = f"{place[0]}-{place[1]}-{self.lives[place]}"
        program, types = self.kinds[place[0]]
        server = f"http://127.0.0.1:{self.port}" if program is CPP_WORKER else str(self.port)
        command = [*program, server, name, *types]
        log = open(self.directory / f"{name}.log", "wb")
        process = subprocess.Popen(command, env=clean_environment(self.directory), stdin=subprocess.DEVNULL,
                                   stdout=log, stderr=log)
        log.close()
        self.running[place] = (name, process)

    def end(self, place, gently):
        name, process = self.running[place]
        if gently:
            process.terminate()
            assert process.wait(30 * SLOWDOWN) == 0, f"{name} did not drain"
        else:
            self.killed.add(name)
            process.kill()
            process.wait()

    def stop(self):
        for _, process in self.running.values():
            process.kill()
            process.wait()


def submit_until(end, caller, chance, kinds, submitted):
    types = sorted({type for _, types in kinds.values() for type in types})
    workflows = ["order"]
    n = 0
    while time.monotonic() < end:
        n += 1
        if chance.random() < 0.25:
            type = chance.choice(workflows)
            workflow_id = f"{type}-{chance.randrange(2**60)}"
            answer = caller.http.post("/v1/workflows", {"type": type, "queue": "orders", "workflow_id": workflow_id})
        else:
            task = {"type": chance.choice(types), "queue": "orders", "priority": chance.randrange(3)}
            answer = caller.http.post("/v1/tasks", task)
        assert answer.status == 201, answer
        submitted.append(answer.json["execution"]["id"])
        threading.Event().wait(chance.uniform(0, 2 * PAUSE_S))  # load, not a wait for a state


def everything(caller):
    """All tasks and workflows, steps with their attempts."""
    executions = []
    for kind in ("tasks", "workflows"):
        cursor = None
        while True:
            answer = caller.http.get(f"/v1/{kind}?limit=1000" + (f"&cursor={cursor}" if cursor else ""))
            assert answer.status == 200, answer
            executions += answer.json["executions"]
            cursor = answer.json["next_cursor"]
            if cursor is None:
                break
    return executions


def drained(caller, deadline_s):
    end = time.monotonic() + deadline_s
    while True:
        executions = everything(caller)
        still_open = [execution for execution in executions if execution["status"] not in CLOSED]
        if not still_open:
            return executions
        assert time.monotonic() < end, f"{len(still_open)} are never done, the first is {still_open[0]}"
        caller.claim("nothing", wait="200ms")


def test_nothing_fails_for_want_of_a_worker_that_knows_it(tmp_path):
    kinds = GENERATIONS
    seconds = float(os.environ.get("HAPAX_CHAOS_SECONDS") or 12)
    chance = random.Random(seed())
    server = Server(tmp_path / "server", arguments=["--log-level", "warn"]).start()
    workers = Workers(kinds, tmp_path, server.port)
    submitted, ends = [], collections.Counter()
    try:
        end = time.monotonic() + seconds
        clients = [
            threading.Thread(
                target=submit_until, args=(end, Caller(server), random.Random(chance.random()), kinds, submitted)
            )
            for _ in range(SUBMITTERS)
        ]
        for client in clients:
            client.start()
        while time.monotonic() < end:
            threading.Event().wait(chance.uniform(0.1, 1.0))  # a random moment
            place, gently = chance.choice(list(workers.running)), chance.random() < 0.5
            workers.end(place, gently)
            ends[(place[0], "drained" if gently else "killed")] += 1
            workers.start(place)
        for client in clients:
            client.join()
        executions = drained(Caller(server), 120 * SLOWDOWN)
    finally:
        workers.stop()
        server.kill()

    print(len(submitted), "submitted,", len(executions), "executions,", dict(ends))
    assert len({execution["id"] for execution in executions} & set(submitted)) == len(submitted)
    assert len(ends) >= 3, "too little happened to mean anything"
    lost = collections.Counter()
    for execution in executions:
        assert execution["status"] == "completed", execution
        if execution["kind"] == "workflow":
            assert execution["result"] == RESULTS[execution["type"]], execution
            continue
        assert execution["result"] == execution["type"], execution
        assert execution["attempt"] == 1 + len(execution["attempts"]), execution
        for attempt in execution["attempts"]:
            assert attempt["error"]["type"] == "LeaseExpired", execution
            assert attempt["worker"] in workers.killed, f"an attempt was lost to a worker that lived on: {execution}"
            lost[attempt["worker"].split("-")[0]] += 1
    print("attempts that a killed worker took along:", dict(lost))
    for log in tmp_path.glob("*.log"):
        assert "has no task" not in log.read_text(), f"{log.name}: it was handed what it does not know"
