"""The clients of a run. Three clients submit each key, spread over the run; each repeats until it is acknowledged."""

import random
import threading
import time

from client import Client
from history import Submitted
from record import Record, instant
from worker import QUEUE

TIMES = 3


class Clients:
    def __init__(self, record, ports, seed, clients, keys_each, seconds):
        """`ports` are functions that return where a server listens now."""
        self.record, self.ports, self.seed, self.seconds = record, ports, seed, seconds
        self.keys = [[f"key-{c}-{k}" for k in range(keys_each)] for c in range(clients)]
        self.unexpected = []  # answers that a correct queue never gives here
        self.give_up = threading.Event()
        listing = Record(record / "keys.jsonl")
        for key in sum(self.keys, []):
            listing.write({"key": key})
        listing.close()
        self._threads = [threading.Thread(target=self._run, args=(c,)) for c in range(clients)]

    def start(self):
        self.started = time.monotonic()
        for thread in self._threads:
            thread.start()
        return self

    def join(self, deadline_s):
        """Waits until all is acknowledged."""
        end = time.monotonic() + deadline_s
        for thread in self._threads:
            thread.join(max(0, end - time.monotonic()))
        late = sum(thread.is_alive() for thread in self._threads)
        self.give_up.set()
        for thread in self._threads:
            thread.join()
        assert late == 0, f"{late} clients were not done within {deadline_s} s"

    def _run(self, number):
        chance = random.Random(f"{self.seed}/client-{number}")
        events = Record(self.record / f"events-client-{number}.jsonl")
        clients = [Client(port, timeout=10) for port in self.ports]
        keys = sum((self.keys[(number + turn) % len(self.keys)] for turn in range(TIMES)), [])
        chance.shuffle(keys)
        for sent, key in enumerate(keys):
            due = self.started + self.seconds * sent / len(keys)
            if self.give_up.wait(max(0, due - time.monotonic())):
                break
            self._submit(events, clients, chance, key)
        events.close()

    def _submit(self, events, clients, chance, key):
        body = {"type": "chaos", "queue": QUEUE, "idempotency_key": key, "input": {"nonce": key}, "max_attempts": 1000,
                "retry": {"initial": "10ms", "max": "100ms"}}
        while not self.give_up.is_set():
            event = Submitted(instant(), key=key, nonce=key)
            events.event(event)
            try:
                answer = chance.choice(clients).post("/v1/tasks", body)
            except (OSError, ValueError):
                self.give_up.wait(0.02 + 0.1 * chance.random())
                continue
            if answer.status == 503:  # the store is down; sending the same again is safe
                self.give_up.wait(0.05 + 0.1 * chance.random())
                continue
            if answer.status not in (200, 201):
                self.unexpected.append(answer)
                return
            event.id, event.created = answer.json["execution"]["id"], answer.json["created"]
            event.answered = instant()
            events.event(event)
            return
