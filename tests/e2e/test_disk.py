"""Disk failures: a clear error, 503 while they last, and nothing acknowledged is lost."""

import contextlib
import os
import resource
import sqlite3
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from caller import Caller
from conftest import eventually
from server import Server

BIG = "x" * 20_000


def unavailable(answer):
    if answer.status != 503:
        return False
    assert answer.json["error"] in ("StoreUnavailable", "OutcomeUnknown"), answer
    assert int(answer.headers["retry-after"]) >= 1
    return True


# ---- no space


class FileSizeLimit:
    """Files of the server may not grow, as under a quota."""

    def __init__(self, server):
        self.pid = server.pid
        self.database = server.database

    def fill(self):
        size = self.database.stat().st_size
        resource.prlimit(self.pid, resource.RLIMIT_FSIZE, (size + 100_000, resource.RLIM_INFINITY))

    def free(self):
        resource.prlimit(self.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


class SmallDisk:
    """A file system of two megabytes."""

    def __init__(self, directory):
        self.directory = directory
        self.filler = directory / "filler"

    def fill(self):
        with contextlib.suppress(OSError), open(self.filler, "wb", buffering=0) as file:
            while file.write(b"x" * 4096) == 4096:
                pass

    def free(self):
        self.filler.unlink()


def can_mount():
    return os.geteuid() == 0 and subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0


@pytest.fixture(params=["file size limit"] + (["small disk"] if can_mount() else []))
def disk(request, tmp_path, start_server):
    """A server and the disk under it, which can be filled and freed."""
    if request.param == "file size limit":
        server = start_server()
        yield server, FileSizeLimit(server)
        return
    directory = tmp_path / "server"
    directory.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(directory)], check=True)
    server = start_server()
    yield server, SmallDisk(directory)
    server.kill()
    subprocess.run(["umount", str(directory)], check=True)


def test_a_full_disk_is_a_503_until_there_is_space_and_nothing_acknowledged_is_lost(disk):
    server, space = disk
    caller = Caller(server)
    acknowledged = {}

    def submit(n):
        answer = caller.submit(idempotency_key=f"key-{n}", input=BIG + str(n), queue="q")
        if answer.status == 201:
            acknowledged[f"key-{n}"] = answer.json["execution"]["id"]
        return answer

    assert submit(0).status == 201
    space.fill()
    n = 0
    while not unavailable(submit(n := n + 1)):
        assert n < 2000, "the disk never became full"
    assert server.is_running
    assert caller.http.get("/health").status == 200
    # Reading still works, and what was acknowledged is there.
    for id in acknowledged.values():
        assert caller.task(id)["status"] == "pending"
    assert unavailable(submit(n))
    # A server that refuses submissions is not ready.
    eventually(lambda: unavailable(caller.http.get("/ready")))

    space.free()
    eventually(lambda: submit(n).status == 201)
    eventually(lambda: caller.http.get("/ready").status == 200)
    server.kill()
    server.start()

    for key, id in acknowledged.items():
        assert [e["id"] for e in caller.list(idempotency_key=key)] == [id]
    assert not any(e["id"] not in acknowledged.values() for e in caller.list(queue="q", limit=1000))


def test_when_the_file_cannot_be_written_anymore_writing_is_a_503_until_it_can(start_server):
    server = start_server()
    caller = Caller(server)
    task = caller.create(queue="q")
    lease = caller.claim_one("q")["lease"]
    writable = FileSizeLimit(server)
    # Not one more byte of any file: every write fails from now on.
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))

    assert unavailable(caller.submit(queue="q"))
    assert unavailable(caller.http.post("/v1/claims/finish", {"outcomes": [{"lease": lease, "result": 1}]}))
    assert unavailable(caller.cancel(task["id"]))
    assert caller.task(task["id"])["status"] == "running"
    assert server.is_running

    writable.free()
    report = {"outcomes": [{"lease": lease, "result": 1}]}
    eventually(lambda: caller.http.post("/v1/claims/finish", report).status == 200)
    assert caller.task(task["id"])["result"] == 1


