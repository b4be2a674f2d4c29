"""Workers of several kinds share a queue under load, each with types that the other lacks, and all are killed or ended
at random. Each must get only what it knows, no task may fail for lack of a worker, and only killed workers lose
attempts."""

import collections
import os
import random
import subprocess
import threading
import time

from caller import Caller
from scenario import CLOSED, seed
from server import SLOWDOWN, Server, clean_environment

SUBMITTERS, PAUSE_S = 4, 0.03


class Workers:
    """Two workers of each kind, `kinds` being by name the start of a command and the types of tasks that it knows. The
    command gets the server's port, a name of its own for each process, and the types."""

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
        command = [*program, str(self.port), name, *types]
        log = open(self.directory / f"{name}.log", "wb")
        process = subprocess.Popen(command, env=clean_environment(self.directory), stdin=subprocess.DEVNULL,
                                   stdout=log, stderr=log)
        log.close()
        self.running[place] = (name, process)

    def end(self, place, gently):
        name, process = self.running[place]
        assert process.poll() is None, f"{name} ended by itself: {(self.directory / f'{name}.log').read_text()}"
        if gently:
            self.await_working(name)
            process.terminate()
            code = process.wait(30 * SLOWDOWN)
            assert code == 0, f"{name} ended with {code}: {(self.directory / f'{name}.log').read_text()}"
        else:
            self.killed.add(name)
            process.kill()
            process.wait()

    def await_working(self, name):
        """Until it says so: a signal before that ends it at once."""
        end = time.monotonic() + 30 * SLOWDOWN
        while "working" not in (self.directory / f"{name}.log").read_text():
            assert time.monotonic() < end, f"{name} does not begin"
            threading.Event().wait(0.01)

    def stop(self):
        for _, process in self.running.values():
            process.kill()
            process.wait()


def submit_until(end, caller, chance, types, workflows, submitted):
    while time.monotonic() < end:
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


def run(tmp_path, kinds, results):
    """`results` are those of the workflows, by type."""
    seconds = float(os.environ.get("HAPAX_CHAOS_SECONDS") or 12)
    chance = random.Random(seed())
    server = Server(tmp_path / "server", arguments=["--log-level", "warn"]).start()
    workers = Workers(kinds, tmp_path, server.port)
    submitted, ends = [], collections.Counter()
    try:
        end = time.monotonic() + seconds
        types = sorted({type for _, types in kinds.values() for type in types})
        clients = [
            threading.Thread(
                target=submit_until,
                args=(end, Caller(server), random.Random(chance.random()), types, sorted(results), submitted),
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
            assert execution["result"] == results[execution["type"]], execution
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
