"""Faults under a running server: the database freezes, its schema is dropped or created anew, a backup is restored."""

import concurrent.futures
import json
import threading
import time

import pytest
from caller import Caller
from client import RawConnection, request_bytes
from command import Command
from patience import retry_until
from server import SLOWDOWN, Server

TIMEOUT_S = 1
PLACES = [("shop", "alpha"), ("shop", "beta"), ("other", "alpha"), ("other", "gamma")]


@pytest.fixture
def server(tmp_path, postgres):
    made = Server(tmp_path / "server", store=postgres.url(), environment={"HAPAX_STORE_TIMEOUT": f"{TIMEOUT_S}s"}).start()
    yield made
    postgres.thaw()
    made.kill()


def drop_schema(postgres):
    """Every transaction locks the identity first, so taking that lock first deadlocks with none of them."""
    postgres.ask("BEGIN; REFRESH MATERIALIZED VIEW hapax.store_identity; DROP SCHEMA hapax CASCADE; COMMIT", database="hapax")


def test_frozen_database_is_503_by_the_deadline_and_the_server_stays_alive(server, postgres):
    caller = Caller(server)
    caller.create(queue="q")
    postgres.freeze()
    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(40) as pool:
        answers = [pool.submit(caller.submit, queue="q", idempotency_key=f"k{n}") for n in range(40)]
        assert caller.http.get("/health").status == 200
        answers = [answer.result() for answer in answers]
    took = time.monotonic() - began
    assert {answer.status for answer in answers} == {503}
    assert all(int(answer.headers["retry-after"]) >= 1 for answer in answers)
    assert {answer.json["error"] for answer in answers} <= {"StoreUnavailable", "OutcomeUnknown"}
    assert took < 5 * TIMEOUT_S * SLOWDOWN, took
    assert caller.http.get("/health").status == 200
    postgres.thaw()
    for n in range(40):  # done or not, sending the same again makes one execution
        retry_until(lambda: caller.submit(queue="q", idempotency_key=f"k{n}").status in (200, 201))
    assert len(caller.list(queue="q", limit=100)) == 41


def test_server_ends_in_time_while_the_database_is_frozen(server, postgres):
    caller = Caller(server)
    caller.create(queue="q")
    postgres.freeze()
    clients = [RawConnection(server.port) for _ in range(8)]
    for client in clients:
        client.send(request_bytes("POST", "/v1/tasks", {"type": "t", "queue": "q"}))
    assert caller.http.get("/health").status == 200  # they were sent before that
    assert server.stop(deadline_s=15) == 0
    for client in clients:
        client.close()


def test_dropped_schema_is_503_with_what_to_do_until_there_is_one(server, postgres, tmp_path):
    caller = Caller(server)
    caller.create(queue="q")
    drop_schema(postgres)
    for _ in range(20):
        answer = caller.submit(queue="q")
        assert answer.status == 503 and "retry-after" in answer.headers, answer
        assert "hapax migrate" in answer.json["message"]
        answer = caller.http.get("/v1/tasks?queue=q")
        assert answer.status == 503 and "retry-after" in answer.headers, answer
    Command(tmp_path, ["--store", postgres.url()]).ok("migrate")
    retry_until(lambda: caller.submit(queue="q").status == 201)
    assert len(caller.list(queue="q")) == 1


class Load:
    """Submits to several queues of two namespaces and claims from them. Each input says where it belongs."""

    def __init__(self, server):
        self.callers = {namespace: Caller(server, namespace) for namespace, _ in PLACES}
        self.stopping = threading.Event()
        self.strays, self.unexpected = [], []
        self.counts = {"submitted": 0, "claimed": 0}
        self.threads = [threading.Thread(target=self._run, args=(step, namespace, queue))
                        for namespace, queue in PLACES for step in (self._submit, self._claim)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        for thread in self.threads:
            thread.join()

    def go_on(self, count=30):
        """Waits until that many more were submitted and claimed."""
        before = dict(self.counts)
        retry_until(lambda: all(self.counts[what] >= before[what] + count for what in before), 60)

    def _run(self, step, namespace, queue):
        while not self.stopping.is_set():
            step(self.callers[namespace], namespace, queue)

    def _submit(self, caller, namespace, queue):
        answer = caller.submit(queue=queue, input=[namespace, queue])
        self._judge(answer, 201, "submitted")

    def _claim(self, caller, namespace, queue):
        body = {"worker": "w", "queues": [queue], "limit": 5, "wait": "100ms", "lease": "60s"}
        answer = caller.http.post("/v1/claims", body)
        if self._judge(answer, 200, None):
            for claim in answer.json["claims"]:
                self.counts["claimed"] += 1
                execution = claim["execution"]
                if execution["input"] != [namespace, queue] or execution["queue"] != queue:
                    self.strays.append((namespace, queue, execution))

    def _judge(self, answer, expected, what):
        if answer.status == expected:
            if what:
                self.counts[what] += 1
            return True
        if answer.status != 503 or "retry-after" not in answer.headers:
            self.unexpected.append(answer)
        time.sleep(0.01)
        return False


def test_nothing_crosses_while_the_schema_is_created_anew_under_load(server, postgres, tmp_path):
    command = Command(tmp_path, ["--store", postgres.url()])
    with Load(server) as load:
        for turn in range(4):
            load.go_on()
            drop_schema(postgres)
            command.ok("migrate")
            # The first queue gets the first number: each time another queue.
            namespace, queue = PLACES[turn]
            command.run("submit", "t", json.dumps([namespace, queue]), "--queue", queue, "--namespace", namespace)
        load.go_on()
    assert load.strays == [] and load.unexpected == []


def test_nothing_crosses_when_a_backup_is_restored_under_load(server, postgres, tmp_path):
    with Load(server) as load:
        Caller(server, "shop").create(queue="kept", input="kept")
        load.go_on()
        backup = postgres.dump()
        for _ in range(2):
            load.go_on()
            postgres.restore(backup)
        load.go_on()
    assert load.strays == [] and load.unexpected == []
    assert [task["input"] for task in Caller(server, "shop").list(queue="kept")] == ["kept"]
