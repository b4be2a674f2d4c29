"""`app.once`: a function that runs here, once for its key."""

from __future__ import annotations

import asyncio
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from typing import Any

import pytest

import hapax
from hapax import Hapax
from hapax.testing import Server

ROOT = pathlib.Path(__file__).resolve().parents[1]


@dataclass
class Order:
    id: int
    cents: int


class Till:
    """What ran, with attempt and effect key."""

    def __init__(self) -> None:
        self.ran: list[tuple[int, str]] = []

    def note(self) -> None:
        task = hapax.current()
        self.ran.append((task.attempt, task.effect_key))


@pytest.fixture
def till() -> Till:
    return Till()


@pytest.fixture
def short_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hapax.here.attempt.LEASE_S", 1.0)


async def execution_of(app: Hapax, key: str) -> Any:
    (found,) = (await app.call("GET", f"/v1/tasks?type=charge&idempotency_key={key}"))["executions"]
    return found


def test_it_runs_once_and_later_calls_get_its_result(app: Hapax, till: Till) -> None:
    async def charge(order: Order) -> Order:
        till.note()
        return Order(order.id, order.cents * 2)

    async def main() -> None:
        assert await app.once("k", charge, Order(1, 2)) == Order(1, 4)
        assert await app.once("k", charge, Order(1, 2)) == Order(1, 4)
        assert await app.once("other", charge, Order(1, 2)) == Order(1, 4)
        assert (await execution_of(app, "k"))["queue"] == "once"

    asyncio.run(main())
    assert [attempt for attempt, _ in till.ran] == [1, 1]
    with pytest.raises(RuntimeError, match="no task runs here"):
        hapax.current()


def test_a_plain_function_runs_on_a_thread_or_here_without_a_loop(app: Hapax) -> None:
    threads: list[threading.Thread] = []

    def charge(ctx: hapax.TaskContext, cents: int, *, fee: int = 1) -> int | None:
        assert ctx is hapax.current()
        threads.append(threading.current_thread())
        return None if cents == 0 else cents + fee

    async def main() -> None:
        assert await app.once("a", charge, 5, fee=2) == 7
        assert await app.once("a", charge, 5, fee=2) == 7

    asyncio.run(main())
    for _ in range(2):
        assert app.once_sync("b", charge, 5) == 6
        assert app.once_sync("nothing", charge, 0) is None
    assert len(threads) == 3
    assert threads[0] is not threading.current_thread()
    assert threads[1:] == [threading.current_thread()] * 2


def test_a_task_is_the_same_as_its_submission(app: Hapax, till: Till) -> None:
    @app.task(name="charge", queue="payments", identity="contextual", identity_fields=["/id"])
    async def charge_card(order: Order) -> int:
        till.note()
        return order.cents

    async def main() -> None:
        assert await app.once("k", charge_card.options(tags=["vip"]), Order(1, 2)) == 2
        handle = await charge_card.options(key="k").submit(Order(1, 2))
        assert not handle.created
        assert await handle.result() == 2
        assert (await execution_of(app, "k"))["tags"] == ["vip"]

    asyncio.run(main())
    assert len(till.ran) == 1


def test_of_many_callers_one_runs_and_all_get_the_result(app: Hapax, till: Till) -> None:
    async def charge() -> int:
        till.note()
        await asyncio.sleep(0.05)
        return len(till.ran)

    async def main() -> list[int]:
        return await asyncio.gather(*(app.once("k", charge) for _ in range(64)))

    assert asyncio.run(main()) == [1] * 64


def test_a_failure_is_the_callers_and_the_next_call_runs_again_under_the_same_effect_key(
    app: Hapax, till: Till
) -> None:
    def charge() -> str:
        till.note()
        if len(till.ran) < 3:
            raise ConnectionError("the bank is away")
        return "ok"

    for _ in range(2):
        with pytest.raises(ConnectionError, match="the bank is away"):
            app.once_sync("k", charge)
    assert app.once_sync("k", charge) == app.once_sync("k", charge) == "ok"
    assert [attempt for attempt, _ in till.ran] == [1, 2, 3]
    assert len({key for _, key in till.ran}) == 1


