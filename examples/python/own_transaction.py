"""A task that exists if and only if the caller's own transaction commits."""

import asyncio
import sqlite3

import hapax
from hapax.sql.outbox import Relay
from hapax.sql.tables import OUTBOX

app = hapax.Hapax()


@app.task
async def send_invoice(order_id: int) -> str:
    return f"invoice for order {order_id}"


async def buy(shop: sqlite3.Connection, order_id: int, *, solvent: bool) -> "hapax.Handle[str]":
    with shop:  # commits, or rolls back if the block raises
        shop.execute("INSERT INTO orders VALUES (?)", (order_id,))
        handle = await app.submit_in(shop, send_invoice.options(key=f"invoice-{order_id}").of(order_id))
        if not solvent:
            raise ValueError("no money")
        return handle


async def main() -> None:
    shop = sqlite3.connect(":memory:")  # your own database
    shop.executescript("CREATE TABLE orders (id)" + ";" + OUTBOX["sqlite"])
    handle = await buy(shop, 456, solvent=True)
    try:
        await buy(shop, 457, solvent=False)
    except ValueError as error:
        print("order 457:", error)
    print("relayed:", await Relay(app, shop).move())
    async with app.worker():
        print(await handle.result(timeout="30s"))


if __name__ == "__main__":
    asyncio.run(main())