# ---- a file that is deleted or replaced while it is used


def test_a_deleted_file_is_a_503_that_says_so_and_nothing_is_acknowledged_into_it(start_server):
    server = start_server()
    caller = Caller(server)
    caller.create(queue="q")
    server.database.unlink()

    for answer in (caller.submit(queue="q"), caller.http.get("/v1/tasks?queue=q"), caller.http.get("/ready")):
        assert unavailable(answer), answer
        assert answer.json["message"].startswith(
            "The file q.db was deleted or moved away while the server had it open. The store cannot be"
        )
    assert "q.db was deleted or moved away" in server.log
    assert caller.http.get("/health").status == 200
    assert not server.database.exists()


def test_another_store_in_the_place_of_the_file_is_gone_on_with_and_nothing_of_the_old_one_is_remembered(
    tmp_path, start_server
):
    other = Server(tmp_path / "other").start()
    Caller(other).create(queue="beta")
    other.stop()
    server = start_server()
    caller = Caller(server)
    caller.create(queue="alpha")
    for ending in ("-wal", "-shm", ""):
        os.unlink(f"{server.database}{ending}")
    other.database.rename(server.database)

    eventually(lambda: caller.submit(queue="alpha").status == 201)
    assert len(caller.list(queue="alpha")) == 1
    assert len(caller.list(queue="beta")) == 1


def test_an_overwritten_file_is_a_503_that_says_so(tmp_path, start_server):
    other = Server(tmp_path / "other").start()
    other.stop()
    server = start_server()
    caller = Caller(server)
    caller.create(queue="q")
    server.database.write_bytes(other.database.read_bytes())

    for answer in (caller.http.get("/ready"), caller.submit(queue="q"), caller.http.get("/v1/tasks?queue=q")):
        assert unavailable(answer), answer
        assert answer.json["message"].startswith("The file q.db was overwritten while the server had it open.")
    assert "move" in server.log and "q.db-wal" in server.log


def test_a_locked_file_is_a_503_after_the_timeout_for_every_call(start_server):
    server = start_server(config='[server]\nstore_timeout = "500ms"\n')
    caller = Caller(server)
    caller.create(queue="q")
    database = sqlite3.connect(server.database, isolation_level=None)
    database.execute("BEGIN IMMEDIATE")
    began = time.monotonic()
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: Caller(server).submit(queue="q"), range(8)))
    assert all(unavailable(answer) for answer in answers), answers
    assert time.monotonic() - began < 5
    database.execute("ROLLBACK")
    caller.create(queue="q")


# ---- a file that cannot be used from the start

# Root may write everywhere: the server is started without that power.
AS_ANYBODY = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--"] if os.geteuid() == 0 else []


def gives_up(server, *words):
    """Exits with 1 and one sentence that contains these words."""
    server.launch()
    assert server.wait_exit() == 1
    for word in words:
        assert word in server.log, server.log
    assert "terminate called" not in server.log


def test_a_read_only_file_is_named_at_start_and_left_alone(tmp_path):
    server = Server(tmp_path / "s").start()
    task = Caller(server).create()
    server.stop()
    server.database.chmod(0o444)
    content = server.database.read_bytes()

    server.wrapper = AS_ANYBODY
    gives_up(server, "q.db")

    assert server.database.read_bytes() == content
    server.database.chmod(0o644)
    server.start()
    assert Caller(server).task(task["id"])["status"] == "pending"
    server.kill()


def test_a_directory_that_cannot_be_written_is_named_at_start(tmp_path):
    directory = tmp_path / "locked"
    directory.mkdir()
    directory.chmod(0o555)
    gives_up(Server(tmp_path / "s", store=f"sqlite:{directory}/q.db", wrapper=AS_ANYBODY), "locked/q.db")
    directory.chmod(0o755)


