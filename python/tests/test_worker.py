"""Workers: handlers of every kind, their errors, cancellation, leases, draining."""

from __future__ import annotations

import asyncio
import contextvars
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

import hapax
from hapax import Hapax
from hapax.calls import Calls
from hapax.testing import Server
from hapax.transport.http import HttpTransport

pytestmark = pytest.mark.works


@dataclass
class Order:
    id: int
    cents: int = 0


def run(app: Hapax, main: Callable[[], Any], **options: Any) -> Any:
    async def with_worker() -> Any:
        async with app.worker(**options):
            return await asyncio.wait_for(main(), 30)

    return asyncio.run(with_worker())


def test_async_and_plain_handlers_run_where_they_belong(app: Hapax) -> None:
    @app.task
    async def on_the_loop(order: Order) -> str:
        return threading.current_thread().name

    @app.task
    def on_a_thread(order: Order, *, express: bool = False) -> tuple[str, bool]:
        return threading.current_thread().name, express

    async def main() -> None:
        here = threading.current_thread().name
        assert await (await on_the_loop.submit(Order(1))).result() == here
        thread, express = await (await on_a_thread.submit(Order(1), express=True)).result()
        assert thread.startswith("hapax-task")
        assert express is True

    run(app, main)


def test_a_handler_knows_its_task(app: Hapax) -> None:
    @app.task
    async def by_current(order: Order) -> dict[str, Any]:
        ctx = hapax.current()
        return {"id": ctx.id, "attempt": ctx.attempt, "effect": ctx.effect_key, "headers": dict(ctx.headers)}

    @app.task
    def by_parameter(ctx: hapax.TaskContext, order: Order) -> str:
        assert hapax.current() is ctx
        return ctx.idempotency_key or ""

    async def main() -> None:
        handle = await by_current.options(headers={"traceparent": "x"}).submit(Order(1))
        seen = await handle.result()
        assert seen["id"] == handle.id
        assert seen["attempt"] == 1
        assert seen["effect"]
        assert seen["headers"] == {"traceparent": "x"}
        assert await (await by_parameter.options(key="k").submit(Order(1))).result() == "k"

    run(app, main)
    with pytest.raises(RuntimeError, match="no task runs here"):
        hapax.current()


def test_a_failed_attempt_is_tried_again_with_the_same_effect_key(app: Hapax) -> None:
    seen: list[tuple[int, str]] = []

    @app.task(retry=hapax.Retry(max_attempts=3, initial="10ms"))
    async def flaky() -> str:
        ctx = hapax.current()
        seen.append((ctx.attempt, ctx.effect_key))
        if ctx.attempt < 3:
            raise ValueError("not yet")
        return "done"

    async def main() -> None:
        handle = await flaky.submit()
        assert await handle.result() == "done"
        attempts = (await handle.execution())["attempts"]
        assert attempts[0]["error"]["type"] == "ValueError"

    run(app, main)
    assert [attempt for attempt, _ in seen] == [1, 2, 3]
    assert len({key for _, key in seen}) == 1


def test_a_final_error_is_not_tried_again(app: Hapax) -> None:
    @app.task
    async def hopeless() -> None:
        raise hapax.FinalError("the card is stolen")

    @app.task
    def no_json() -> Any:
        return object()

    async def main() -> None:
        with pytest.raises(hapax.TaskFailed, match="the card is stolen") as failed:
            await (await hopeless.submit()).result()
        assert failed.value.type == "FinalError"
        assert failed.value.execution["attempt"] == 1
        with pytest.raises(hapax.TaskFailed, match="object has no JSON form"):
            await (await no_json.submit()).result()

    run(app, main)


def test_the_traceback_is_kept_its_end_if_it_is_long(app: Hapax) -> None:
    def deep(left: int, filler: str) -> None:
        if left == 0:
            raise hapax.FinalError("deep down" + filler, details={"left": left})
        deep(left - 1, filler)

    @app.task
    def dives(filler: str = "") -> None:
        deep(3, filler)

    async def main() -> None:
        with pytest.raises(hapax.TaskFailed) as failed:
            await (await dives.submit()).result()
        stack = failed.value.error["stack"]
        assert stack.startswith("Traceback")
        assert stack.count("in deep") == 4
        assert stack.endswith("deep down\n")
        assert failed.value.error["details"] == {"left": 0}
        with pytest.raises(hapax.TaskFailed) as failed:
            await (await dives.submit("ü" * 20_000)).result()
        stack = failed.value.error["stack"]
        assert 16_000 < len(stack.encode()) <= 16 * 1024
        assert stack.endswith("ü\n")

    run(app, main)


def test_a_wrong_input_fails_for_good_with_its_place(app: Hapax) -> None:
    @app.task
    async def charge(order: Order) -> None: ...

    async def main() -> None:
        handle = await app.submit("charge", {"id": "x"})
        with pytest.raises(hapax.TaskFailed, match="/id: expected an integer") as failed:
            await handle.result()
        assert failed.value.type == "InvalidInput"
        assert failed.value.execution["attempt"] == 1

    run(app, main)


