"""An effect in the program's own database that happens once: a booking and its result, whatever dies in between.

The handler fails after its commit, as if its worker had died there. The next attempt finds what was done.
"""

import asyncio
import contextlib
import sqlite3

import hapax
from hapax.sql.tables import EFFECTS  # as `hapax effects --sql sqlite` prints it

app = hapax.Hapax()


def connect() -> sqlite3.Connection:
    return sqlite3.connect("bank.db", timeout=10)  # your own database


def book(bank: sqlite3.Connection, order: int) -> int:
    booking = bank.execute("INSERT INTO bookings (order_id) VALUES (?)", (order,)).lastrowid
    assert booking is not None
    return booking


@app.task(retry=hapax.Retry(initial="1ms"))
async def book_order(ctx: hapax.TaskContext, order: int) -> int:
    with contextlib.closing(connect()) as bank, bank:
        booking = await ctx.once_in(bank, book, bank, order)
    if ctx.attempt == 1:
        raise ConnectionError("the worker dies here")
    return booking


async def main() -> None:
    with contextlib.closing(connect()) as bank:
        bookings = "CREATE TABLE IF NOT EXISTS bookings (id INTEGER PRIMARY KEY, order_id INTEGER);"
        bank.executescript(bookings + EFFECTS["sqlite"])
        async with app.worker():
            handle = await book_order.options(key="book-456").submit(456)
            booking = await handle.result(timeout="30s")
            print(f"booking {booking}, after {(await handle.execution())['attempt']} attempts")
        print("bookings:", bank.execute("SELECT count(*) FROM bookings WHERE order_id = 456").fetchone()[0])


if __name__ == "__main__":
    asyncio.run(main())