def test_a_directory_that_is_not_there_is_named_at_start(tmp_path):
    gives_up(Server(tmp_path / "s", store=f"sqlite:{tmp_path}/nowhere/q.db"), "nowhere/q.db")


@pytest.mark.parametrize("damage", ["garbage", "truncated", "header"])
def test_a_corrupt_file_is_named_at_start(tmp_path, damage):
    server = Server(tmp_path / "s").start()
    Caller(server).batch(*[{"type": "t", "input": BIG}] * 50)
    server.stop()
    content = server.database.read_bytes()
    damaged = {
        "garbage": os.urandom(len(content)),
        "truncated": content[: len(content) // 3],
        "header": b"\0" * 100 + content[100:],
    }
    server.database.write_bytes(damaged[damage])

    gives_up(server, "q.db")


def test_an_application_may_keep_its_own_tables_in_the_same_file(tmp_path):
    server = Server(tmp_path / "s")
    database = sqlite3.connect(server.database)
    database.executescript("CREATE TABLE events (title TEXT); INSERT INTO events VALUES ('launch'); PRAGMA user_version = 3")
    database.close()

    server.start()
    try:
        assert Caller(server).submit(idempotency_key="k").status == 201
        # The application goes on with its own migrations while the server runs.
        database = sqlite3.connect(server.database, timeout=20)
        database.executescript("ALTER TABLE events ADD COLUMN at INTEGER; PRAGMA user_version = 4")
        assert Caller(server).submit(idempotency_key="k").status == 200
    finally:
        server.stop()

    server.start()
    try:
        assert Caller(server).submit(idempotency_key="k").status == 200
    finally:
        server.stop()
    assert database.execute("PRAGMA user_version").fetchone() == (4,)
    assert database.execute("SELECT title, at FROM events").fetchall() == [("launch", None)]
    others = database.execute("SELECT name FROM sqlite_schema WHERE name NOT LIKE '%hapax_%'").fetchall()
    assert others == [("events",)]
    database.close()


# ---- a file that is damaged while it is used


def test_a_file_that_is_damaged_while_it_is_used_is_a_503_until_it_is_repaired(start_server):
    server = start_server()
    caller = Caller(server)
    ids = []
    for n in range(40):
        receipts = caller.batch(*[{"type": "t", "queue": "q", "input": BIG + str(n)}] * 20).json["receipts"]
        ids += [receipt["execution"]["id"] for receipt in receipts]
    # Closing moves everything from the log into the file; the restarted server has read nothing of it yet.
    server.restart()
    content = server.database.read_bytes()
    with open(server.database, "r+b") as file:
        file.seek(8 * 4096)
        file.write(b"\xa5" * (len(content) - 8 * 4096))

    damaged = [caller.http.get(f"/v1/tasks/{id}") for id in ids[::50]]
    damaged += [caller.submit(queue="q"), caller.http.post("/v1/claims", {"queues": ["q"]}), caller.http.get("/ready")]
    assert {answer.status for answer in damaged} == {503}
    assert {answer.json["error"] for answer in damaged} == {"StoreCorrupt"}
    assert all("retry-after" in answer.headers for answer in damaged)
    assert caller.http.get("/health").status == 200
    metrics = caller.http.get("/metrics")
    assert metrics.status == 200
    assert b"hapax_store_failures_total" in metrics.body and b"hapax_queue_pending" not in metrics.body
    assert "q.db" in server.log and "damaged" in server.log

    with open(server.database, "r+b") as file:
        file.write(content)
    for _ in ("in the same life", "in the next"):
        assert all(caller.task(id)["status"] == "pending" for id in ids[::50])
        ids.append(caller.create(queue="q")["id"])
        assert {execution["id"] for execution in caller.list(queue="q", limit=1000)} == set(ids)
        server.kill()
        server.start()
