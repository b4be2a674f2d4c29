"""What a handler can report besides a result: try again, give up, cancelled."""

import asyncio

import hapax

app = hapax.Hapax()


@app.task(retry=hapax.Retry(max_attempts=3, initial="10ms"))
async def flaky() -> str:
    if hapax.current().attempt < 3:
        raise ConnectionError("the other side is away")  # any exception: again later
    return "third time lucky"


@app.task
async def hopeless() -> None:
    raise hapax.FinalError("the card is stolen")  # never again


@app.task
async def endless() -> None:
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        print("told to stop")
        raise


async def main() -> None:
    async with app.worker(lease="1s"):
        print(await (await flaky.submit()).result(timeout="30s"))
        try:
            await (await hopeless.submit()).result(timeout="30s")
        except hapax.TaskFailed as failed:
            print("failed:", failed.error["message"])
        task = await endless.submit()
        while await task.status() != "running":
            await asyncio.sleep(0.01)
        await task.cancel(request_key="stop-1")
        try:
            await task.result(timeout="30s")
        except hapax.TaskCancelled:
            print("cancelled")


if __name__ == "__main__":
    asyncio.run(main())
