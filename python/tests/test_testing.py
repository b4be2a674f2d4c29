"""What tests of users have: a clock that skips, stubs, a server, the replay of exported histories."""

from __future__ import annotations

import asyncio
import json
import subprocess
import time
from typing import Any

import pytest

import hapax
from hapax import Context, Hapax
from hapax.testing import Server, TestHapax, find_program, replay

shop = Hapax("sqlite:never-opened.db")


@shop.task
async def charge_card(cents: int) -> str:
    raise AssertionError("a test must not charge anybody")


@shop.workflow
async def subscription(ctx: Context, cents: int) -> list[str]:
    return [await month(ctx, cents) for _ in range(12)]


async def month(ctx: Context, cents: int) -> str:
    charge = await ctx.run(charge_card, cents)
    await ctx.sleep("30d")
    return charge


def test_a_year_of_renewals_takes_no_time(hapax_app: TestHapax) -> None:
    hapax_app.adopt(shop)
    charges = hapax_app.stub(charge_card, lambda cents: f"ch_{cents}")
    run = subscription.start_sync("s-1", 999)
    began = time.monotonic()
    hapax_app.advance("45d")
    assert len(charges) == 2
    assert hapax.sync(run.status()) == "suspended"
    hapax_app.advance("320d")
    assert run.wait(timeout=5) == ["ch_999"] * 12
    assert charges == [{"cents": 999}] * 12
    assert time.monotonic() - began < 10


def test_an_adopted_app_is_given_back(hapax_app: TestHapax) -> None:
    assert shop.url == "sqlite:never-opened.db"
    assert shop._transport is None
    assert charge_card is shop.registry.tasks["charge_card"]

    @hapax_app.task(retry=hapax.Retry(max_attempts=2, initial="1h"))
    def flaky(ctx: hapax.TaskContext) -> int:
        if ctx.attempt == 1:
            raise RuntimeError("once")
        return ctx.attempt

    handle = flaky.submit_sync()
    hapax_app.run_until_idle()
    assert hapax.sync(handle.status()) == "pending"
    hapax_app.advance("2h")
    assert handle.wait(timeout=5) == 2


@pytest.mark.works
def test_an_exported_history_is_replayed_against_changed_code(hapax_server: Server) -> None:
    app = hapax.Hapax(hapax_server.url)

    def declare(app: hapax.Hapax, step: str, *, more: bool = False) -> Any:
        app.task(name="charge")(lambda order: order)
        app.task(name="ship")(lambda order: order)

        @app.workflow(name="process")
        async def process(ctx: hapax.Context, order: int) -> int:
            left = order

            @ctx.on("less")
            def less(count: int) -> int:
                nonlocal left
                left -= count
                return left

            await ctx.run(step, order)
            await ctx.signal("packed")
            if more:
                await ctx.run("ship", order)
            return left

        return process

    process = declare(app, "charge")

    async def main() -> tuple[str, str, str]:
        async with app.worker():
            run = await process.start("order-é", 456)
            assert await run.update("less", 6, request_key="k") == 450
            while await run.status() != "suspended" or '"packed"' not in (waiting := await run.export()):
                await asyncio.sleep(0.02)
            program = [find_program(), "history", "order-é", "--export", "--url", hapax_server.url]
            by_program = await asyncio.to_thread(subprocess.check_output, program, text=True)
            await run.signal("packed", request_key="s")
            assert await run.result(timeout=20) == 450
            return waiting, by_program, await run.export()

    waiting, by_program, closed = asyncio.run(main())
    assert json.loads(waiting) == json.loads(by_program)
    for history in (waiting, by_program, closed):
        replay(process, history)
        with pytest.raises(
            hapax.Error, match="step 2: expected task 'charge', found task 'ship' at .*test_testing"
        ) as no:
            replay(declare(hapax.Hapax("memory:"), "ship"), history)
        assert no.value.code == "NonDeterminism"
    longer = declare(hapax.Hapax("memory:"), "charge", more=True)
    replay(longer, waiting)
    with pytest.raises(hapax.Error, match="order-é.*expected the end of the workflow, found task 'ship'"):
        replay(longer, closed)
    with pytest.raises(hapax.InvalidRequest, match="of a workflow 'process', not 'other'"):
        replay(app.workflow(name="other")(process.function), waiting)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"workflow_id": 7}'])
def test_what_is_no_exported_history_says_how_to_make_one(text: str) -> None:
    async def code(ctx: hapax.Context) -> None: ...

    with pytest.raises(hapax.InvalidRequest, match="this is no exported history"):
        replay(hapax.Hapax("memory:").workflow(code), text)


def test_a_real_server(hapax_server: Server) -> None:
    app = Hapax(hapax_server.url)
    assert hapax.sync(app.submit("t", idempotency_key="k")).created
    hapax_server.kill()
    hapax_server.start()  # it kept nothing: its store is memory
    assert hapax.sync(app.submit("t", idempotency_key="k")).created
