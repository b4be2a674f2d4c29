"""A batch: one request, one commit, each task with its own outcome."""

import asyncio

import hapax

app = hapax.Hapax()


@app.task
async def resize(photo: int, width: int = 800) -> str:
    return f"photo {photo} at {width}"


async def main() -> None:
    calls = [resize.options(key=f"resize-{photo}").of(photo) for photo in range(100)]
    calls.append(resize.options(key="resize-7").of(7, width=1600))  # another input under a key that is taken
    outcomes = await app.submit_many(calls, return_errors=True)
    refused = [outcome for outcome in outcomes if isinstance(outcome, hapax.Error)]
    print("refused:", [error.code for error in refused])
    async with app.worker():
        results = [await outcome.result() for outcome in outcomes if isinstance(outcome, hapax.Handle)]
    print(len(results), "resized, the last one:", results[-1])


if __name__ == "__main__":
    asyncio.run(main())