def test_none_is_no_result(app: Hapax) -> None:
    @app.task
    async def nothing() -> None: ...

    async def main() -> None:
        handle = await nothing.submit()
        assert await handle.result() is None
        assert "result" not in await handle.execution()

    run(app, main)


def test_a_cancel_reaches_the_handler(app: Hapax) -> None:
    began = asyncio.Event()
    ended: list[str] = []

    @app.task
    async def endless() -> None:
        began.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append("async")
            raise

    thread_began = threading.Event()

    @app.task
    def asks(ctx: hapax.TaskContext) -> str:
        thread_began.set()
        while not ctx.cancelled:
            time.sleep(0.01)
        ended.append("thread")
        raise RuntimeError("stopped")

    async def main() -> None:
        for task, wait in ((endless, began.wait), (asks, lambda: asyncio.to_thread(thread_began.wait))):
            handle = await task.submit()
            await wait()
            await handle.cancel(request_key=f"cancel-{task.name}")
            with pytest.raises(hapax.TaskCancelled):
                await handle.result(timeout=20)

    run(app, main, lease="1s")
    assert sorted(ended) == ["async", "thread"]


def test_a_snooze_costs_no_attempt_and_retry_later_does(app: Hapax) -> None:
    seen: list[tuple[str, int]] = []

    @app.task
    async def snoozes() -> int:
        ctx = hapax.current()
        seen.append(("snoozes", ctx.attempt))
        if len([name for name, _ in seen if name == "snoozes"]) < 3:
            raise hapax.Snooze(after="10ms")
        return ctx.attempt

    @app.task(retry=hapax.Retry(max_attempts=2))
    async def later() -> int:
        ctx = hapax.current()
        seen.append(("later", ctx.attempt))
        if ctx.attempt == 1:
            raise hapax.RetryLater("busy", after="10ms")
        return ctx.attempt

    async def main() -> None:
        assert await (await snoozes.submit()).result(timeout=20) == 1
        assert await (await later.submit()).result(timeout=20) == 2

    run(app, main)
    assert seen.count(("snoozes", 1)) == 3


def test_progress_and_log_lines_are_shown(app: Hapax) -> None:
    @app.task
    async def long(ctx: hapax.TaskContext) -> str:
        ctx.progress({"done": 1})
        ctx.progress({"done": 2})
        ctx.log("half of it")
        shown: Any = {}
        while not shown.get("progress") or not shown.get("log"):  # it is shown while the handler runs
            await asyncio.sleep(0.02)
            shown = await app.handle(ctx.id).execution()
        return str(shown["progress"])

    @app.task
    def quick(ctx: hapax.TaskContext) -> str:
        ctx.log("one")
        ctx.log("two")
        return ctx.id

    @app.workflow
    async def steps(ctx: hapax.Context) -> str:
        return await ctx.run(quick)  # within its turn

    async def main() -> None:
        handle = await long.submit()
        assert await handle.result(timeout=20) == "{'done': 2}"
        execution = await handle.execution()
        assert execution["progress"] == {"done": 2}
        assert execution["log"]["lines"] == ["half of it"]
        await (await quick.submit()).result(timeout=20)
        started = await steps.start("steps-1")
        step = await app.handle(await started.result(timeout=20)).execution()
        assert step["log"]["lines"] == ["one", "two"]

    run(app, main, lease="3s")


def test_tags_and_headers_reach_handlers_steps_and_lists(app: Hapax) -> None:
    @app.task
    async def step() -> dict[str, str]:
        return dict(hapax.current().headers)

    @app.task
    async def tagged() -> list[str]:
        return hapax.current().tags

    @app.workflow
    async def traced(ctx: hapax.Context) -> dict[str, str]:
        return await ctx.run(step)

    async def main() -> None:
        assert await (await tagged.options(tags=["eu", "vip"]).submit()).result(timeout=20) == ["eu", "vip"]
        found = await app.call("GET", "/v1/tasks?type=tagged")
        assert [execution["tags"] for execution in found["executions"]] == [["eu", "vip"]]
        started = await traced.options(headers={"traceparent": "00-1-2-01"}).start("traced-1")
        assert await started.result(timeout=20) == {"traceparent": "00-1-2-01"}

    run(app, main)


def test_context_variables_reach_a_thread(app: Hapax) -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")

    @app.task
    def read() -> str:
        return variable.get()

    async def main() -> None:
        assert await (await read.submit()).result() == "set"

    variable.set("set")
    run(app, main)


