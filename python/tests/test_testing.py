"""The pytest plugin: a clock that skips, stubs, a server."""

from __future__ import annotations

import time

import hapax
from hapax import Context, Hapax
from hapax.testing import Server, TestHapax

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


def test_a_real_server(hapax_server: Server) -> None:
    app = Hapax(hapax_server.url)
    assert hapax.sync(app.submit("t", idempotency_key="k")).created
    hapax_server.kill()
    hapax_server.start()  # it kept nothing: its store is memory
    assert hapax.sync(app.submit("t", idempotency_key="k")).created
