"""kill -9 at random moments under load. What was acknowledged stays: history.py checks what clients saw."""

import os
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from caller import Caller
from history import Claimed, Finished, History, Seen, Submitted, lost_so_far, violations
from server import SLOWDOWN

KILLS = 50
SUBMITTERS = 3
WORKERS = 3
QUEUES = ["fast", "slow"]
LEASE = "1s"
LATE_S = 1.2  # when a worker that was too slow for its lease reports after all


class Load:
    """Clients that keep a server busy across restarts and record everything they see."""

    def __init__(self, server, seed):
        self.server = server
        self.seed = seed
        self.history = History()
        self.up = threading.Event()  # cleared before a kill: clients with a broken request wait for the restart
        self.submitting = True
        self.working = True
        self.unexpected = []  # answers that no healthy server gives

    def submit(self, name):
        chance, caller, count = random.Random(f"{self.seed}/{name}"), Caller(self.server), 0
        while self.submitting:
            count += 1
            # The window of keys moves slowly: several threads send each key several times, across restarts.
            window = len(self.history.events) // 40
            key = f"key-{window + chance.randrange(20)}" if chance.random() < 0.7 else None
            nonce = key or f"{name}-{count}"
            self._submit_once(caller, key, nonce, chance.choice(QUEUES))

    def _submit_once(self, caller, key, nonce, queue):
        fields = {"idempotency_key": key, "scope": "global"} if key else {}
        event = self.history.add(Submitted(self.history.instant(), key=key, nonce=nonce))
        retry = {"initial": "1ms", "max": "20ms"}
        try:
            answer = caller.submit(input={"nonce": nonce}, queue=queue, max_attempts=1000, retry=retry, **fields)
        except OSError:
            self.up.wait(30)
            return
        if answer.status not in (200, 201):
            self.unexpected.append(answer)
            return
        event.id, event.created = answer.json["execution"]["id"], answer.json["created"]
        event.answered = self.history.instant()

    def work(self, name):
        chance, caller, late = random.Random(f"{self.seed}/{name}"), Caller(self.server), []
        while self.working:
            sent = self.history.instant()
            try:
                claims = caller.claim(*QUEUES, limit=chance.randint(1, 8), wait="100ms", lease=LEASE, worker=name)
            except OSError:
                self.up.wait(30)
                continue
            answered = self.history.instant()
            for claim in claims:
                taken = Claimed(sent, answered, claim["execution"]["id"], claim["attempt"], claim["lease"])
                self.history.add(taken)
                self._handle(caller, taken, chance.random(), late)
            while late and time.monotonic() > late[0][0]:
                self._finish(caller, late.pop(0)[1])
        for _, claim in late:
            self._finish(caller, claim)

    def _handle(self, caller, claim, fate, late):
        if fate < 0.80:
            self._finish(caller, claim)
        elif fate < 0.90:
            try:
                caller.fail(claim.lease)
            except OSError:
                self.up.wait(30)
        else:
            late.append((time.monotonic() + LATE_S, claim))

    def _finish(self, caller, claim):
        result = {"by": claim.lease}
        while True:
            event = Finished(self.history.instant(), None, claim.id, claim.attempt, claim.lease, result)
            try:
                outcome = caller.finish(claim.lease, result)
            except OSError:
                self.history.add(event)
                self.up.wait(30)
                continue  # a lost reply: the same report again, after the restart
            event.accepted, event.answered = outcome.get("ok", False), self.history.instant()
            self.history.add(event)
            return

    def look(self, caller, ids):
        """Reads the executions and records what it saw."""
        return [self.history.add(self._look_at(caller, id)) for id in ids]

    def _look_at(self, caller, id):
        sent = self.history.instant()
        answer = caller.http.get(f"/v1/tasks/{id}")
        assert answer.status in (200, 404), answer
        execution = answer.json if answer.status == 200 else {"id": id}
        return seen(execution, sent, self.history.instant())

    def acknowledged_ids(self):
        return list(dict.fromkeys(event.id for event in self.history.of(Submitted) if event.acknowledged))


def seen(execution, sent, answered):
    return Seen(
        sent,
        answered,
        id=execution["id"],
        status=execution.get("status"),
        key=execution.get("idempotency_key"),
        nonce=(execution.get("input") or {}).get("nonce", ""),
        attempt=execution.get("attempt", 0),
        result=execution.get("result"),
    )


def everything(caller):
    executions, cursor = [], None
    while True:
        page = caller.http.get("/v1/tasks?limit=1000" + (f"&cursor={cursor}" if cursor else "")).json
        executions += page["executions"]
        cursor = page["next_cursor"]
        if cursor is None:
            return executions


def kill_and_restart(server, load, chance):
    load.up.clear()
    server.kill()
    if chance.random() < 0.2:  # it dies again while it recovers
        server.launch()
        threading.Event().wait(chance.random() * 0.03)
        server.kill()
    server.start()
    load.up.set()


def test_what_was_acknowledged_survives_50_kills_under_load(start_server):
    seed = int(os.environ.get("HAPAX_E2E_SEED") or random.SystemRandom().randrange(2**32))
    print(f"HAPAX_E2E_SEED={seed}")
    chance = random.Random(seed)
    server = start_server()
    load, caller = Load(server, seed), Caller(server)
    load.up.set()
    with ThreadPoolExecutor(SUBMITTERS + WORKERS) as pool:
        submitters = [pool.submit(load.submit, f"submitter-{n}") for n in range(SUBMITTERS)]
        workers = [pool.submit(load.work, f"worker-{n}") for n in range(WORKERS)]
        try:
            for _ in range(KILLS):
                # A random moment, not a wait for a state.
                threading.Event().wait(chance.uniform(0.02, 0.4))
                kill_and_restart(server, load, chance)
                ids = load.acknowledged_ids()
                looked_at = ids[-60:] + chance.sample(ids, min(len(ids), 20))
                assert lost_so_far(load.history, load.look(caller, looked_at)) == []
            load.submitting = False
            drain(caller)
        finally:
            load.submitting = load.working = False
            load.up.set()
        for future in submitters + workers:
            future.result(60 * SLOWDOWN)

    assert load.unexpected == []
    final = [seen(execution, 0, None) for execution in everything(caller)]
    assert violations(load.history, final) == []
    assert len(final) > 200, "too little happened to mean anything"
    stale = [finish for finish in load.history.of(Finished) if finish.acknowledged and not finish.accepted]
    assert stale, "no worker was ever late: the fencing was not tried"
    print(f"{len(final)} executions, {len(load.history.events)} events, {len(stale)} stale finishes refused")


def drain(caller):
    end = time.monotonic() + 60 * SLOWDOWN
    while any(caller.list(status=status, limit=1) for status in ("pending", "running")):
        assert time.monotonic() < end, "the work is never done"
        caller.claim("nothing", wait="50ms")
