"""A task with a key: say it twice, it happens once."""

import asyncio
from dataclasses import dataclass

import hapax

app = hapax.Hapax()  # $HAPAX_URL, else sqlite:hapax.db


@dataclass
class Order:
    id: int
    cents: int


@app.task(queue="payments", retry=hapax.Retry(max_attempts=5, initial="2s"), timeout="30s")
async def charge_card(order: Order) -> str:
    return f"charged {order.cents} cents for order {order.id}"


async def main() -> None:
    async with app.worker():
        order = Order(456, 9999)
        first = await charge_card.options(key="charge-order-456").submit(order)
        again = await charge_card.options(key="charge-order-456").submit(order)
        print("the same task:", first.id == again.id)
        print(await again.result(timeout="30s"))
        try:
            await charge_card.options(key="charge-order-456").submit(Order(456, 1))
        except hapax.IdempotencyConflict as conflict:
            print("refused:", conflict.code)


if __name__ == "__main__":
    asyncio.run(main())
