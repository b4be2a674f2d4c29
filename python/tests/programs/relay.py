"""Relays an outbox until it is empty, or until it kills itself at a point that the test names.

Run as `python -m tests.programs.relay URL NAMESPACE DRIVER FOLDER POSTGRES_URL LIMIT DIES_AT`. Points are counted from
1: before and after each statement, each call of the engine, and each commit. It exits with 0 once the outbox is empty.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import pathlib
import signal
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

from tests.databases import Database, Postgres

import hapax
from hapax.sql import drivers
from hapax.sql.relay import Relay

url, namespace, driver, folder, postgres_url, limit, dies_at = sys.argv[1:]
app = hapax.Hapax(url, namespace=namespace)
postgres = cast("Postgres", SimpleNamespace(url=postgres_url))
database = Database(driver, pathlib.Path(folder), postgres, is_new=False)
points = itertools.count(1)


def may_die() -> None:
    if next(points) == int(dies_at):
        os.kill(os.getpid(), signal.SIGKILL)


def dying(call: Callable[..., Any]) -> Callable[..., Any]:
    async def wrapped(*args: Any, **kwargs: Any) -> Any:
        may_die()
        result = await call(*args, **kwargs)
        may_die()
        return result

    return wrapped


async def main() -> None:
    async with database.relay_connection() as connection:
        relay = Relay(app, connection)
        made = drivers.driver_of(connection)
        made.run, made.end = dying(made.run), dying(made.end)  # type: ignore[method-assign]
        relay._driver = made
        app.calls.call = dying(app.calls.call)  # type: ignore[method-assign]
        # The locks of one that was killed may outlive it for a moment: there is nothing to move, and yet it is there.
        while await relay.move(int(limit)) or await made.run("SELECT 1 FROM hapax_outbox LIMIT 1"):
            await asyncio.sleep(0.01)


asyncio.run(main())
