"""The peers, the measures, and the targets for Hapax."""

import dataclasses
import pathlib

FOLDER = pathlib.Path(__file__).resolve().parent


@dataclasses.dataclass(frozen=True)
class Peer:
    """One row of the table. `name` is unique and identifies the peer in the results."""

    name: str
    store: str  # where its tasks are
    script: str = ""  # of the peer; empty: the C++ library
    redis: str = ""  # the appendfsync of the Redis it uses; empty: PostgreSQL, or SQLite
    arguments: tuple = ()
    measures: tuple = ()  # empty: all but those of Python
    environment: str = ""  # of a peer in Python: the name of its virtual environment
    program: str = "hapax_peer"  # of the C++ library
    on_sqlite: bool = False

    @property
    def is_hapax(self):
        return self.name.startswith("Hapax")

    @property
    def is_python(self):
        return self.script.startswith("python/")

    def has(self, measure):
        if self.is_python:
            return measure.name in PYTHON_MEASURES
        return measure.name in self.measures if self.measures else not measure.of_python

    @property
    def on_postgres(self):
        return not self.redis and not self.on_sqlite


@dataclasses.dataclass(frozen=True)
class Measure:
    name: str
    title: str
    count: int
    quick_count: int
    unit: str = "tasks/s"
    slow: tuple = ()  # (peer, count): a peer that would take minutes for the full count gets a smaller one
    python_count: int = 0  # that of the other Python peers; 0: `count`
    of_python: bool = False


PYTHON_MEASURES = ("submit_key", "drain", "latency", "workflow", "idle", "import")


def _python(name, script, redis="", arguments=(), environment=""):
    store = f"Redis, appendfsync {redis}" if redis else "PostgreSQL"
    return Peer(name, store, f"python/{script}_peer.py", redis, arguments, environment=environment or script)


FROM_C = ("submit_key", "submit_duplicate", "bulk", "drain", "workflow", "long_workflow")  # what capi_peer has

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
    Peer("Hapax from C", "PostgreSQL", program="capi_peer", measures=FROM_C),
    Peer("Hapax on SQLite", "SQLite", on_sqlite=True),
    Peer("Hapax on SQLite over HTTP", "SQLite", arguments=("--server",), on_sqlite=True),
    Peer("Hapax on SQLite from C", "SQLite", program="capi_peer", measures=FROM_C, on_sqlite=True),
    _python("DBOS for Python", "dbos"),
    _python("absurd", "absurd"),
    _python("procrastinate", "procrastinate"),
    _python("Celery", "celery", redis="everysec"),
    _python("Dramatiq", "dramatiq", redis="everysec"),
    _python("arq", "arq", redis="everysec"),
    _python("huey", "huey", redis="everysec"),
    _python("Hapax from Python", "hapax"),
    _python("Hapax from Python, over HTTP", "hapax", arguments=("--server",)),
)

MEASURES = (
    Measure("submit_key", "keyed submit, one by one", 20_000, 1_000,
            slow=(("graphile-worker", 6_000), ("pg-boss", 8_000), ("BullMQ on PostgreSQL", 8_000), ("DBOS", 6_000)),
            python_count=3_000),
    Measure("submit_duplicate", "duplicate submit", 20_000, 1_000,
            slow=(("graphile-worker", 8_000), ("pg-boss", 8_000), ("BullMQ on PostgreSQL", 8_000), ("DBOS", 6_000))),
    Measure("bulk", "bulk submit", 50_000, 5_000),
    Measure("drain", "drain, results stored", 20_000, 2_000, python_count=2_000),
    Measure("latency", "submit to start of handler", 200, 20, unit="ms"),
    Measure("workflow", "workflows of three steps", 3_000, 200, unit="workflows/s", python_count=300),
    Measure("long_workflow", "steps of a workflow of 1,000", 1_000, 200, unit="steps/s"),
    Measure("idle", "idle worker", 1, 1, unit="MiB", of_python=True),
    Measure("import", "import", 9, 9, unit="ms", of_python=True),
)  # fmt: skip


def count_of(measure, peer, quick):
    if quick:
        return measure.quick_count
    if peer.is_python and not peer.is_hapax and measure.python_count:
        return measure.python_count
    return dict(measure.slow).get(peer.name, measure.count)


@dataclasses.dataclass(frozen=True)
class Target:
    """A target: the subject's figure must be at least `factor` times the best of `against`."""

    measure: str
    field: str  # of the result: value, p50, p99
    factor: float
    against: str  # in words
    among: object = None  # of a peer and its line: whether it is one of those compared with
    own: str = ""  # instead of with peers, it is compared with this field of its own result
    limit: float = 0  # or with this
    lower_is_better: bool = False
    subject: str = "Hapax"


def on_postgres(peer, _line):
    return peer.on_postgres and not peer.is_hapax


def keeps_results(peer, line):
    return on_postgres(peer, line) and line.get("keeps_results")


def drops_results(peer, line):
    return on_postgres(peer, line) and not line.get("keeps_results")


def everybody(peer, _line):
    return not peer.is_hapax


def redis(appendfsync):
    return lambda peer, _line: peer.redis == appendfsync and not peer.is_python


def python_on_postgres(peer, line):
    return peer.is_python and on_postgres(peer, line)


def python_on_redis(peer, _line):
    return peer.is_python and bool(peer.redis)


def any_python(peer, line):
    return peer.is_python and everybody(peer, line)


def named(name):
    return lambda peer, _line: peer.name == name


PYTHON = "Hapax from Python"


def within(subject, same, factor, measures):
    """Targets for one way to use Hapax, compared with another one on the same store."""
    return (Target(measure, "value", factor, same, named(same), subject=subject) for measure in measures)


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
    Target("submit_key", "value", 5, "best Python peer on PostgreSQL", python_on_postgres, subject=PYTHON),
    Target("submit_key", "value", 2.5, "best Python peer on Redis", python_on_redis, subject=PYTHON),
    Target("submit_key", "value", 0.4, "the C++ library", named("Hapax"), subject=PYTHON),
    Target("drain", "value", 5, "best Python peer", any_python, subject=PYTHON),
    Target("drain", "value", 0.25, "the C++ library", named("Hapax"), subject=PYTHON),
    Target("workflow", "value", 15, "DBOS for Python", named("DBOS for Python"), subject=PYTHON),
    Target("workflow", "value", 0.3, "the C++ library", named("Hapax"), subject=PYTHON),
    Target("latency", "p50", 1, "Celery", named("Celery"), lower_is_better=True, subject=PYTHON),
    Target("latency", "p50", 0.5, "the C++ library", named("Hapax in two processes"), lower_is_better=True, subject=PYTHON),
    Target("idle", "value", 1, "40 MiB", limit=40, lower_is_better=True, subject=PYTHON),
    Target("idle", "cpu_percent", 1, "1 % of a core", limit=1, lower_is_better=True, subject=PYTHON),
    Target("import", "value", 1, "60 ms", limit=60, lower_is_better=True, subject=PYTHON),
    *within("Hapax over HTTP", "Hapax", 0.6, FROM_C),
    *within("Hapax on SQLite over HTTP", "Hapax on SQLite", 0.6, FROM_C),
    *within("Hapax from C", "Hapax", 0.8, FROM_C),
    *within("Hapax on SQLite from C", "Hapax on SQLite", 0.8, FROM_C),
    *(Target("latency", "p50", 1 / 1.5, same, named(same), lower_is_better=True, subject=name)
      for name, same in (("Hapax over HTTP", "Hapax"), ("Hapax on SQLite over HTTP", "Hapax on SQLite"))),
)  # fmt: skip
