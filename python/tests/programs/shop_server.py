"""A shop behind the Idempotency-Key middleware. Run as `python shop_server.py URL NAMESPACE SHOP_DB PORT`.

The key `die-before` and `die-after` end the process with their first attempt: before and after its order is committed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import sys

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

import hapax
from hapax.asgi import IdempotencyMiddleware

url, namespace, shop_db, port = sys.argv[1:]
app = hapax.Hapax(url, namespace=namespace)


def place(shop: sqlite3.Connection, key: str) -> int:
    shop.execute("INSERT INTO orders (key) VALUES (?)", (key,))
    (order_id,) = shop.execute("SELECT last_insert_rowid()").fetchone()
    return int(order_id)


async def post_order(request: Request) -> JSONResponse:
    key, task = request.headers["idempotency-key"], hapax.current()
    dies = key if task.attempt == 1 else ""
    with contextlib.closing(sqlite3.connect(shop_db, timeout=20)) as shop, shop:
        order_id = await task.once_in(shop, place, shop, key)
        if dies == "die-before":
            os.kill(os.getpid(), signal.SIGKILL)
    if dies == "die-after":
        os.kill(os.getpid(), signal.SIGKILL)
    return JSONResponse({"order": order_id, "attempt": task.attempt}, 201)


web = Starlette(routes=[Route("/orders", post_order, methods=["POST"])])
web.add_middleware(IdempotencyMiddleware, hapax=app, required=True, lease="1s")
uvicorn.run(web, port=int(port), log_level="error")
