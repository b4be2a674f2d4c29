"""`once_in` and the relay, in processes that are killed at every point."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import pathlib
import random
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

import hapax
from hapax import Hapax
from hapax.codec import dump_json
from hapax.context import TaskContext
from hapax.testing import Server

from .databases import Database, Postgres, insert_payment

ON_POSTGRES = ("psycopg", "psycopg-async", "asyncpg", "sqlalchemy-session", "sqlalchemy-async")
ROOT = pathlib.Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    running = Postgres()
    yield running
    running.stop()


def program(name: str, *arguments: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    return subprocess.Popen([sys.executable, "-m", f"tests.programs.{name}", *arguments], env=environment, cwd=ROOT)


def on_server(server: Server) -> Hapax:
    return Hapax(server.url, namespace=f"test-{uuid.uuid4()}")


def test_once_in_is_one_row_and_one_result_when_killed_before_and_after_the_commit(
    server: Server, postgres: Postgres, tmp_path: pathlib.Path
) -> None:
    app = on_server(server)
    assert app.namespace is not None
    handles: dict[str, hapax.Handle[Any]] = {}
    databases: dict[str, Database] = {}
    for order_id, driver in enumerate(Database.drivers):
        folder = tmp_path / driver
        folder.mkdir()
        databases[driver] = Database(
            driver, folder, postgres, is_new="sqlite" in driver or driver in ("django", "psycopg")
        )
        options = hapax.SubmitOptions(queue=driver)
        handles[driver] = hapax.sync(app.submit(f"book-{driver}", {"order_id": order_id}, options=options))

    def work(driver: str) -> list[int]:
        ends = []
        for _ in range(3):
            arguments = [app.url, str(app.namespace), driver, str(tmp_path / driver), postgres.url]
            ends.append(program("booking_worker", *arguments).wait(60))
        return ends

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        ends = dict(zip(Database.drivers, pool.map(work, Database.drivers)))
    assert ends == {driver: [-signal.SIGKILL, -signal.SIGKILL, 0] for driver in Database.drivers}
    for order_id, driver in enumerate(Database.drivers):
        assert handles[driver].wait(timeout=1) == "booked by attempt 2", driver
        rows = databases[driver].execute(f"SELECT effect FROM payments WHERE order_id = {order_id}")
        assert [tuple(row) for row in rows] == [("attempt 2",)], driver
        execution = hapax.sync(handles[driver].execution())
        assert execution["attempt"] == 3
        keys = databases[driver].execute("SELECT effect_key FROM hapax_effects")
        assert sum(key.startswith(execution["id"]) for (key,) in keys) == 1, keys
    app.close()


@pytest.mark.parametrize("driver", Database.drivers)
def test_once_in_is_one_row_and_one_result_when_the_lease_is_lost_in_between(
    server: Server, postgres: Postgres, tmp_path: pathlib.Path, driver: str
) -> None:
    """The first attempt stands in the middle of its transaction, and the second begins."""
    database = Database(driver, tmp_path, postgres)
    in_the_middle, go_on, second_began = threading.Event(), threading.Event(), threading.Event()
    app = on_server(server)
    hapax.sync(app.submit("book", 456))

    def claim() -> TaskContext:
        body = {"worker": "w", "queues": ["default"], "lease": "1s", "wait": "20s"}
        (claimed,) = hapax.sync(app.call("POST", "/v1/claims", body, wait_s=20))["claims"]
        return TaskContext(claimed)

    async def book(connection: Any, attempt: int) -> str:
        await insert_payment(connection, 456, f"attempt {attempt}")
        in_the_middle.set()
        assert go_on.wait(20)
        return f"attempt {attempt}"

    def attempt(context: TaskContext) -> str:
        async def run() -> str:
            if context.attempt == 2:
                second_began.set()
            async with database.transaction() as connection:
                return await context.once_in(connection, book, connection, context.attempt)

        return asyncio.run(run())

    def finish(context: TaskContext, result: str) -> Any:
        outcome = {"lease": context.lease, "result": result}
        call = app.calls.call("POST", "/v1/claims/finish", {"outcomes": [outcome]}, accept=(409,))
        return hapax.sync(call).json["outcomes"][0]

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        first_context = claim()
        first = pool.submit(attempt, first_context)
        assert in_the_middle.wait(20)
        second_context = claim()  # once the first lease has run out
        assert second_context.attempt == 2
        second = pool.submit(attempt, second_context)
        assert second_began.wait(20)
        go_on.set()
        assert first.result(30) == second.result(30) == "attempt 1"
    assert finish(first_context, first.result())["error"] == "LeaseLost"
    assert finish(second_context, second.result())["ok"]
    assert [tuple(row) for row in database.execute("SELECT effect FROM payments")] == [("attempt 1",)]
    assert len(database.execute("SELECT * FROM hapax_effects")) == 1
    app.close()


def fill(app: Hapax, database: Database, rows: int) -> None:
    """As `submit_in` writes them, many at once."""

    @app.task
    async def charge(order_id: int) -> None: ...

    requests = [charge.of(number).request for number in range(rows)]
    values = [(request["id"], "task", dump_json(request).decode()) for request in requests]
    if database.dialect == "sqlite":
        import contextlib
        import sqlite3

        with contextlib.closing(sqlite3.connect(database.file)) as connection, connection:
            connection.executemany("INSERT INTO hapax_outbox (id, kind, request) VALUES (?, ?, ?)", values)
        return
    import psycopg

    assert database.postgres is not None
    with psycopg.connect(database.postgres.url) as session, session.cursor() as cursor:
        with cursor.copy("COPY hapax_outbox (id, kind, request) FROM STDIN") as copy:
            for value in values:
                copy.write_row(value)


def submitted(app: Hapax) -> list[int]:
    inputs: list[int] = []
    cursor = ""
    while True:
        page = hapax.sync(app.call("GET", f"/v1/tasks?type=charge&limit=1000{cursor}"))
        inputs += [each["input"]["order_id"] for each in page["executions"]]
        if not page["next_cursor"]:
            return sorted(inputs)
        cursor = f"&cursor={page['next_cursor']}"


def relay(app: Hapax, database: Database, folder: pathlib.Path, limit: int, dies_at: int) -> subprocess.Popen[bytes]:
    url = database.postgres.url if database.postgres else ""
    arguments = [app.url, str(app.namespace), database.driver, str(folder), url, str(limit), str(dies_at)]
    return program("relay", *arguments)


@pytest.mark.parametrize("driver", ["sqlite3", "asyncpg"])
def test_a_relay_killed_at_every_point_repeats_and_loses_nothing(
    server: Server, postgres: Postgres, tmp_path: pathlib.Path, driver: str
) -> None:
    app, database = on_server(server), Database(driver, tmp_path, postgres)
    fill(app, database, 8)
    ends, dies_at = [], 1
    while not ends or ends[-1] != 0:
        ends.append(relay(app, database, tmp_path, 4, dies_at).wait(60))
        dies_at += 1
    assert ends == [-signal.SIGKILL] * (len(ends) - 1) + [0]
    assert len(ends) >= 9  # a move is a look, a call, a removal and a commit, each with a before and an after
    assert submitted(app) == list(range(8))
    assert database.execute("SELECT * FROM hapax_outbox") == []
    app.close()


def relay_with_kills(
    server: Server, postgres: Postgres, folder: pathlib.Path, driver: str, rows: int, kills: int
) -> None:
    app, database = on_server(server), Database(driver, folder, postgres)
    fill(app, database, rows)
    chance = random.Random(rows)
    running = [relay(app, database, folder, 1000, chance.randrange(1, 60)) for _ in range(2)]
    while running:
        ended = running.pop(0)
        if ended.wait(120) == 0:
            continue
        kills -= 1
        dies_at = chance.randrange(1, 60) if kills > 0 else 0
        running.append(relay(app, database, folder, 1000, dies_at))
    assert submitted(app) == list(range(rows))
    assert database.execute("SELECT * FROM hapax_outbox") == []
    app.close()


@pytest.mark.parametrize("driver", ["sqlite3", "psycopg"])
def test_two_relays_that_are_killed_move_everything_once(
    server: Server, postgres: Postgres, tmp_path: pathlib.Path, driver: str
) -> None:
    relay_with_kills(server, postgres, tmp_path, driver, rows=5000, kills=4)


@pytest.mark.slow
@pytest.mark.parametrize("driver", ["sqlite3", "psycopg", "asyncpg"])
def test_two_relays_that_are_killed_move_100000_rows_once(
    server: Server, postgres: Postgres, tmp_path: pathlib.Path, driver: str
) -> None:
    relay_with_kills(server, postgres, tmp_path, driver, rows=100_000, kills=20)
