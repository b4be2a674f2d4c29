"""A workflow with a human in the loop: a signal, or a time-out."""

import asyncio
from dataclasses import dataclass

import hapax
from hapax import Context

app = hapax.Hapax()


@dataclass
class Approval:
    by: str


@app.workflow
async def expense(ctx: Context, cents: int, patience_s: float) -> str:
    try:
        approval = await asyncio.wait_for(ctx.signal("approve", Approval), patience_s)
    except asyncio.TimeoutError:
        return f"{cents} cents: nobody answered"
    return f"{cents} cents: approved by {approval.by}"


async def main() -> None:
    async with app.worker():
        approved = await expense.start("expense-1", 4200, 86_400)
        await approved.signal("approve", Approval(by="ada"), request_key="approve-1")
        print(await approved.result(timeout="30s"))
        forgotten = await expense.start("expense-2", 900, 0.1)
        print(await forgotten.result(timeout="30s"))


if __name__ == "__main__":
    asyncio.run(main())
