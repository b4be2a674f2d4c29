"""A FastAPI application in which a request that is sent again is carried out once, whatever dies in between.

The middleware answers the same Idempotency-Key with the same response; the order, and the task that charges for it, are
written in one transaction of the shop's own database; a relay submits the task; a worker runs beside the web server.

pip install fastapi uvicorn
uvicorn fastapi_orders:web
curl localhost:8000/orders -H 'Idempotency-Key: 8e03978e' --json '{"cents": 9999}'
"""

import contextlib
import os
import sqlite3
from collections.abc import AsyncGenerator
from typing import Any

from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

import hapax
from hapax.asgi import IdempotencyMiddleware
from hapax.sql.tables import EFFECTS, OUTBOX

app = hapax.Hapax()


class Order(BaseModel):
    cents: int


@app.task(queue="payments")
async def charge_card(order_id: int, cents: int) -> str:
    return f"charged {cents} for order {order_id} under {hapax.current().effect_key}"


@app.outbox
def connect() -> sqlite3.Connection:
    return sqlite3.connect(os.environ.get("SHOP_DB", "shop.db"), timeout=10)


@contextlib.asynccontextmanager
async def lifespan(web: FastAPI) -> AsyncGenerator[None, None]:
    with contextlib.closing(connect()) as shop:
        orders = "CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, cents INTEGER, charge TEXT);"
        shop.executescript(orders + OUTBOX["sqlite"] + EFFECTS["sqlite"])
    async with app, app.worker():
        with app.relay():
            yield


web = FastAPI(lifespan=lifespan)
web.add_middleware(IdempotencyMiddleware, hapax=app, required=["/orders"])


async def place(shop: sqlite3.Connection, order: Order) -> int:
    order_id = shop.execute("INSERT INTO orders (cents) VALUES (?)", (order.cents,)).lastrowid
    assert order_id is not None
    charge = await app.submit_in(shop, charge_card.options(key=f"charge-order-{order_id}").of(order_id, order.cents))
    shop.execute("UPDATE orders SET charge = ? WHERE id = ?", (charge.id, order_id))
    return order_id


@web.post("/orders", status_code=201)
async def post_order(order: Order) -> dict[str, Any]:
    with contextlib.closing(connect()) as shop, shop:
        # If this process dies after the commit, the request that comes again finds the order that it made.
        order_id = await hapax.current().once_in(shop, place, shop, order)
    return {"order": order_id}


@web.get("/orders/{order_id}")
async def get_order(order_id: int) -> dict[str, Any]:
    with contextlib.closing(connect()) as shop:
        found = shop.execute("SELECT cents, charge FROM orders WHERE id = ?", (order_id,)).fetchone()
    if found is None:
        raise HTTPException(404)
    cents, charge = found
    try:
        status = await charge_card.handle(charge).status()
    except hapax.NotFound:
        status = "in the outbox"
    return {"order": order_id, "cents": cents, "charge": status}
