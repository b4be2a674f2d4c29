"""Uses that type checkers must accept, with the types that they must find."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from typing_extensions import assert_type

from hapax import Context, Handle, Hapax, SyncContext, TaskContext, WorkflowFailed, WorkflowHandle
from hapax.asgi import ASGIApp, IdempotencyMiddleware
from hapax.flask import IdempotencyMiddleware as WsgiMiddleware
from hapax.flask import WSGIApp

app = Hapax("memory:")


@dataclass
class Order:
    id: int


@app.task(queue="payments", identity="contextual", identity_fields=["/id"])
async def charge_card(order: Order) -> str:
    return str(order.id)


@app.task
def ship(order: Order, *, express: bool = False) -> int:
    return 1


@app.task
async def with_context(ctx: TaskContext, order: Order) -> str:
    return ctx.effect_key


@app.workflow
async def process_order(ctx: Context, order: Order) -> tuple[str, int]:
    payment = await ctx.run(charge_card.options(key=f"charge-{order.id}"), order)
    assert_type(payment, str)
    a, b = await asyncio.gather(ctx.run(ship, order), ctx.run(ship, order, express=True))
    assert_type(a + b, int)
    approval = await ctx.signal("approve", Order)
    assert_type(approval, Order)
    if not payment:
        raise WorkflowFailed("no payment")
    return payment, a + b


@app.workflow
def plain(ctx: SyncContext, number: int) -> int:
    shipped = ctx.all(ship.of(Order(number)), ship.of(Order(2), express=True))
    assert_type(shipped, list[int])
    return ctx.run(ship, Order(number))


@app.workflow
async def parent(ctx: Context) -> int:
    assert_type(await ctx.run(process_order, Order(1)), tuple[str, int])
    return await ctx.run(plain.options(child_id="x"), 3)


async def main() -> None:
    handle = await charge_card.options(key="k").submit(Order(1))
    assert_type(handle, Handle[str])
    assert_type(await handle.result(timeout="30s"), str)
    assert_type(ship.submit_sync(Order(1), express=True).wait(timeout=30), int)
    assert_type(await with_context.submit(Order(1)), Handle[str])
    many = await app.submit_many([charge_card.options(key=str(n)).of(Order(n)) for n in range(3)])
    assert_type(many, list[Handle[str]])
    run = await process_order.start("order-1", Order(1))
    assert_type(run, WorkflowHandle[tuple[str, int]])
    assert_type(await run.result(), tuple[str, int])
    assert_type(await run.update("reserve_more", 3, int, request_key="more-1"), int)
    print(await run.update("reserve_more", 3, request_key="more-1"))
    print(await charge_card.options(key="k").explain(Order(1)))
    enqueued = await app.enqueue(charge_card, order=Order(1), task_id="k")
    assert_type(enqueued, Handle[str])


async def once_with_context(ctx: TaskContext, order: Order) -> str:
    return ctx.effect_key


def once_plain(cents: int, *, fee: int = 1) -> int:
    return cents + fee


async def once(connection: object) -> None:
    assert_type(await app.once("k", charge_card, Order(1)), str)
    assert_type(await app.once("k", ship.options(tags=["a"]), Order(1), express=True), int)
    assert_type(await app.once("k", once_with_context, Order(1)), str)
    assert_type(await app.once("k", once_plain, 5, fee=2), int)
    assert_type(app.once_sync("k", once_plain, 5), int)
    assert_type(app.once_sync("k", ship, Order(1)), int)
    assert_type(await app.submit_in(connection, charge_card.of(Order(1))), Handle[str])
    assert_type(await app.start_in(connection, process_order, "order-1", Order(1)), WorkflowHandle[tuple[str, int]])


@app.outbox
def connect() -> object:
    return object()


def web(asgi: ASGIApp, wsgi: WSGIApp) -> None:
    IdempotencyMiddleware(asgi, app, required=["/orders*"], principal=lambda scope: str(scope["user"]), lease="10s")
    WsgiMiddleware(wsgi, hapax=app, required=lambda method, path: path == "/orders", ttl="1d")
    with app.relay(every="1s"):
        pass
