"""The library in one listing: tasks, workflows, signals, updates, compensation, cancels, cron, events, what a program
sees of it all, and a test. Run it again on the same store, and nothing happens twice."""

import asyncio
from dataclasses import dataclass

import hapax
from hapax import Context
from hapax.testing import TestHapax, replay

app = hapax.Hapax()
app.configure_queue("payments", retention="30d", rate_limit="100/sec")


@dataclass
class Order:
    id: int
    cents: int
    note: str = "none"  # an absent member takes its default


@dataclass
class Packed:
    by: str


@app.task(
    queue="payments",
    retry=hapax.Retry(max_attempts=5, initial="100ms"),
    timeout="30s",
    identity="contextual",
    identity_fields=["/id"],
)
async def charge_card(order: Order) -> str:
    return f"pay_{order.id}"


@app.task
def refund(payment: str) -> None:
    print("refunded", payment)


@app.workflow
async def process_order(ctx: Context, order: Order) -> str:
    payment = await ctx.run(charge_card, order)
    boxes = 1

    @ctx.on("more_boxes")
    def more_boxes(count: int) -> int:
        nonlocal boxes
        boxes += count
        return boxes

    try:
        packed = await asyncio.wait_for(ctx.signal("packed", Packed), 86_400)  # a durable timer
    except (asyncio.TimeoutError, asyncio.CancelledError):
        await ctx.run(refund, payment)
        raise
    ctx.publish("packed_by", packed.by)  # a value that others may read
    await ctx.send_signal("warehouse-1", "restock", order.id)  # from workflow to workflow
    return f"{payment} in {boxes} boxes"


@app.workflow
async def warehouse(ctx: Context) -> int:
    return await ctx.signal("restock", int)


@app.cron("0 3 * * *", timezone="Europe/Berlin", misfire="compress")
@app.workflow
async def report(ctx: Context, window: hapax.Window | None = None) -> None:
    ctx.log("a report of %s", window)


@app.on_event("order.paid", where={"/note": "DE"})
@app.workflow
async def pick(ctx: Context, event: hapax.CloudEvent[Order]) -> str:
    return f"paid {event.data.id}"


async def cancel_one() -> None:
    late = await process_order.options(reuse="reject").start("order-457", Order(457, 1))  # cancelled for good
    print("boxes:", await late.update("more_boxes", 1, int, request_key="boxes-457"))
    await late.cancel(request_key="cancel-457", mode="request", reason="by the customer")
    try:
        await late.result(timeout="30s")
    except hapax.WorkflowCancelled:
        print("cancelled")


async def main() -> None:
    async with app.worker():
        order = Order(456, 9999)
        charge = await charge_card.options(key="charge-456").submit(order)
        by_name = {"id": 456, "cents": 9999, "note": "none"}
        again = await app.submit("charge_card", by_name, idempotency_key="charge-456")
        print(await charge.result(timeout="30s"), charge.id == again.id)

        stock = await warehouse.start("warehouse-1")
        run = await process_order.start("order-456", order)
        print("boxes:", await run.update("more_boxes", 2, int, request_key="boxes-456"))
        await run.signal("packed", Packed(by="eve"), request_key="packed-456")
        print(await run.result(timeout="30s"), await stock.result(timeout="30s"), dict(await run.values()))
        await cancel_one()

        answer = await app.send_event("order.paid", Order(1, 2, "DE"), source="/shop", id="evt_1")
        for picked in [*answer["started"], *answer["duplicates"]]:
            print(await app.workflow_handle(picked).result(timeout="30s"))
        print((await charge.why())["state"], await app.once("greet-1", str.upper, "hello"))
        replay(process_order, await run.export())  # as `hapax history --export` writes it


def try_it() -> None:
    """A test: an engine in memory whose clock skips."""
    test = TestHapax()
    test.adopt(app)
    charges = test.stub(charge_card, lambda order: "pay_test")
    forgotten = process_order.start_sync("order-1", Order(1, 2))
    test.advance("2d")
    print(len(charges), hapax.sync(forgotten.status()))  # nobody packed it for a day
    test.close()


if __name__ == "__main__":
    asyncio.run(main())
    try_it()
