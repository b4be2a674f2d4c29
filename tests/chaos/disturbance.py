"""Kills and restarts at random moments, by a seed."""

import random
import threading
import time


class Disturbance:
    """`also` are (part of the time, function) pairs: the function runs once, after that part of the time."""

    def __init__(self, cluster, seed, also=()):
        self.cluster = cluster
        self.chance = random.Random(f"{seed}/disturbance")
        self.also = sorted(also, key=lambda pair: pair[0])
        self.kills = {"server": 0, "worker": 0}

    def run(self, seconds):
        started, also = time.monotonic(), list(self.also)
        while (passed := time.monotonic() - started) < seconds:
            if also and passed >= also[0][0] * seconds:
                also.pop(0)[1]()
            # A random moment, not a wait for a state.
            threading.Event().wait(self.chance.uniform(0.05, 0.6))
            if self.chance.random() < 0.4:
                self._server(self.chance.randrange(len(self.cluster.servers)))
            else:
                self._worker(self.chance.randrange(len(self.cluster.workers)))
        for _, function in also:
            function()

    def _server(self, n):
        self.cluster.kill_server(n)
        self.kills["server"] += 1
        threading.Event().wait(self.chance.uniform(0, 0.3))
        self.cluster.start_server(n)

    def _worker(self, n):
        self.cluster.kill_worker(n)
        self.kills["worker"] += 1
        self.cluster.start_worker(n)
