"""The relay: moves what the outbox has to the engine."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import logging
import threading
from typing import TYPE_CHECKING, Any

from hapax.codec import dump_json
from hapax.errors import Error, InvalidRequest, error_from
from hapax.sql.drivers import Driver, driver_of, is_connection

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from typing_extensions import Self

    from hapax.app import Hapax

_log = logging.getLogger("hapax.outbox")

BATCH = 1000
_AGAIN_S = 1.0

_Row = tuple[str, str, str]
"""Id, kind, request."""


class Relay:
    """Moves what the outbox has to the engine. Any number of them may run at once.

    `connection` is one that nothing else uses, because the relay commits on it; or a function that makes one (it may be
    async), and then `run` connects again when the database was away.
    """

    def __init__(self, app: Hapax, connection: Any) -> None:
        self._app = app
        self._driver: Driver | None = driver_of(connection) if is_connection(connection) else None
        self._connect: Callable[[], Any] | None = None
        self._connection: Any = None
        if self._driver is None:
            if not callable(connection):
                driver_of(connection)  # says what it takes
            self._connect = connection

    async def move(self, limit: int = BATCH) -> int:
        """Submits up to `limit` rows; how many are done with: submitted and removed, or refused for good.

        A submission that is refused stays, with the reason in `refused`, and does not hold up the others.
        """
        driver = await self._connected()
        postgres = driver.dialect == "postgres"
        columns = "id::text, kind, request" if postgres else "id, kind, request"
        await driver.begin()
        try:
            rows: Any = await driver.run(
                f"SELECT {columns} FROM hapax_outbox WHERE refused IS NULL ORDER BY id LIMIT ?"
                + (" FOR UPDATE SKIP LOCKED" if postgres else ""),
                limit,
            )
            if not postgres:
                # No transaction spans the call: the engine may write to the same file, from another process.
                await driver.end(commit=False)
            moved, refused = await self._submit(rows) if rows else ([], {})
            await self._settle(driver, moved, refused)
        except BaseException:
            with contextlib.suppress(Exception):
                await driver.end(commit=False)
            raise
        await driver.end(commit=True)
        return len(moved) + len(refused)

    async def _submit(self, rows: list[_Row]) -> tuple[list[str], dict[str, str]]:
        """Which rows were submitted, and which were refused for good, with the reason."""
        await self._app.registry.tell_all(self._app.calls)
        moved, refused = await self._submit_tasks([row for row in rows if row[1] == "task"])
        for row_id, kind, request in rows:
            if kind == "task":
                continue
            try:
                await self._app.calls.call("POST", "/v1/workflows", json.loads(request))
            except Error as error:
                if error.safe_to_retry:
                    continue
                refused[row_id] = str(error)
            else:
                moved.append(row_id)
        return moved, refused

    async def _submit_tasks(self, rows: list[_Row]) -> tuple[list[str], dict[str, str]]:
        moved: list[str] = []
        refused: dict[str, str] = {}
        if not rows:
            return moved, refused
        body = {"tasks": [json.loads(request) for _, _, request in rows]}
        try:
            answer = await self._app.calls.call("POST", "/v1/tasks/batch", body)
        except InvalidRequest as error:  # as a whole: it is too large
            if len(rows) == 1:
                return [], {rows[0][0]: str(error)}
            middle = len(rows) // 2
            for half in (rows[:middle], rows[middle:]):
                more_moved, more_refused = await self._submit_tasks(half)
                moved += more_moved
                refused.update(more_refused)
            return moved, refused
        for (row_id, _, _), receipt in zip(rows, answer.json["receipts"]):
            told = error_from(409, receipt) if "error" in receipt else None
            if told is None:
                moved.append(row_id)
            elif not told.safe_to_retry:
                refused[row_id] = str(told)
        return moved, refused

    async def _settle(self, driver: Driver, moved: list[str], refused: dict[str, str]) -> None:
        """Each in one statement, however many rows."""
        uuid = "::uuid" if driver.dialect == "postgres" else ""
        elements = "json_array_elements_text(?::text::json)" if uuid else "json_each(?)"
        if moved:
            ids = dump_json(moved).decode()
            await driver.run(f"DELETE FROM hapax_outbox WHERE id IN (SELECT value{uuid} FROM {elements})", ids)
        for row_id, reason in refused.items():
            _log.error("the outbox has a submission that is refused, %s: %s", row_id, reason)
            target = "?::text::uuid" if uuid else "?"
            await driver.run(f"UPDATE hapax_outbox SET refused = ? WHERE id = {target}", reason, row_id)

    async def _connected(self) -> Driver:
        if self._driver is None:
            assert self._connect is not None
            made = self._connect()
            self._connection = await made if inspect.isawaitable(made) else made
            self._driver = driver_of(self._connection)
        return self._driver

    async def _disconnect(self) -> None:
        if self._connect is None:
            return
        connection, self._connection, self._driver = self._connection, None, None
        with contextlib.suppress(Exception):
            closed = connection.close()
            if inspect.isawaitable(closed):
                await closed

    async def run(self, every_s: float = 0.2) -> None:
        """Moves until it is cancelled. If the engine or the database is away, it tries again."""
        try:
            while True:
                try:
                    pause_s = every_s if await self.move() == 0 else 0.0
                except Exception as error:
                    _log.warning("cannot relay: %s: %s; trying again", type(error).__name__, error)
                    await self._disconnect()
                    pause_s = _AGAIN_S
                await asyncio.sleep(pause_s)
        finally:
            await self._disconnect()


class RelayThread:
    """Relays of an app, on a thread of their own, so that a slow database holds up nothing else."""

    def __init__(self, app: Hapax, connects: list[Callable[[], Any]], every_s: float) -> None:
        self._relays = [Relay(app, connect) for connect in connects]
        self._every_s = every_s
        self._loop: asyncio.AbstractEventLoop | None = None
        self._running: asyncio.Future[Any] | None = None
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._main, name="hapax-relay", daemon=True)

    def _main(self) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            asyncio.run(self._run())

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._running = asyncio.gather(*(relay.run(self._every_s) for relay in self._relays))
        self._started.set()
        await self._running

    def __enter__(self) -> Self:
        self._thread.start()
        self._started.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._loop is not None
        assert self._running is not None
        with contextlib.suppress(RuntimeError):  # it has ended by itself
            self._loop.call_soon_threadsafe(self._running.cancel)
        self._thread.join(10)
