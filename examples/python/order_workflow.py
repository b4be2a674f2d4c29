"""A workflow: charge, reserve, ship; and compensation if a step fails."""

import asyncio
from dataclasses import dataclass

import hapax
from hapax import Context

app = hapax.Hapax()


@dataclass
class Order:
    id: int
    cents: int
    in_stock: bool = True


@app.task
async def charge_card(order: Order) -> str:
    return f"ch_{order.id}"


@app.task
async def reserve(order: Order) -> None:
    if not order.in_stock:
        raise hapax.FinalError("out of stock")


@app.task
def ship(order: Order) -> str:
    return f"parcel-{order.id}"


@app.task
async def refund(payment: str) -> None:
    print("refunded", payment)


@app.workflow
async def process_order(ctx: Context, order: Order) -> tuple[str, str]:
    payment = await ctx.run(charge_card.options(key=f"charge-order-{order.id}"), order)
    try:
        await ctx.run(reserve, order)
    except hapax.StepFailed as error:
        await ctx.run(refund, payment)
        raise hapax.WorkflowFailed("refunded: " + error.error["message"]) from error
    return payment, await ctx.run(ship, order)


async def main() -> None:
    async with app.worker():
        run = await process_order.start("order-456", Order(456, 9999))
        print(await run.result(timeout="30s"))
        try:
            sold_out = await process_order.start("order-457", Order(457, 9999, in_stock=False))
            await sold_out.result(timeout="30s")
        except hapax.WorkflowFailed as failed:
            print(failed.error["message"])


if __name__ == "__main__":
    asyncio.run(main())
