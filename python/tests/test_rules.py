"""The rules of workflows, one by one, without an engine."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import gc
import logging
import os
import random
import socket
import subprocess
import sys
import threading
import time
import uuid
from typing import Any

import pytest

import hapax
from hapax import Context, Hapax, SyncContext
from hapax.worker import turns
from hapax.workflow.errors import RunDropped
from hapax.workflow.run import Run, Turn

EXECUTION = {"id": "r", "workflow_id": "w", "created_at": "2026-01-01T00:00:00.000Z"}
NOW = "2026-01-01T00:00:10.000Z"


def workflow(function: Any) -> Any:
    return Hapax("http://127.0.0.1:1").workflow(function)


def first_turn(function: Any, events: Any = ()) -> Turn:
    run = Run(workflow(function), EXECUTION)
    turn = run.turn(list(events), NOW)
    run.drop()
    assert turn is not None
    return turn


def event(no: int, kind: str, step: int | None = None, **members: Any) -> dict[str, Any]:
    return {"no": no, "at": f"2026-01-01T00:00:{no:02}.000Z", "kind": kind, "step": step, **members}


def task(no: int, step: int, name: str = "t") -> dict[str, Any]:
    return event(no, "task", step, name=name)


def closed(no: int, step: int, value: Any = None) -> dict[str, Any]:
    return event(no, "closed", step, status="completed", value=value)


def test_outcomes_are_told_one_at_a_time_in_their_order() -> None:
    async def racing(ctx: Context) -> list[int]:
        order: list[int] = []

        async def one(number: int) -> None:
            await ctx.run("t", number)
            order.append(number)
            if len(order) == 1:
                await ctx.run("first", number)

        await asyncio.gather(*(one(number) for number in range(3)))
        return order

    commands = [task(1, 1), task(2, 2), task(3, 3)]
    outcomes = [closed(4, 3), closed(5, 1)]
    at_once = first_turn(racing, [*commands, *outcomes])
    run = Run(workflow(racing), EXECUTION)
    assert run.turn([], NOW) is not None
    first = run.turn([*commands, outcomes[0]], NOW)
    assert first is not None
    assert at_once.commands == first.commands
    assert at_once.commands[0]["start"] == {"type": "first", "input": 2}


def test_timers_become_steps_and_time_passes_with_them() -> None:
    async def sleeps(ctx: Context) -> float:
        loop = asyncio.get_running_loop()
        began = loop.time()
        await asyncio.sleep(3600)
        return loop.time() - began

    turn = first_turn(sleeps)
    assert turn.commands == [{"step": 1, "kind": "sleep", "until": "2026-01-01T01:00:10.000Z"}]
    later = first_turn(sleeps, [event(1, "sleep", 1), event(2, "fired", 1)])
    assert later.end == {"kind": "completed", "result": 3600.0}


def test_a_wait_that_is_over_in_time_leaves_no_timer_to_wait_for() -> None:
    async def in_time(ctx: Context) -> None:
        await asyncio.wait_for(ctx.run("t"), 60)
        await asyncio.get_running_loop().create_future()

    kinds = [command["kind"] for command in first_turn(in_time).commands]  # the order is that of this Python
    steps = {kind: step for step, kind in enumerate(kinds, 1)}
    events = [event(step, kind, step, name="t" if kind == "task" else None) for kind, step in steps.items()]
    turn = first_turn(in_time, [*events, closed(3, steps["task"])])
    assert turn.end["error"]["type"] == "NothingToWaitFor"


def test_a_cancelled_wait_cancels_its_step() -> None:
    async def late(ctx: Context) -> str:
        try:
            await asyncio.wait_for(ctx.run("t"), 1)
        except asyncio.TimeoutError:
            await asyncio.sleep(5)
        return "late"

    kinds = [command["kind"] for command in first_turn(late).commands]
    steps = {kind: step for step, kind in enumerate(kinds, 1)}
    events = [event(step, kind, step, name="t" if kind == "task" else None) for kind, step in steps.items()]
    turn = first_turn(late, [*events, event(3, "fired", steps["sleep"])])
    assert turn.commands[0] == {"step": 3, "kind": "cancel_step", "value": steps["task"], "name": "t"}
    assert turn.commands[1]["kind"] == "sleep"
    told = [*events, event(3, "fired", steps["sleep"]), event(4, "cancel_step", 3, value=steps["task"], name="t")]
    told += [event(5, "closed", steps["task"], status="cancelled"), event(6, "sleep", 4), event(7, "fired", 4)]
    assert first_turn(late, told).end == {"kind": "completed", "result": "late"}


def test_a_timer_that_is_not_needed_any_more_is_cancelled() -> None:
    async def in_time(ctx: Context) -> str:
        return str(await asyncio.wait_for(ctx.run("t"), 60))

    kinds = [command["kind"] for command in first_turn(in_time).commands]
    steps = {kind: step for step, kind in enumerate(kinds, 1)}
    events = [event(step, kind, step, name="t" if kind == "task" else None) for kind, step in steps.items()]
    turn = first_turn(in_time, [*events, closed(3, steps["task"], 7)])
    assert turn.commands == [{"step": 3, "kind": "cancel_step", "value": steps["sleep"]}]
    assert turn.end == {"kind": "completed", "result": "7"}


def requested(no: int, reason: Any = None) -> dict[str, Any]:
    return event(no, "cancel_requested", None, value=reason)


def told(step: int, known: int, reason: Any) -> dict[str, Any]:
    value = {"known": known, "reason": reason}
    return {"step": step, "kind": "side_effect", "name": "hapax.cancel_requested", "value": value}


async def orders(ctx: Context) -> Any:
    paid = []
    try:
        paid.append(await ctx.run("charge"))
        await ctx.signal("packed")
        await ctx.run("ship")
    except asyncio.CancelledError:
        assert ctx.cancel_requested
        return [ctx.cancel_reason, *[await ctx.run("refund", payment) for payment in paid]]
    return "shipped"


def orders_plainly(ctx: SyncContext) -> Any:
    paid = []
    try:
        paid.append(ctx.run("charge"))
        ctx.signal("packed")
        ctx.run("ship")
    except asyncio.CancelledError:
        return [ctx.cancel_reason, *[ctx.run("refund", payment) for payment in paid]]
    return "shipped"


@pytest.mark.parametrize("code", [orders, orders_plainly])
def test_a_requested_cancel_is_told_where_the_code_waits_for_something_else_than_tasks(code: Any) -> None:
    waiting = [task(1, 1, "charge"), closed(2, 1, "p"), event(3, "wait_signal", 2, name="packed")]
    turn = first_turn(code, [*waiting, requested(4, "too dear")])
    refund = {"type": "refund", "input": "p"}
    assert turn.commands == [told(3, 4, "too dear"), {"step": 4, "kind": "task", "start": refund}]
    later = [event(6, "signal", 2, name="packed"), event(7, "side_effect", 3, **record(turn)), task(8, 4, "refund")]
    done = first_turn(code, [*waiting, requested(4, "too dear"), *later, closed(9, 4, "r")])
    assert done.end == {"kind": "completed", "result": ["too dear", "r"]}, "the signal came after it was told"


@pytest.mark.parametrize("code", [orders, orders_plainly])
def test_a_task_that_runs_is_let_end_before_a_requested_cancel_is_told(code: Any) -> None:
    events = [task(1, 1, "charge"), requested(2, "too dear")]
    assert first_turn(code, events).commands == []
    turn = first_turn(code, [*events, closed(3, 1, "p")])
    assert turn.commands[0] == told(2, 3, "too dear")
    assert turn.commands[1]["start"] == {"type": "refund", "input": "p"}


def record(turn: Turn) -> dict[str, Any]:
    return {"name": turn.commands[0]["name"], "value": turn.commands[0]["value"]}


def test_a_time_limit_of_a_task_is_nothing_else_to_wait_for() -> None:
    async def limited(ctx: Context) -> Any:
        try:
            return await asyncio.wait_for(ctx.run("t"), 60)
        except asyncio.CancelledError:
            return "told"

    steps = {command["kind"]: command["step"] for command in first_turn(limited).commands}
    began = [event(step, kind, step, name="t" if kind == "task" else None) for kind, step in steps.items()]
    assert first_turn(limited, [*began, requested(3)]).commands == []
    ended = first_turn(limited, [*began, requested(3), closed(4, steps["task"], "p")])
    assert ended.end == {"kind": "completed", "result": "p"}, "it has no further step"


def test_a_requested_cancel_is_told_to_the_code_if_a_task_of_its_begins_a_step() -> None:
    async def two(ctx: Context, name: str) -> None:
        await ctx.run(name)
        await ctx.run(f"{name}-2")

    async def gathers(ctx: Context) -> str:
        try:
            await asyncio.gather(two(ctx, "a"), two(ctx, "b"))
        except asyncio.CancelledError:
            return f"told: {ctx.cancel_reason}"
        return "done"

    events = [task(1, 1, "a"), task(2, 2, "b"), requested(3, "enough")]
    assert first_turn(gathers, events).commands == []
    turn = first_turn(gathers, [*events, closed(4, 1)])
    assert turn.commands == [told(3, 4, "enough")]
    assert turn.end == {"kind": "completed", "result": "told: enough"}


def test_a_requested_cancel_that_escapes_cancels_the_workflow() -> None:
    async def unaware(ctx: Context) -> None:
        await asyncio.gather(ctx.run("t"), ctx.signal("s"))

    turn = first_turn(unaware, [task(1, 1), event(2, "wait_signal", 2, name="s"), requested(3, "enough")])
    assert turn.end == {
        "kind": "failed",
        "error": {"type": "CancelRequested", "message": "its cancellation was requested: enough"},
    }
    assert turn.commands == [told(3, 3, "enough")], "what is open ends with the workflow"


def test_a_requested_cancel_keeps_a_run_from_continuing_as_new() -> None:
    async def again(ctx: Context) -> None:
        await ctx.run("t")
        ctx.continue_as_new()

    def again_plainly(ctx: SyncContext) -> None:
        ctx.run("t")
        ctx.continue_as_new()

    for code in (again, again_plainly):
        end = first_turn(code, [task(1, 1), requested(2), closed(3, 1)]).end
        assert end["error"]["type"] == "CancelRequested"


def test_values_are_published_and_signals_sent_once() -> None:
    async def tells(ctx: Context) -> str:
        ctx.publish("progress", {"done": 1})
        try:
            await ctx.send_signal("order-7", "go", [1])
        except hapax.StepFailed as error:
            return str(error.type)
        return "sent"

    turn = first_turn(tells)
    assert turn.commands == [
        {"step": 1, "kind": "publish", "name": "progress", "value": {"done": 1}},
        {"step": 2, "kind": "send_signal", "name": "go", "workflow_id": "order-7", "value": [1]},
    ]
    events = [event(1, "publish", 1, name="progress", value={"done": 1}), event(2, "send_signal", 2, name="go")]
    assert first_turn(tells, [*events, closed(3, 2)]).end["result"] == "sent"
    nobody = event(3, "closed", 2, status="failed", error={"type": "WorkflowNotFound", "message": "none"})
    assert first_turn(tells, [*events, nobody]).end["result"] == "WorkflowNotFound"


def test_a_turn_says_which_step_its_code_waits_for_alone() -> None:
    async def alone(ctx: Context) -> None:
        ctx.publish("a", 1)
        await ctx.run("t")

    async def with_a_timer(ctx: Context) -> None:
        await asyncio.wait_for(ctx.run("t"), 60)

    async def for_two(ctx: Context) -> None:
        await asyncio.gather(ctx.run("t"), ctx.run("u"))

    assert first_turn(alone).waits_for == 2
    assert first_turn(alone, [event(1, "publish", 1, name="a", value=1), task(2, 2)]).waits_for is None
    assert first_turn(with_a_timer).waits_for is None
    assert first_turn(for_two).waits_for is None


def test_wait_and_as_completed_are_ordered() -> None:
    async def ordered(ctx: Context) -> list[list[int]]:
        futures = [asyncio.ensure_future(ctx.run("t", number)) for number in range(20)]
        done, pending = await asyncio.wait(futures)
        by_wait = [future.result() for future in done]
        assert not pending
        by_completion = [await each for each in asyncio.as_completed([ctx.run("u", number) for number in range(20)])]
        return [by_wait, by_completion]

    events = [task(n, n) for n in range(1, 21)] + [closed(20 + n, n, n) for n in range(1, 21)]
    turn = first_turn(ordered, events)
    assert [command["start"]["input"] for command in turn.commands] == list(range(20))
    events += [task(40 + n, 20 + n, "u") for n in range(1, 21)]
    events += [closed(60 + n, 41 - n, n) for n in range(1, 21)]
    end = first_turn(ordered, [{**e, "at": NOW} for e in events]).end
    assert end["result"] == [list(range(1, 21)), list(range(1, 21))]


def read_file() -> None:
    with open(os.devnull):
        pass


FORBIDDEN = {
    "time": lambda: time.time(),
    "time.monotonic": lambda: time.monotonic(),
    "time.sleep": lambda: time.sleep(0),
    "datetime.now": lambda: datetime.datetime.now(),
    "date.today": lambda: datetime.date.today(),
    "random": lambda: random.random(),
    "randint": lambda: random.randint(1, 6),
    "shuffle": lambda: random.shuffle([1, 2]),
    "uuid4": lambda: uuid.uuid4(),
    "open": read_file,
    "socket": lambda: socket.create_connection(("127.0.0.1", 1)),
    "thread": lambda: threading.Thread(target=print).start(),
    "process": lambda: subprocess.run(["true"], check=False),
}


@pytest.mark.parametrize("name", FORBIDDEN)
def test_what_a_replay_cannot_repeat_is_caught(name: str) -> None:
    async def forbidden(ctx: Context) -> None:
        with contextlib.suppress(Exception):  # catching it does not help
            FORBIDDEN[name]()

    turn = first_turn(forbidden)
    assert turn.end["kind"] == "stuck"
    assert turn.end["error"]["type"] == "NotInWorkflow"
    assert "test_rules.py:" in turn.end["error"]["message"]
    assert turn.commands == []
    FORBIDDEN["time"]()  # outside it works as ever


@pytest.mark.parametrize(
    "use",
    [
        lambda: asyncio.to_thread(print),
        lambda: asyncio.open_connection("127.0.0.1", 1),
        lambda: asyncio.create_subprocess_exec("true"),
    ],
)
def test_executors_sockets_and_processes_are_refused(use: Any) -> None:
    async def forbidden(ctx: Context) -> None:
        await use()

    turn = first_turn(forbidden)
    assert turn.end["error"]["type"] == "NotInWorkflow"
    assert "ctx.run" in turn.end["error"]["message"]


def test_logging_and_a_seeded_generator_are_fine(caplog: pytest.LogCaptureFixture) -> None:
    async def fine(ctx: Context) -> float:
        with caplog.at_level(logging.INFO):
            logging.getLogger("x").info("a line")
            ctx.log("another")
        return random.Random(7).random()

    assert first_turn(fine).end == {"kind": "completed", "result": random.Random(7).random()}
    assert [record.getMessage() for record in caplog.records] == ["a line", "w: another"]


def test_the_garbage_collector_may_look_at_the_clock() -> None:
    def callback(phase: str, info: Any) -> None:
        time.perf_counter()

    async def collects(ctx: Context) -> str:
        gc.collect()
        return "fine"

    gc.callbacks.append(callback)
    try:
        assert first_turn(collects).end == {"kind": "completed", "result": "fine"}
    finally:
        gc.callbacks.remove(callback)


def test_code_that_waits_for_nothing_is_stuck() -> None:
    async def forever(ctx: Context) -> None:
        await ctx.run("t")
        await asyncio.Event().wait()

    assert first_turn(forever).end == {"kind": "suspended"}
    error = first_turn(forever, [task(1, 1), closed(2, 1)]).end["error"]
    assert error["type"] == "NothingToWaitFor"
    assert "test_rules.py:" in error["message"]


def test_a_change_of_the_code_is_named_with_its_place() -> None:
    async def changed(ctx: Context) -> None:
        await ctx.run("t")
        await ctx.run("ship")

    error = first_turn(changed, [task(1, 1), closed(2, 1), task(3, 2, "refund")]).end["error"]
    assert error["type"] == "NonDeterminism"
    assert error["message"].startswith("step 2: expected task 'refund', found task 'ship' at ")
    assert "test_rules.py:" in error["message"]


def test_code_that_asks_for_less_than_before_is_found() -> None:
    async def less(ctx: Context) -> None:
        await ctx.run("t")

    error = first_turn(less, [task(1, 1), closed(2, 1), task(3, 2, "ship")]).end["error"]
    assert error["message"] == "step 2: expected task 'ship', found the end of the workflow"


def test_an_alias_is_the_same_task() -> None:
    app = Hapax("http://127.0.0.1:1")

    @app.task(name="new_name", aliases=["t"])
    async def renamed() -> int:
        return 1

    async def code(ctx: Context) -> int:
        return await ctx.run(renamed)

    assert first_turn(code, [task(1, 1), closed(2, 1, 5)]).end == {"kind": "completed", "result": 5}


def test_versions_let_old_runs_go_their_old_way() -> None:
    async def changed(ctx: Context) -> int:
        version = ctx.version("ship-first")
        if version == 0:
            await ctx.run("t")
        return version

    assert first_turn(changed, [task(1, 1), closed(2, 1)]).end["result"] == 0
    new = first_turn(changed)
    assert new.end["result"] == 1
    assert new.commands == [{"step": 1, "kind": "version", "name": "ship-first", "value": 1}]


def test_a_dropped_run_asks_for_nothing_more() -> None:
    refused: list[type[BaseException]] = []

    async def stubborn(ctx: Context) -> None:
        try:
            await ctx.run("t")
        finally:
            try:
                await ctx.run("cleanup")
            except BaseException as error:
                refused.append(type(error))
                raise

    def plain(ctx: SyncContext) -> None:
        try:
            ctx.run("t")
        finally:
            try:
                ctx.run("cleanup")
            except BaseException as error:
                refused.append(type(error))
                raise

    threads = threading.active_count()
    for function in (stubborn, plain):
        run = Run(workflow(function), EXECUTION)
        turn = run.turn([], NOW)
        assert turn is not None
        assert len(turn.commands) == 1
        run.drop()
        assert run.history.commands == []
    gc.collect()
    assert refused == [RunDropped, RunDropped]
    assert threading.active_count() == threads


def test_a_run_that_another_worker_advanced_is_replayed() -> None:
    async def code(ctx: Context) -> None:
        await ctx.run("t", ctx.random())

    run = Run(workflow(code), EXECUTION)
    assert run.turn([], NOW) is not None
    theirs = [event(1, "side_effect", 1, name="random", value=12345), task(2, 2)]
    assert run.turn(theirs, NOW) is None


def test_def_workflows_keep_the_rules_too() -> None:
    def looks(ctx: SyncContext) -> None:
        ctx.run("t")
        time.time()

    error = first_turn(looks, [task(1, 1), closed(2, 1)]).end["error"]
    assert error["type"] == "NotInWorkflow"

    def code(ctx: SyncContext) -> int:
        return int(ctx.run("t")) + int(ctx.run("t"))

    assert first_turn(code, [task(1, 1), closed(2, 1, 1)]).commands[0]["step"] == 2
    done = [task(1, 1), closed(2, 1, 1), task(3, 2), closed(4, 2, 2)]
    assert first_turn(code, done).end == {"kind": "completed", "result": 3}


@pytest.mark.works
def test_a_turn_that_blocks_is_logged_and_then_stuck(
    app: Hapax, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(turns, "BLOCKED_LOGGED_S", 0.3)
    monkeypatch.setattr(turns, "BLOCKED_STUCK_S", 1.0)

    @app.workflow
    async def computes(ctx: Context) -> None:
        while True:
            pass

    @app.workflow
    async def quick(ctx: Context) -> str:
        return "done"

    async def main() -> None:
        async with app.worker():
            blocked = await computes.start("blocked")
            for _ in range(200):
                execution = await blocked.execution()
                if execution.get("error") and execution["status"] == "suspended":
                    break
                await asyncio.sleep(0.05)
            assert execution["error"]["type"] == "WorkflowBlocked"
            assert execution["status"] == "suspended"
            assert await (await quick.start("quick")).result(timeout=20) == "done"
            await blocked.cancel(request_key="c")

    asyncio.run(main())
    assert any("its code must not block" in record.getMessage() for record in caplog.records)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="TaskGroup is of 3.11")
def test_a_failed_group_of_steps_counts_as_a_failed_step() -> None:
    async def code(ctx: Context) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(ctx.run("t"))

    failed = event(2, "closed", 1, status="failed", error={"type": "X", "message": "y"})
    assert first_turn(code, [task(1, 1), failed]).end["error"]["type"] == "StepFailed"


def test_a_step_that_failed_says_why() -> None:
    async def code(ctx: Context) -> None:
        try:
            await ctx.run("t")
        except hapax.StepFailed as error:
            assert (error.status, error.type) == ("timed_out", "AttemptTimeout")
            raise hapax.WorkflowFailed("compensated") from error

    ended = event(2, "closed", 1, status="timed_out", error={"type": "AttemptTimeout", "message": "y"})
    assert first_turn(code, [task(1, 1), ended]).end["error"] == {"type": "WorkflowFailed", "message": "compensated"}
