"""Random programs on random schedules: what the code asks for depends on the history alone.

Each of 1,000 schedules is run by a worker that keeps the run in memory, by workers that sometimes have it, and by one
that replays it at every turn. All three must write the same history.
"""

from __future__ import annotations

import asyncio
import random
import sys
from typing import Any

import pytest

import hapax
from hapax import Context, Hapax

from .engine_in_little import Engine

SCHEDULES = 1000
app = Hapax("http://127.0.0.1:1")


async def leaf(ctx: Context, rng: random.Random, number: int) -> Any:
    choice = rng.randrange(7)
    if choice == 0:
        await asyncio.sleep(rng.randint(1, 50))
        return "slept"
    if choice == 1:
        return await ctx.signal(f"signal-{rng.randrange(3)}")
    if choice == 3:
        ctx.publish("place", number)
    drawn = ctx.random() if choice == 2 else 0.0
    try:
        assert drawn < 1
        return await ctx.run(f"task-{rng.randrange(4)}", number)
    except hapax.StepFailed as error:
        return error.status


async def gather(ctx: Context, rng: random.Random, depth: int) -> Any:
    return await asyncio.gather(*(node(ctx, random.Random(rng.random()), depth) for _ in range(rng.randint(2, 4))))


async def task_group(ctx: Context, rng: random.Random, depth: int) -> Any:
    if sys.version_info < (3, 11):
        return await gather(ctx, rng, depth)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(node(ctx, random.Random(rng.random()), depth)) for _ in range(rng.randint(2, 3))]
    return [task.result() for task in tasks]


async def with_timeout(ctx: Context, rng: random.Random, depth: int) -> Any:
    try:
        return await asyncio.wait_for(node(ctx, random.Random(rng.random()), depth), rng.randint(1, 20))
    except (asyncio.TimeoutError, TimeoutError):
        return ["late", await leaf(ctx, rng, -1)]


async def first_completed(ctx: Context, rng: random.Random, depth: int) -> Any:
    tasks = {asyncio.ensure_future(node(ctx, random.Random(rng.random()), depth)) for _ in range(3)}
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    results = [await task for task in done]
    if rng.random() < 0.5:
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        return results
    return results + [await task for task in pending]


async def as_completed(ctx: Context, rng: random.Random, depth: int) -> Any:
    started = [node(ctx, random.Random(rng.random()), depth) for _ in range(3)]
    results = []
    for each in asyncio.as_completed(started):
        results.append(await each)
        await leaf(ctx, rng, len(results))
    return results


async def queue(ctx: Context, rng: random.Random, depth: int) -> Any:
    items: asyncio.Queue[Any] = asyncio.Queue()

    async def produce(number: int) -> None:
        await items.put(await leaf(ctx, random.Random(rng.random()), number))

    producers = [asyncio.ensure_future(produce(number)) for number in range(3)]
    results = []
    for number in range(3):
        results.append(await items.get())
        await ctx.run("consumed", number)
    await asyncio.gather(*producers)
    return results


async def node(ctx: Context, rng: random.Random, depth: int) -> Any:
    if depth == 0:
        return await leaf(ctx, rng, 0)
    try:
        kinds = [gather, task_group, with_timeout, first_completed, as_completed, queue]
        return [str(await rng.choice(kinds)(ctx, rng, depth - 1)), await leaf(ctx, rng, depth)]
    except hapax.StepFailed as error:
        return error.status


@app.workflow
async def program(ctx: Context, seed: int) -> list[str]:
    rng = random.Random(seed)
    results: list[str] = []

    async def answer(number: int) -> str:
        results.append(f"asked {number}")
        return str(await node(ctx, random.Random(number), number % 2))

    for name in ("first", "second")[: rng.randrange(3)]:
        ctx.on(name, answer)
    for _ in range(rng.randint(1, 3)):
        try:
            results.append(str(await node(ctx, random.Random(rng.random()), rng.randint(0, 2))))
        except asyncio.CancelledError:
            results.append(str(await ctx.run("compensated", ctx.cancel_reason)))
            if rng.random() < 0.5:
                raise
    return results


def check(seed: int) -> tuple[int, int]:
    """The number of events and turns of this schedule."""
    modes = [Engine(program, seed, replay, {"seed": seed}) for replay in (0.0, 0.5, 1.0)]
    ends = [engine.run() for engine in modes]
    assert ends[0]["kind"] in ("completed", "failed"), ends[0]
    for engine, end in zip(modes[1:], ends[1:]):
        assert end == ends[0], f"seed {seed}"
        assert engine.shape() == modes[0].shape(), f"seed {seed}"
    return len(modes[0].history), modes[0].turns


@pytest.mark.parametrize("start", range(0, SCHEDULES, 100))
def test_a_run_that_is_kept_or_replayed_asks_for_the_same(start: int) -> None:
    events = [check(seed) for seed in range(start, start + 100)]
    assert sum(count for count, _ in events) > 1000


def test_the_schedules_have_what_is_hard() -> None:
    """Steps that are cancelled, requests to end that are answered and those that are not, updates with an answer."""
    seen: set[str] = set()
    for seed in range(100):
        engine = Engine(program, seed, 0.0, {"seed": seed})
        end = engine.run()
        seen |= {event["kind"] for event in engine.history}
        seen |= {event["name"] for event in engine.history if event.get("name") == "compensated"}
        seen |= {"answered" for event in engine.history if event.get("name", "").startswith("hapax.answer:")}
        seen.add(end["error"]["type"] if end["kind"] == "failed" else end["kind"])
    assert {"cancel_step", "cancel_requested", "publish", "compensated", "answered"} <= seen
    assert {"CancelRequested", "completed"} <= seen