def test_many_tasks_are_all_run_once(app: Hapax) -> None:
    runs: list[int] = []

    @app.task
    async def count(number: int) -> int:
        runs.append(number)
        return number

    async def main() -> None:
        handles = await app.submit_many([count.of(number) for number in range(500)])
        assert [await handle.result() for handle in handles] == list(range(500))

    run(app, main)
    assert sorted(runs) == list(range(500))


def test_a_worker_gives_back_what_it_does_not_know(new_app: Callable[[], Hapax]) -> None:
    first, second = new_app(), new_app()

    @first.task
    async def known_to_first() -> str:
        return "first"

    @second.task
    async def known_to_second() -> str:
        return "second"

    async def main() -> None:
        async with first.worker():
            handle = await second.submit("known_to_second")
            await (await known_to_first.submit()).result(timeout=20)
            async with second.worker():
                assert await handle.result(timeout=20) == "second"
        assert (await handle.execution())["attempt"] == 1

    asyncio.run(main())


def test_a_worker_says_who_it_is(app: Hapax) -> None:
    @app.task(queue="payments")
    async def charge() -> str:
        return "done"

    async def main() -> None:
        assert await (await charge.submit()).result(timeout=20) == "done"
        while not (workers := (await app.call("GET", "/v1/workers"))["workers"]):
            await asyncio.sleep(0.1)  # it is announced a moment after its first claim
        (worker,) = workers
        assert worker["name"] == "w-1"
        assert worker["sdk"] == {"name": "python", "version": hapax.__version__}
        assert (worker["host"], worker["pid"]) == (socket.gethostname(), os.getpid())
        assert (worker["queues"], worker["types"]) == (["payments"], ["charge"])

    run(app, main, name="w-1")


Calling = Callable[[str, str, Any], None]


@pytest.fixture
def http_app(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Hapax, list[Calling]]]:
    """An app whose worker claims in Python, and functions that see the answer of each of its calls."""
    namespace = f"http-{uuid.uuid4()}"
    transport = HttpTransport(server.url, headers={"hapax-namespace": namespace})
    app = Hapax(server.url, namespace=namespace, transport=transport)
    call, seeing = Calls.call, list[Calling]()

    async def watched(self: Calls, method: str, target: str, body: Any = None, **options: Any) -> Any:
        answer = await call(self, method, target, body, **options)
        for see in seeing:
            see(target, body, answer.json)
        return answer

    monkeypatch.setattr(Calls, "call", watched)
    yield app, seeing
    app.close()


def test_a_claim_whose_answer_is_lost_is_said_again(http_app: tuple[Hapax, list[Calling]]) -> None:
    app, seeing = http_app
    lost: list[str] = []

    def lose(target: str, body: Any, answer: Any) -> None:
        if target == "/v1/claims" and answer["claims"] and not lost:
            lost.append(answer["claims"][0]["lease"])
            raise hapax.StoreUnavailable("the connection ended", safe_to_retry=True)

    @app.task
    async def lease() -> str:
        return hapax.current().lease

    async def main() -> None:
        seeing.append(lose)
        assert await (await lease.submit()).result(timeout=20) == lost[0], "attempt 1, long before its lease ends"

    run(app, main)


def test_only_what_is_known_is_claimed_from_any_server(http_app: tuple[Hapax, list[Calling]]) -> None:
    app, seeing = http_app
    claimed: set[str] = set()

    def see(target: str, body: Any, answer: Any) -> None:
        if target == "/v1/claims":
            assert body["types"] == ["known"]
            claimed.update(claim["execution"]["type"] for claim in answer["claims"])

    @app.task
    async def known() -> str:
        return "done"

    async def main() -> None:
        for _ in range(5):
            await app.submit("of another program")
        seeing.append(see)
        assert await (await known.submit()).result(timeout=20) == "done"

    run(app, main)
    assert claimed == {"known"}


def test_uvloop_works_too(app: Hapax) -> None:
    uvloop = pytest.importorskip("uvloop")

    @app.task
    async def loop_name() -> str:
        return type(asyncio.get_running_loop()).__module__

    async def main() -> str:
        async with app.worker():
            return await (await loop_name.submit()).result(timeout=20)

    loop = uvloop.new_event_loop()
    try:
        assert loop.run_until_complete(main()).startswith("uvloop")
    finally:
        loop.close()


def test_draining_lets_handlers_end(app: Hapax) -> None:
    began = asyncio.Event()

    @app.task
    async def slow() -> str:
        began.set()
        await asyncio.sleep(0.3)
        return "ended"

    async def main() -> str:
        async with app.worker():
            handle = await slow.submit()
            await began.wait()
        execution = await handle.execution()
        return str(execution["status"])

    assert asyncio.run(main()) == "completed"


def test_work_ends_when_idle(app: Hapax) -> None:
    @app.task
    def double(number: int) -> int:
        return 2 * number

    handle = double.submit_sync(21)
    app.work(until_idle="200ms")
    assert handle.wait(timeout=1) == 42
