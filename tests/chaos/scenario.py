"""A run from start to verdict: servers, workers and clients on a store, disturbed for a while, then drained,
checked."""

import os
import pathlib
import random
import threading
import time
from dataclasses import dataclass

from caller import Caller
from checker import check, summary
from clients import Clients
from cluster import Cluster
from disturbance import Disturbance
from record import Record
from server import SLOWDOWN


CLOSED = ("completed", "failed", "cancelled", "timed_out")


@dataclass
class Size:
    seconds: float
    clients: int
    keys_each: int
    servers: int = 2
    workers: int = 4
    late_share: float = 0.02  # of attempts that report after their lease has ended
    lease_s: int = 2


def size():
    """64 clients with 200 keys each over HAPAX_CHAOS_SECONDS; without it, a short form."""
    seconds = float(os.environ.get("HAPAX_CHAOS_SECONDS") or 0)
    return Size(seconds, 64, 200) if seconds else Size(12, 16, 50)


def seed():
    chosen = int(os.environ.get("HAPAX_CHAOS_SEED") or random.SystemRandom().randrange(2**32))
    print(f"HAPAX_CHAOS_SEED={chosen}")
    return chosen


def run(directory, store, size, seed, also=(), disturb=True, in_front=None, environment=None):
    """Returns violations as sentences, and the counts of the run. `also` is for Disturbance. `in_front` puts something
    between clients and servers: it gets the cluster and returns the ports to use. `environment` is for the servers."""
    cluster = Cluster(directory, store, seed, size.servers, size.workers, size.late_share, size.lease_s,
                      environment)
    try:
        cluster.start()
        ports = in_front(cluster) if in_front else [_port_in(path) for path in cluster.port_files]
        clients = Clients(cluster.record, ports, seed, size.clients, size.keys_each, size.seconds).start()
        disturbance = Disturbance(cluster, seed, also)
        try:
            if disturb:
                disturbance.run(size.seconds)
        finally:
            clients.join(120 * SLOWDOWN)
        write_final(cluster.record, everything_closed(Caller(cluster.servers[0]), 120 * SLOWDOWN))
        if disturb:  # Late workers that are alive report by then. Other workers have done the work, so the report must be refused.
            threading.Event().wait(size.lease_s + 1)
    except BaseException:
        print(cluster.log())
        raise
    finally:
        cluster.stop()
    found = check(cluster.record) + [f"an answer that no queue gives: {answer}" for answer in clients.unexpected]
    if found:
        print(cluster.log())
    return found, {**disturbance.kills, **summary(cluster.record)}


def _port_in(path):
    return lambda: int(pathlib.Path(path).read_text())


def everything_closed(caller, deadline_s):
    """All executions, once none of them is open."""
    end = time.monotonic() + deadline_s
    while True:
        executions = everything(caller)
        if all(execution["status"] in CLOSED for execution in executions):
            return executions
        assert time.monotonic() < end, "the work is never done"
        caller.claim("nothing", wait="200ms")


def everything(caller):
    executions, cursor = [], None
    while True:
        answer = caller.http.get("/v1/tasks?limit=1000" + (f"&cursor={cursor}" if cursor else ""))
        assert answer.status == 200, answer
        executions += answer.json["executions"]
        cursor = answer.json["next_cursor"]
        if cursor is None:
            return executions


def write_final(record, executions):
    """What is stored at the end."""
    final = Record(record / "final.jsonl")
    for execution in executions:
        final.write({
            "sent": 0, "answered": None, "id": execution["id"], "status": execution["status"],
            "key": execution.get("idempotency_key"), "nonce": (execution.get("input") or {}).get("nonce", ""),
            "attempt": execution.get("attempt", 0), "result": execution.get("result"),
        })
    final.close()