def test_a_final_error_ends_it_and_the_next_call_begins_anew(app: Hapax, till: Till) -> None:
    async def charge() -> str:
        till.note()
        await asyncio.sleep(0.05)
        if len(till.ran) == 1:
            raise hapax.FinalError("the card is stolen")
        return "ok"

    async def main() -> None:
        first = asyncio.ensure_future(app.once("k", charge))
        while not till.ran:
            await asyncio.sleep(0.001)
        with pytest.raises(hapax.TaskFailed, match="the card is stolen"):
            await app.once("k", charge)  # it waited for the first
        with pytest.raises(hapax.FinalError):
            await first
        assert await app.once("k", charge) == "ok"

    asyncio.run(main())
    (one, key), (two, other_key) = till.ran
    assert (one, two) == (1, 1)
    assert key != other_key


def test_a_final_error_is_kept_if_that_is_asked_for(app: Hapax, till: Till) -> None:
    @app.task(reuse="reject")
    def charge() -> str:
        till.note()
        raise hapax.FinalError("the card is stolen")

    with pytest.raises(hapax.FinalError):
        app.once_sync("k", charge)
    with pytest.raises(hapax.TaskFailed, match="the card is stolen"):
        app.once_sync("k", charge)
    assert len(till.ran) == 1


def test_another_payload_or_function_under_the_key(app: Hapax) -> None:
    def charge(cents: int) -> int:
        return cents

    app.once_sync("k", charge, 1)
    with pytest.raises(hapax.IdempotencyConflict) as conflict:
        app.once_sync("k", charge, 2)
    assert conflict.value.existing_id
    assert app.once_sync("k", charge, 1) == 1


def test_try_later_is_waited_for(app: Hapax, till: Till) -> None:
    def charge() -> str:
        till.note()
        if len(till.ran) == 1:
            raise hapax.Snooze(after="300ms")
        return "ok"

    with pytest.raises(hapax.Snooze):
        app.once_sync("k", charge)
    began = time.monotonic()
    assert app.once_sync("k", charge) == "ok"
    assert time.monotonic() - began > 0.2
    assert [attempt for attempt, _ in till.ran] == [1, 1]


