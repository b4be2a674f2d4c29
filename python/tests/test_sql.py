"""The outbox and the inbox, on every driver, with ends at every point."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import functools
import os
import pathlib
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

import hapax
from hapax import Hapax
from hapax.context import TaskContext
from hapax.sql.outbox import Relay
from hapax.testing import Server

from .databases import Database, Postgres, insert_payment


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    running = Postgres()
    yield running
    running.stop()


@pytest.fixture(params=Database.drivers)
def database(request: pytest.FixtureRequest, tmp_path: pathlib.Path, postgres: Postgres) -> Database:
    return Database(request.param, tmp_path, postgres)


@pytest.fixture
def sqlite(tmp_path: pathlib.Path) -> Database:
    return Database("sqlite3", tmp_path, None)


class Died(BaseException):
    """The process ends here."""


def declare(app: Hapax) -> Any:
    @app.task
    async def charge(order_id: int) -> str:
        return f"ch_{order_id}"

    return charge


def move_all(app: Hapax, database: Database) -> int:
    async def main() -> int:
        moved = 0
        relayed = copy.copy(database)
        relayed.driver = "sqlite3" if database.dialect == "sqlite" else "psycopg"  # a connection that the relay commits
        async with relayed.transaction() as connection:
            while batch := await Relay(app, connection).move(limit=100):
                moved += batch
        return moved

    return asyncio.run(main())


def test_what_is_committed_is_submitted_and_nothing_else(app: Hapax, database: Database) -> None:
    charge = declare(app)

    async def buy(order_id: int, fails: bool) -> hapax.Handle[str]:
        async with database.transaction() as connection:
            await insert_payment(connection, order_id, "bought")
            handle: hapax.Handle[str] = await app.submit_in(
                connection, charge.options(key=f"charge-{order_id}").of(order_id)
            )
            if fails:
                raise Died
        return handle

    kept = asyncio.run(buy(1, fails=False))
    with pytest.raises(Died):
        asyncio.run(buy(2, fails=True))
    assert move_all(app, database) == 1
    execution = hapax.sync(kept.execution())
    assert execution["idempotency_key"] == "charge-1"
    assert execution["input"] == {"order_id": 1}
    assert len(hapax.sync(app.call("GET", "/v1/tasks?type=charge"))["executions"]) == 1
    assert [tuple(row) for row in database.execute("SELECT order_id FROM payments")] == [(1,)]
    assert move_all(app, database) == 0


@pytest.mark.parametrize("driver", ["psycopg-async", "sqlite3"])
def test_two_relays_lose_and_repeat_nothing(
    app: Hapax, tmp_path: pathlib.Path, postgres: Postgres, driver: str
) -> None:
    database = Database(driver, tmp_path, postgres)
    charge = declare(app)
    rows = 3000

    async def fill() -> None:
        async with database.transaction() as connection:
            for order_id in range(rows):
                await app.submit_in(connection, charge.of(order_id))

    async def relay() -> None:
        async with database.transaction() as connection:
            while await Relay(app, connection).move(limit=200):
                pass

    async def main() -> None:
        if driver == "sqlite3":
            await relay()
            await relay()
        else:
            await asyncio.gather(relay(), relay())

    asyncio.run(fill())
    asyncio.run(main())
    inputs: list[int] = []
    cursor = ""
    while True:
        page = hapax.sync(app.call("GET", f"/v1/tasks?type=charge&limit=1000{cursor}"))
        inputs += [each["input"]["order_id"] for each in page["executions"]]
        if not page["next_cursor"]:
            break
        cursor = f"&cursor={page['next_cursor']}"
    assert sorted(inputs) == list(range(rows))
    assert database.execute("SELECT * FROM hapax_outbox") == []


def test_a_refused_submission_does_not_hold_up_the_others(app: Hapax, tmp_path: pathlib.Path) -> None:
    database = Database("sqlite3", tmp_path, None)
    charge = declare(app)
    hapax.sync(charge.options(key="taken").submit(1))

    async def fill() -> None:
        async with database.transaction() as connection:
            await app.submit_in(connection, charge.options(key="taken").of(2))
            await app.submit_in(connection, charge.options(key="free").of(3))

    asyncio.run(fill())
    assert move_all(app, database) == 2
    refused = database.execute("SELECT refused FROM hapax_outbox")
    assert len(refused) == 1
    assert "another input" in refused[0][0]
    assert move_all(app, database) == 0


def test_the_engines_own_file_is_refused_and_the_error_says_what_works(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "orders.db"
    app = Hapax(f"sqlite:{file}")
    charge = declare(app)
    connection = sqlite3.connect(file)
    connection.execute("CREATE TABLE x (y)")
    with pytest.raises(hapax.InvalidRequest, match="locks") as refused:
        hapax.sync(app.submit_in(connection, charge.of(1)))
    assert refused.value.code == "EnginesOwnFile"
    assert "hapax serve --store sqlite:" in refused.value.message
    connection.close()


def test_the_outbox_may_be_in_the_file_of_an_engine_in_another_process(tmp_path: pathlib.Path) -> None:
    database = Database("sqlite3", tmp_path, None)
    server = Server(tmp_path, f"sqlite:{database.file}").start()
    app = Hapax(server.url)
    charge = declare(app)

    async def buy() -> hapax.Handle[str]:
        async with database.transaction() as connection:
            return await app.submit_in(connection, charge.of(1))

    handle = asyncio.run(buy())
    with contextlib.closing(sqlite3.connect(database.file, timeout=5)) as connection:
        assert hapax.sync(Relay(app, connection).move()) == 1
    assert hapax.sync(handle.execution())["status"] == "pending"
    app.close()
    server.stop()


def test_a_relay_on_an_asyncpg_connection_in_a_transaction_is_refused(
    app: Hapax, postgres: Postgres, tmp_path: pathlib.Path
) -> None:
    database = Database("asyncpg", tmp_path, postgres)

    async def main() -> None:
        async with database.transaction() as connection:
            with pytest.raises(hapax.InvalidRequest, match="a relay commits by itself"):
                await Relay(app, connection).move()

    asyncio.run(main())


def test_an_unknown_connection_says_which_are_known(app: Hapax) -> None:
    with pytest.raises(hapax.InvalidRequest, match="psycopg 3"):
        hapax.sync(app.submit_in(object(), declare(app).of(1)))


AUTOCOMMIT = {
    "sqlite3": lambda postgres: sqlite3.connect(":memory:", isolation_level=None),
    "psycopg": lambda postgres: __import__("psycopg").connect(postgres.url, autocommit=True),
    "sqlalchemy": lambda postgres: (
        __import__("sqlalchemy").create_engine("sqlite://").connect().execution_options(isolation_level="AUTOCOMMIT")
    ),
}


@pytest.mark.parametrize("name", AUTOCOMMIT)
def test_a_connection_outside_of_a_transaction_is_refused(app: Hapax, postgres: Postgres, name: str) -> None:
    connection: Any = AUTOCOMMIT[name](postgres)
    with pytest.raises(hapax.InvalidRequest, match="Begin one") as refused:
        hapax.sync(app.submit_in(connection, declare(app).of(1)))
    assert refused.value.code == "NoTransaction"
    with pytest.raises(hapax.InvalidRequest, match="once_in"):
        hapax.sync(context(1).once_in(connection, lambda: None))
    connection.close()


def test_asyncpg_and_django_outside_of_a_transaction_are_refused(
    app: Hapax, postgres: Postgres, tmp_path: pathlib.Path
) -> None:
    charge = declare(app)

    async def main() -> None:
        import asyncpg

        connection = await asyncpg.connect(postgres.url)
        with pytest.raises(hapax.InvalidRequest, match="Begin one"):
            await app.submit_in(connection, charge.of(1))
        await connection.close()

    asyncio.run(main())
    connection = Database("django", tmp_path, None)._django()
    connection.ensure_connection()
    with pytest.raises(hapax.InvalidRequest, match="Begin one"):
        hapax.sync(app.submit_in(connection, charge.of(1)))
    connection.close()


def test_rows_of_any_shape_are_read(app: Hapax, sqlite: Database, postgres: Postgres) -> None:
    """Connections whose rows are dictionaries, as many applications have them."""
    import psycopg
    from psycopg.rows import dict_row

    charge = declare(app)
    lite = sqlite3.connect(sqlite.file)
    lite.row_factory = lambda cursor, row: {column[0]: value for column, value in zip(cursor.description, row)}
    Database("psycopg", sqlite.file.parent, postgres)
    connections: list[Any] = [lite, psycopg.connect(postgres.url, row_factory=dict_row)]
    for connection in connections:
        hapax.sync(app.submit_in(connection, charge.of(1)))
        for attempt in (1, 2):
            assert hapax.sync(context(attempt).once_in(connection, lambda: 7)) == 7
        connection.commit()
        assert hapax.sync(Relay(app, connection).move()) == 1
        connection.close()


def test_an_input_goes_through_the_outbox_as_it_is(app: Hapax, database: Database) -> None:
    """The relayed submission is the same as a direct one, also where databases have their own idea of JSON."""

    @app.task
    async def measure(values: list[float], text: str) -> None: ...

    values, text = [1e30, 1e-7, 0.1, 100.0, 12345678901234567890.0], "nothing: \0, snow: \u2603, %s ? :name"

    async def fill() -> hapax.Handle[None]:
        async with database.transaction() as connection:
            return await app.submit_in(connection, measure.options(key="m").of(values, text))

    relayed = asyncio.run(fill())
    assert move_all(app, database) == 1
    direct = measure.options(key="m").submit_sync(values, text)
    assert direct.id == relayed.id
    assert direct.receipt.execution["input"]["text"] == text


def test_a_workflow_is_started_in_the_transaction(app: Hapax, sqlite: Database) -> None:
    @app.workflow
    async def process(ctx: hapax.Context, order_id: int) -> None: ...

    async def fill() -> list[hapax.WorkflowHandle[None]]:
        async with sqlite.transaction() as connection:
            first = await app.start_in(connection, process, "order-1", 1)
            return [first, await app.start_in(connection, process, "order-1", 2)]

    handle, _ = asyncio.run(fill())
    assert move_all(app, sqlite) == 2
    assert hapax.sync(handle.execution())["input"] == {"order_id": 1}
    ((refused,),) = sqlite.execute("SELECT refused FROM hapax_outbox")
    assert "IdempotencyConflict" in refused or "another input" in refused


def test_a_batch_too_large_for_the_server_is_halved(server: Server, sqlite: Database) -> None:
    app = Hapax(server.url, namespace="halved")

    @app.task
    async def keep(text: str) -> None: ...

    async def fill() -> list[hapax.Handle[None]]:
        async with sqlite.transaction() as connection:
            sizes = (3, 3, 9, 3)  # megabytes; the server takes 8
            return [await app.submit_in(connection, keep.of("x" * size * 1024 * 1024)) for size in sizes]

    async def exists(handle: hapax.Handle[None]) -> bool:
        try:
            return bool(await handle.execution())
        except hapax.NotFound:
            return False

    handles = asyncio.run(fill())
    assert move_all(app, sqlite) == 4
    assert [hapax.sync(exists(handle)) for handle in handles] == [True, True, False, True]
    ((refused,),) = sqlite.execute("SELECT refused FROM hapax_outbox WHERE refused IS NOT NULL")
    assert "PayloadTooLarge" in refused
    app.close()


def test_a_relay_outlives_the_engine_and_the_database(tmp_path: pathlib.Path, sqlite: Database) -> None:
    server = Server(tmp_path, f"sqlite:{tmp_path / 'engine.db'}").start()
    app = Hapax(server.url)
    charge = declare(app)
    connections: list[sqlite3.Connection] = []

    @app.outbox
    def connect() -> sqlite3.Connection:
        connections.append(sqlite3.connect(sqlite.file, timeout=20))
        return connections[-1]

    async def buy(order_id: int) -> hapax.Handle[str]:
        async with sqlite.transaction() as connection:
            return await app.submit_in(connection, charge.of(order_id))

    ends = time.monotonic() + 40

    def arrives(handle: hapax.Handle[str]) -> None:
        while True:
            try:
                assert hapax.sync(handle.execution())["type"] == "charge"
                return
            except hapax.Error:
                assert time.monotonic() < ends
                time.sleep(0.02)

    with app.relay(every="10ms"):
        arrives(asyncio.run(buy(1)))
        server.kill()
        left = asyncio.run(buy(2))
        server.start()
        arrives(left)
        before = len(connections)
        sqlite.execute("ALTER TABLE hapax_outbox RENAME TO elsewhere")
        while len(connections) == before:
            assert time.monotonic() < ends
            time.sleep(0.02)
        sqlite.execute("ALTER TABLE elsewhere RENAME TO hapax_outbox")
        arrives(asyncio.run(buy(3)))
    app.close()
    server.stop()


SHOP = """
import hapax, sqlite3

