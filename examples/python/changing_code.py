"""Workflow code that changes while workflows run: what goes wrong, how it is found before the deploy, and how it is
done."""

from collections.abc import Awaitable, Callable

import hapax
from hapax import Context
from hapax.testing import TestHapax, replay

Code = Callable[[Context, int], Awaitable[str]]


async def first_version(ctx: Context, order: int) -> str:
    """What runs today."""
    await ctx.run("charge", order)
    await ctx.signal("packed")
    return str(await ctx.run("ship", order))


async def careless_version(ctx: Context, order: int) -> str:
    """What is wanted: an invoice after the charge. Orders that wait for the warehouse have passed that place without
    one."""
    await ctx.run("charge", order)
    await ctx.run("invoice", order)
    await ctx.signal("packed")
    return str(await ctx.run("ship", order))


async def careful_version(ctx: Context, order: int) -> str:
    await ctx.run("charge", order)
    if ctx.version("invoice-after-charge") >= 1:
        await ctx.run("invoice", order)
    await ctx.signal("packed")
    return str(await ctx.run("ship", order))


def declare(app: hapax.Hapax, code: Code) -> "hapax.Workflow[[int], str]":
    """One program with one version of the code, as each deploy has it."""

    @app.task
    def charge(order: int) -> str:
        return f"payment-{order}"

    @app.task
    def invoice(order: int) -> str:
        return f"invoice-{order}"

    @app.task
    def ship(order: int) -> str:
        return f"parcel-{order}"

    return app.workflow(name="process_order")(code)


def fits(code: Code, history: str) -> str:
    """The gate: does this code fit the history of a workflow that is running?"""
    try:
        replay(declare(hapax.Hapax(), code), history)
    except hapax.Error as error:
        return error.code
    return "it fits"


def main() -> None:
    before = TestHapax()
    waiting = declare(before, first_version).start_sync("order-456", 456)
    before.run_until_idle()  # charged; it waits for the warehouse
    history = hapax.sync(waiting.export())  # or: hapax history order-456 --export
    before.close()

    print("careless:", fits(careless_version, history))
    print("careful:", fits(careful_version, history))

    after = TestHapax()
    run = declare(after, careful_version).start_sync("order-457", 457)
    hapax.sync(run.signal("packed", request_key="packed-1"))
    after.run_until_idle()
    steps = [event["name"] for event in hapax.sync(run.history()) if event["kind"] == "task"]
    print("a new order:", *steps)
    after.close()


if __name__ == "__main__":
    main()