def test_the_lease_is_kept_while_it_runs_even_if_it_blocks_the_loop(
    app: Hapax, till: Till, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hapax.here.attempt.LEASE_S", 3.0)  # a busy machine may stand still for a second

    async def charge() -> str:
        till.note()
        time.sleep(2.5)
        return "ok"

    results: list[Any] = []

    def call() -> None:
        results.append(asyncio.run(app.once("k", charge)))

    threads = [threading.Thread(target=call) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == ["ok", "ok"]
    assert len(till.ran) == 1


@pytest.mark.usefixtures("short_lease")
@pytest.mark.parametrize("other", ["has ended", "is running", "did not come"])
def test_a_lost_lease_means_that_the_other_attempt_counts(app: Hapax, till: Till, other: str) -> None:
    async def charge() -> str:
        number = len(till.ran)
        till.note()
        if number == 0:
            app._leases().release(hapax.current().lease)  # as if this process had been stopped
            await lost.wait()
        elif other == "is running":
            lost.set()
            await asyncio.sleep(0.3)
        return f"attempt {hapax.current().attempt}"

    async def wait_until_lost() -> None:
        while (await execution_of(app, "k"))["status"] == "running":
            await asyncio.sleep(0.02)

    async def main() -> None:
        nonlocal lost
        lost = asyncio.Event()
        first = asyncio.ensure_future(app.once("k", charge))
        while not till.ran:
            await asyncio.sleep(0.001)
        await wait_until_lost()
        if other == "did not come":
            lost.set()
            with pytest.raises(hapax.LeaseLost, match="call once again"):
                await first
            assert await app.once("k", charge) == "attempt 2"
            return
        assert await app.once("k", charge) == "attempt 2"
        lost.set()
        assert await first == "attempt 2"

    lost: asyncio.Event
    asyncio.run(main())
    assert [attempt for attempt, _ in till.ran] == [1, 2]


@pytest.mark.usefixtures("short_lease")
def test_an_async_function_that_lost_its_lease_is_stopped(app: Hapax, till: Till) -> None:
    stopped: list[bool] = []

    async def charge() -> str:
        till.note()
        context = hapax.current()
        if len(till.ran) > 1:
            return "second"
        keeper = app._leases()
        keeper.release(context.lease)
        while (await execution_of(app, "k"))["status"] == "running":
            await asyncio.sleep(0.02)
        waiting.append(asyncio.ensure_future(app.once("k", charge)))
        assert await waiting[0] == "second"
        keeper.keep(context.lease, 1.0, attempt_told(context, asyncio.current_task()))
        try:
            await asyncio.sleep(20)
        except asyncio.CancelledError:
            stopped.append(context.lease_lost)
            raise
        return "first"

    def attempt_told(context: Any, task: Any) -> Any:
        loop = asyncio.get_running_loop()

        def told(lost: bool) -> None:
            context._cancel(lease_lost=lost)
            loop.call_soon_threadsafe(task.cancel)

        return told

    waiting: list[Any] = []
    assert asyncio.run(app.once("k", charge)) == "second"
    assert stopped == [True]


@pytest.mark.usefixtures("short_lease")
def test_a_cancelled_task_stops_and_says_so(app: Hapax, till: Till) -> None:
    async def charge() -> None:
        till.note()
        handle = app.handle(hapax.current().id)
        await handle.cancel(request_key="stop")
        await asyncio.sleep(20)

    began = time.monotonic()
    with pytest.raises(hapax.TaskCancelled):
        asyncio.run(app.once("k", charge))
    assert time.monotonic() - began < 10
    assert hapax.sync(execution_of(app, "k"))["status"] == "cancelled"


def test_a_caller_that_stops_waiting(app: Hapax, till: Till) -> None:
    """An async function stops with its caller, and the next call runs it again; a plain one ends on its thread."""
    go_on = threading.Event()

    async def charge() -> str:
        till.note()
        if len(till.ran) == 1:
            await asyncio.sleep(20)
        return "async"

    def ship() -> str:
        till.note()
        assert go_on.wait(20)
        return "plain"

    async def main() -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(app.once("k", charge), 0.2)
        assert await app.once("k", charge) == "async"
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(app.once("k", ship), 0.2)
        again = asyncio.ensure_future(app.once("k", ship))
        await asyncio.sleep(0)
        go_on.set()
        assert await again == "plain"

    asyncio.run(main())
    assert [attempt for attempt, _ in till.ran] == [1, 2, 1]


def test_the_engine_may_be_away_when_it_ends(own_server: Server) -> None:
    app = Hapax(own_server.url)
    ran: list[int] = []

    def charge() -> str:
        ran.append(1)
        own_server.kill()
        threading.Timer(0.5, own_server.start).start()
        return "ok"

    assert app.once_sync("k", charge) == app.once_sync("k", charge) == "ok"
    assert len(ran) == 1
    app.close()


def test_what_it_cannot_run_it_says(app: Hapax) -> None:
    async def charge() -> None: ...

    def strange() -> object:
        return object()

    async def again() -> None:
        await app.once("self", again)

    with pytest.raises(hapax.InvalidRequest, match="by its name"):
        app.once_sync("k", lambda: None)
    with pytest.raises(hapax.InvalidRequest, match=r"await app\.once"):
        app.once_sync("k", charge)
    with pytest.raises(hapax.InvalidRequest, match="wait forever"):
        asyncio.run(app.once("self", again))
    with pytest.raises(hapax.InvalidInput, match="no JSON form"):
        app.once_sync("k", strange)
    with pytest.raises(hapax.InvalidRequest, match="concurrency_key"):
        app.once_sync("k", app.task(strange).options(concurrency_key="c"))


def test_a_process_that_is_killed_leaves_it_to_the_next(own_server: Server) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    program = [sys.executable, str(ROOT / "tests" / "programs" / "once.py"), own_server.url]
    ends = [subprocess.run(program, env=environment, capture_output=True, text=True, check=False) for _ in range(3)]
    assert [done.returncode for done in ends] == [-signal.SIGKILL, 0, 0], ends[-1].stderr
    effect_keys = {line for done in ends for line in done.stdout.splitlines() if line.startswith("effect key")}
    assert len(effect_keys) == 1
    assert "result: charged by attempt 2" in ends[1].stdout
    assert ends[2].stdout == "result: charged by attempt 2\n"
