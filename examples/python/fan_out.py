"""A workflow that runs 1,000 steps at once, and waits for all of them."""

import asyncio

import hapax
from hapax import Context

app = hapax.Hapax()


@app.task
async def square(number: int) -> int:
    return number * number


@app.workflow
async def sum_of_squares(ctx: Context, count: int) -> int:
    return sum(await asyncio.gather(*(ctx.run(square, number) for number in range(count))))


async def main() -> None:
    async with app.worker():
        run = await sum_of_squares.start("squares-1000", 1000)
        print(await run.result(timeout="60s"))


if __name__ == "__main__":
    asyncio.run(main())