app = hapax.Hapax()

@app.outbox
def connect():
    return sqlite3.connect({file!r}, timeout=20)

@app.task
async def charge(order_id: int) -> str:
    return f"ch_{{order_id}}"
"""


@pytest.mark.works
def test_a_worker_relays_beside_its_work(tmp_path: pathlib.Path, server: Server, sqlite: Database) -> None:
    (tmp_path / "shop.py").write_text(SHOP.format(file=str(sqlite.file)))
    app = Hapax(server.url, namespace="relaying")
    charge = declare(app)

    async def buy() -> hapax.Handle[str]:
        async with sqlite.transaction() as connection:
            return await app.submit_in(connection, charge.of(7))

    handle = asyncio.run(buy())
    environment = {
        **os.environ,
        "HAPAX_URL": server.url,
        "HAPAX_NAMESPACE": "relaying",
        "PYTHONPATH": str(pathlib.Path(hapax.__file__).parents[1]),
    }
    command = [sys.executable, "-m", "hapax.worker.main", "shop:app", "--relay", "--until-idle", "2s"]
    subprocess.run(command, cwd=tmp_path, env=environment, check=True)
    assert handle.wait(timeout=0) == "ch_7"
    assert sqlite.execute("SELECT * FROM hapax_outbox") == []
    app.close()


def test_an_app_without_an_outbox_says_so(app: Hapax) -> None:
    with pytest.raises(hapax.InvalidRequest, match=r"@app\.outbox"):
        app.relay()
    with pytest.raises(hapax.InvalidRequest, match="psycopg 3"):
        Relay(app, object())


def context(attempt: int) -> TaskContext:
    return TaskContext({"execution": {"id": "x", "type": "t"}, "attempt": attempt, "effect_key": "e-1", "lease": "l"})


@pytest.mark.parametrize("dies", ["before the commit", "after the commit", "never"])
def test_an_effect_happens_once_whatever_dies(database: Database, dies: str) -> None:
    ran: list[int] = []

    async def book_payment(connection: Any, order_id: int) -> dict[str, int]:
        ran.append(order_id)
        await insert_payment(connection, order_id, f"run {len(ran)}")
        return {"order": order_id, "run": len(ran)}

    async def attempt(number: int) -> Any:
        async with database.transaction() as connection:
            result = await context(number).once_in(connection, book_payment, connection, 456)
            if number == 1 and dies == "before the commit":
                raise Died
        if number == 1 and dies == "after the commit":
            raise Died
        return result

    async def handler() -> Any:
        with contextlib.suppress(Died):
            await attempt(1)
        return [await attempt(2), await attempt(3)]

    second, third = asyncio.run(handler())
    last_run = 2 if dies == "before the commit" else 1
    assert second == third == {"order": 456, "run": last_run}
    assert len(ran) == last_run
    rows = [tuple(row) for row in database.execute("SELECT order_id, effect FROM payments")]
    assert rows == [(456, f"run {last_run}")]
    assert len(database.execute("SELECT * FROM hapax_effects")) == 1


def test_a_function_that_fails_leaves_no_row_even_if_the_caller_commits(database: Database) -> None:
    ran: list[int] = []

    async def book(connection: Any) -> int:
        ran.append(1)
        if len(ran) == 1:
            raise ValueError("no money")
        return len(ran)

    async def attempt(number: int) -> Any:
        async with database.transaction() as connection:
            with contextlib.suppress(ValueError):
                return await context(number).once_in(connection, book, connection)

    assert asyncio.run(attempt(1)) is None
    assert database.execute("SELECT * FROM hapax_effects") == []
    assert asyncio.run(attempt(2)) == asyncio.run(attempt(3)) == 2


def test_a_function_given_again_in_one_attempt_is_a_second_effect(sqlite: Database) -> None:
    """For the lines of an order, say, each in a transaction of its own."""

    def book(connection: sqlite3.Connection, line: int) -> int:
        connection.execute("INSERT INTO payments VALUES (?, 'x')", (line,))
        return line

    for attempt in (1, 2):
        ctx, results = context(attempt), []
        for line in (1, 2, 3):
            if attempt == 1 and line == 3:
                break  # it died
            with contextlib.closing(sqlite3.connect(sqlite.file)) as connection, connection:
                results.append(hapax.sync(ctx.once_in(connection, functools.partial(book, connection), line)))
    assert results == [1, 2, 3]
    assert sqlite.execute("SELECT order_id FROM payments ORDER BY order_id") == [(1,), (2,), (3,)]
    keys = [key for (key,) in sqlite.execute("SELECT effect_key FROM hapax_effects")]
    assert not any("0x" in key for key in keys)  # the same in every process


def test_a_plain_handler_uses_it_without_a_loop(sqlite: Database) -> None:
    for attempt in (1, 2):
        with contextlib.closing(sqlite3.connect(sqlite.file)) as connection, connection:

            def book() -> str:
                connection.execute("INSERT INTO payments VALUES (1, 'x')")
                return "booked"

            assert hapax.sync(context(attempt).once_in(connection, book)) == "booked"
    assert len(sqlite.execute("SELECT * FROM payments")) == 1


def test_a_worker_that_lost_its_lease_meanwhile_finds_the_row(postgres: Postgres, tmp_path: pathlib.Path) -> None:
    database = Database("psycopg-async", tmp_path, postgres)
    began, ran = asyncio.Event(), []

    async def book(connection: Any, who: str) -> str:
        ran.append(who)
        began.set()
        await asyncio.sleep(0.2)
        return who

    async def attempt(number: int, who: str) -> str:
        async with database.transaction() as connection:
            return await context(number).once_in(connection, book, connection, who)

    async def main() -> list[str]:
        slow = asyncio.ensure_future(attempt(1, "first"))
        await began.wait()
        return [await attempt(2, "second"), await slow]

    assert asyncio.run(main()) == ["first", "first"]
    assert ran == ["first"]
