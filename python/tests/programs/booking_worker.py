"""A worker whose handler books a payment by `once_in`, and is killed before its commit, then after it.

Run as `python -m tests.programs.booking_worker URL NAMESPACE DRIVER FOLDER [POSTGRES_URL]`.
"""

from __future__ import annotations

import os
import pathlib
import signal
import sys
from types import SimpleNamespace
from typing import Any, cast

from tests.databases import Database, Postgres, insert_payment

import hapax

url, namespace, driver, folder, *more = sys.argv[1:]
app = hapax.Hapax(url, namespace=namespace)
postgres = cast("Postgres", SimpleNamespace(url=more[0])) if more else None
database = Database(driver, pathlib.Path(folder), postgres, is_new=False)


async def book_payment(connection: Any, order_id: int, attempt: int) -> str:
    await insert_payment(connection, order_id, f"attempt {attempt}")
    return f"booked by attempt {attempt}"


@app.task(name=f"book-{driver}", queue=driver, retry=hapax.Retry(max_attempts=10, initial="0s", max="0s"))
async def book(order_id: int) -> str:
    ctx = hapax.current()
    async with database.transaction() as connection:
        result = await ctx.once_in(connection, book_payment, connection, order_id, ctx.attempt)
        if ctx.attempt == 1:
            os.kill(os.getpid(), signal.SIGKILL)
    if ctx.attempt == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return result


app.work(lease="1s", until_idle="2s", concurrency=1)
