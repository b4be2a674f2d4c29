"""The peers, the measures, and the targets for Hapax."""

import dataclasses
import pathlib

FOLDER = pathlib.Path(__file__).resolve().parent


@dataclasses.dataclass(frozen=True)
class Peer:
    """One row of the table. `name` is unique and identifies the peer in the results."""

    name: str
    store: str  # where its tasks are
    script: str = ""  # of the peer; empty: it is Hapax
    redis: str = ""  # the appendfsync of the Redis it uses; empty: PostgreSQL
    arguments: tuple = ()
    measures: tuple = ()  # empty: all

    @property
    def is_hapax(self):
        return not self.script

    @property
    def on_postgres(self):
        return not self.redis


@dataclasses.dataclass(frozen=True)
class Measure:
    name: str
    title: str
    count: int
    quick_count: int
    unit: str = "tasks/s"
    slow: tuple = ()  # (peer, count): a peer that would take minutes for the full count gets a smaller one


PEERS = (
    Peer("graphile-worker", "PostgreSQL", "graphile_worker.mjs"),
    Peer("pg-boss", "PostgreSQL", "pg_boss.mjs"),
    Peer("BullMQ on PostgreSQL", "PostgreSQL", "bullmq.mjs"),
    Peer("DBOS", "PostgreSQL", "dbos.mjs"),
    Peer("BullMQ on Redis, always", "Redis, appendfsync always", "bullmq.mjs", redis="always"),
    Peer("BullMQ on Redis, everysec", "Redis, appendfsync everysec", "bullmq.mjs", redis="everysec"),
    Peer("Hapax", "PostgreSQL"),
    Peer("Hapax in two processes", "PostgreSQL", arguments=("--two-processes",), measures=("latency",)),
    Peer("Hapax over HTTP", "PostgreSQL", arguments=("--server",)),
)

MEASURES = (
    Measure("submit_key", "keyed submit, one by one", 20_000, 1_000,
            slow=(("graphile-worker", 6_000), ("pg-boss", 8_000), ("BullMQ on PostgreSQL", 8_000), ("DBOS", 6_000))),
    Measure("submit_duplicate", "duplicate submit", 20_000, 1_000,
            slow=(("graphile-worker", 8_000), ("pg-boss", 8_000), ("BullMQ on PostgreSQL", 8_000), ("DBOS", 6_000))),
    Measure("bulk", "bulk submit", 50_000, 5_000),
    Measure("drain", "drain, results stored", 20_000, 2_000),
    Measure("latency", "submit to start of handler", 200, 20, unit="ms"),
    Measure("workflow", "workflows of three steps", 3_000, 200, unit="workflows/s"),
    Measure("long_workflow", "steps of a workflow of 1,000", 1_000, 200, unit="steps/s"),
)  # fmt: skip


def count_of(measure, peer, quick):
    if quick:
        return measure.quick_count
    return dict(measure.slow).get(peer.name, measure.count)


@dataclasses.dataclass(frozen=True)
class Target:
    """A target: Hapax's figure must be at least `factor` times the best of `against`."""

    measure: str
    field: str  # of the result: value, p50, p99
    factor: float
    against: str  # in words
    among: object = None  # of a peer's line: whether it is one of those compared with
    own: str = ""  # instead of with peers, it is compared with this field of its own result
    lower_is_better: bool = False


def on_postgres(peer, _line):
    return peer.on_postgres


def keeps_results(peer, line):
    return peer.on_postgres and line.get("keeps_results")


def drops_results(peer, line):
    return peer.on_postgres and not line.get("keeps_results")


def everybody(_peer, _line):
    return True


def redis(appendfsync):
    return lambda peer, _line: peer.redis == appendfsync


TARGETS = (
    Target("submit_key", "value", 10, "best on PostgreSQL", on_postgres),
    Target("submit_key", "value", 1, "BullMQ on Redis, always", redis("always")),
    Target("submit_key", "value", 1, "BullMQ on Redis, everysec", redis("everysec")),
    Target("submit_duplicate", "value", 10, "best on PostgreSQL", on_postgres),
    Target("bulk", "value", 1.3, "best on PostgreSQL", on_postgres),
    Target("drain", "value", 2, "best that keeps results", keeps_results),
    Target("drain", "value", 1.2, "best that drops results", drops_results),
    Target("latency", "p50", 1, "best of all", everybody, lower_is_better=True),
    Target("latency", "p99", 1, "best of all", everybody, lower_is_better=True),
    Target("workflow", "value", 15, "best on PostgreSQL", on_postgres),
    Target("long_workflow", "value", 0.667, "its own of 100 steps", own="of_short"),
)
