"""A worker for an order and an update that kills itself before or after its Nth report, for test_crashes.py.

    crashing_order.py URL NAMESPACE LOG N before|after

With N = 0 it does not die. It ends when the workflow has, and prints the result and how many reports it made.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from typing import Any

import hapax
from hapax import Context, Hapax
from hapax.calls import Calls
from hapax.worker.native import NativeSource

URL, NAMESPACE, LOG, AT, WHEN = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5]
app = Hapax(URL, namespace=NAMESPACE)
reports = 0


def effect(name: str) -> None:
    file = os.open(LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{name} {hapax.current().effect_key}\n".encode())
    os.close(file)


@app.task
async def charge_card(order: int) -> str:
    effect("charge")
    return f"ch_{order}"


@app.task
def ship(order: int, *, express: bool = False) -> int:
    effect("express" if express else "ship")
    return 2 if express else 1


@app.task
async def thank(order: int) -> str:
    effect("thank")
    return "thanks"


@app.workflow
async def process_order(ctx: Context, order: int) -> list[Any]:
    ctx.publish("state", "charging")
    payment = await ctx.run(charge_card.options(key=f"charge-order-{order}"), order)
    approved = await ctx.signal("approve")
    a, b = await asyncio.gather(ctx.run(ship, order), ctx.run(ship, order, express=True))
    await asyncio.sleep(0.01)
    return [payment, approved, a + b, ctx.random() < 1, await ctx.run(thank, order)]


@app.task
async def wrap(count: int) -> int:
    effect("wrap")
    return count


@app.workflow
async def gifts(ctx: Context, left: int) -> int:
    @ctx.on("take")
    async def take(count: int) -> int:
        nonlocal left
        left -= await ctx.run(wrap, count)
        return left

    await ctx.signal("close")
    return left


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def is_now(when: str) -> bool:
    return reports == AT and when == WHEN


def watch_calls() -> None:
    """All in Python: the report is stored when the call is answered."""
    call = Calls.call

    async def watched(self: Calls, method: str, target: str, *args: Any, **options: Any) -> Any:
        global reports
        if target not in ("/v1/claims/finish", "/v1/claims/turns"):
            return await call(self, method, target, *args, **options)
        reports += 1
        if is_now("before"):
            die()
        answer = await call(self, method, target, *args, **options)
        if is_now("after"):
            die()
        return answer

    Calls.call = watched  # type: ignore[method-assign]


def state() -> str:
    return json.dumps(hapax.sync(app.call("GET", "/v1/workflows/order-456/history")), sort_keys=True)


def watch_engine() -> None:
    """With the engine: it stores the report on its own threads, which is seen in the history."""
    send = NativeSource._send

    def watched(self: NativeSource, *args: Any) -> None:
        global reports
        reports += 1
        if is_now("before"):
            die()
        before = state() if is_now("after") else ""
        send(self, *args)
        if is_now("after"):
            ends = time.monotonic() + 0.3  # the end of a step within its turn is stored with the turn
            while state() == before and time.monotonic() < ends:
                pass
            die()

    NativeSource._send = watched  # type: ignore[method-assign]


async def main() -> None:
    async with app.worker(lease="1s"):
        run = await process_order.start("order-456", 456)
        await run.signal("approve", "ada", request_key="approve-456")
        stock = await gifts.start("gifts", 5)
        left = await stock.update("take", 2, int, request_key="take-456", timeout="60s")
        await stock.signal("close", request_key="close-456")
        result = [*await run.result(timeout="60s"), left, await stock.result(timeout="60s")]
        print(json.dumps([result, reports]))


if __name__ == "__main__":
    watch_calls()
    watch_engine()
    asyncio.run(main())
