"""What a program sees of its tasks and workflows: steps, lists, and why something does not run."""

import asyncio
import contextlib

import hapax
from hapax import Context

app = hapax.Hapax()


@app.task(queue="addresses")
async def check(address: str) -> str:
    if address == "nowhere":
        raise hapax.FinalError("there is no such street")
    return address


@app.workflow
async def deliver(ctx: Context, address: str) -> str:
    checked = await ctx.run(check, address)
    return f"{checked}, approved by {await ctx.signal('approved', str)}"


async def main() -> None:
    wrong = await check.options(key="check-nowhere").submit("nowhere")
    run = await deliver.start("delivery-7", "Main Street")
    async with app.worker():
        with contextlib.suppress(hapax.TaskFailed):
            await wrong.result(timeout="30s")
        while "wait_signal" not in [event["kind"] for event in await run.history()]:
            await asyncio.sleep(0.01)

    for event in await run.history():
        if event["kind"] in ("task", "wait_signal"):
            print(event["step"], event["kind"], event["name"])
    failed = await app.call("GET", "/v1/tasks?queue=addresses&status=failed")
    for task in failed["executions"]:
        print(f"{task['type']}: {task['error']['message']}")
    for reason in (await run.why())["because"]:
        print("it", reason["code"], reason["name"])

    await run.signal("approved", "eve", request_key="approve-7")
    async with app.worker():
        print(await run.result(timeout="30s"))


if __name__ == "__main__":
    asyncio.run(main())
