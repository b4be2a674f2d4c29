"""Mistakes that type checkers must find, each on a line that ends with the comment `# wrong`."""

from __future__ import annotations

from dataclasses import dataclass

from hapax import Context, Hapax

app = Hapax("memory:")


@dataclass
class Order:
    id: int


@app.task
async def charge_card(order: Order) -> str:
    return str(order.id)


@app.task
def ship(order: Order, *, express: bool = False) -> int:
    return 1


def double(cents: int) -> int:
    return cents * 2


@app.workflow
async def process_order(ctx: Context, order: Order) -> int:
    payment: int = await ctx.run(charge_card, order)  # wrong
    await ctx.run(ship, order, fast=True)  # wrong
    await ctx.run(ship)  # wrong
    ctx.on(len, lambda: 1)  # wrong
    ctx.on("reserve_more")(3)  # wrong
    return payment


async def main() -> None:
    await charge_card.submit(456)  # wrong
    await charge_card.submit(Order(1), key="k")  # wrong
    await ship.submit(Order(1), express="yes")  # wrong
    number: int = await (await charge_card.submit(Order(1))).result()  # wrong
    charge_card.options(reuse="sometimes")  # wrong
    charge_card.options(keys="k")  # wrong
    await process_order.start(Order(1))  # wrong
    await process_order.start("order-1", "order")  # wrong
    app.task(identity="odd")  # wrong
    app.configure_queue("payments", max_running="many")  # wrong
    left: str = await process_order.handle("order-1").update("reserve_more", 1, int, request_key="k")  # wrong
    await process_order.handle("order-1").update("reserve_more", 1)  # wrong
    text: str = app.once_sync("k", double, 5)  # wrong
    await app.once(456, charge_card, Order(1))  # wrong
    print(number, text, left)
