"""Workflows on a real engine."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from typing import Any

import pytest

import hapax
from hapax import Context, Hapax, SyncContext

pytestmark = pytest.mark.works


@dataclass
class Order:
    id: int
    cents: int


@dataclass
class Approval:
    by: str


KEPT = pytest.mark.parametrize("kept_runs", [1000, 0], ids=["kept", "replayed"])


def run(app: Hapax, main: Any, kept_runs: int = 1000) -> Any:
    async def with_worker() -> Any:
        async with app.worker(kept_runs=kept_runs):
            return await asyncio.wait_for(main(), 30)

    return asyncio.run(with_worker())


def declare_tasks(app: Hapax) -> tuple[Any, Any, Any]:
    @app.task
    async def charge_card(order: Order) -> str:
        return f"ch_{order.id}"

    @app.task
    def ship(order: Order, *, express: bool = False) -> int:
        return 2 if express else 1

    @app.task
    async def fail(message: str) -> None:
        raise hapax.FinalError(message)

    return charge_card, ship, fail


@KEPT
def test_an_order_from_payment_to_shipping(app: Hapax, kept_runs: int) -> None:
    charge_card, ship, _ = declare_tasks(app)

    @app.workflow
    async def process_order(ctx: Context, order: Order) -> tuple[str, int, str]:
        payment = await ctx.run(charge_card.options(key=f"charge-order-{order.id}"), order)
        answer = await ctx.signal("approve", Approval, timeout="1h")
        a, b = await asyncio.gather(ctx.run(ship, order), ctx.run(ship, order, express=True))
        await asyncio.sleep(0.05)
        return payment, a + b, answer.by

    async def main() -> None:
        started = await process_order.start("order-456", Order(456, 9999))
        again = await process_order.start("order-456", Order(456, 9999))
        assert (started.created, again.created) == (True, False)
        await started.signal("approve", Approval(by="ada"), request_key="approve-456")
        assert await started.result(timeout=20) == ("ch_456", 3, "ada")
        assert await again.result() == ("ch_456", 3, "ada")
        kinds = [event["kind"] for event in await started.history()]
        assert kinds.count("task") == 3
        charge = await app.call("GET", "/v1/tasks?idempotency_key=charge-order-456")
        assert len(charge["executions"]) == 1

    run(app, main, kept_runs)


@KEPT
def test_a_plain_function_is_a_workflow_too(app: Hapax, kept_runs: int) -> None:
    _, ship, fail = declare_tasks(app)

    @app.workflow
    def plain(ctx: SyncContext, order: Order) -> list[int]:
        first = ctx.run(ship, order)
        try:
            ctx.run(fail, "no")
        except hapax.StepFailed as error:
            assert error.type == "FinalError"
        both = ctx.all(ship.of(order), ship.of(order, express=True))
        ctx.sleep("20ms")
        return [first, *both, ctx.signal("more", int)]

    async def main() -> None:
        started = await plain.start("plain-1", Order(1, 1))
        await started.signal("more", 7, request_key="m")
        assert await started.result(timeout=20) == [1, 1, 2, 7]

    run(app, main, kept_runs)


@KEPT
def test_a_failed_step_can_be_answered_with_compensation(app: Hapax, kept_runs: int) -> None:
    charge_card, _, fail = declare_tasks(app)

    @app.workflow
    async def refunds(ctx: Context, order: Order) -> str:
        try:
            await ctx.run(fail, message="out of stock")
        except hapax.StepFailed as error:
            await ctx.run(charge_card, Order(-order.id, 0))
            raise hapax.WorkflowFailed("refunded") from error
        return "never"

    @app.workflow
    async def escapes(ctx: Context) -> None:
        await ctx.run(fail, message="out of stock")

    async def main() -> None:
        with pytest.raises(hapax.WorkflowFailed, match="WorkflowFailed: refunded"):
            await (await refunds.start("refund", Order(1, 1))).result(timeout=20)
        with pytest.raises(hapax.WorkflowFailed) as failed:
            await (await escapes.start("escape")).result(timeout=20)
        assert failed.value.type == "StepFailed"

    run(app, main, kept_runs)


@KEPT
def test_what_differs_between_replays_is_recorded(app: Hapax, kept_runs: int) -> None:
    _, ship, _ = declare_tasks(app)
    calls: list[int] = []

    def look() -> int:
        calls.append(1)
        return len(calls)

    @app.workflow
    async def records(ctx: Context, order: Order) -> list[Any]:
        before = [ctx.now().isoformat(), ctx.random(), str(ctx.uuid()), ctx.side_effect("look", look)]
        await ctx.run(ship, order)
        return [*before, ctx.version("change", 3)]

    async def main() -> None:
        now, number, uuid, looked, version = await (await records.start("r", Order(1, 1))).result(timeout=20)
        assert now.endswith("+00:00")
        assert 0 <= number < 1
        assert len(uuid) == 36
        assert (looked, version) == (1, 3)

    run(app, main, kept_runs)
    assert calls == [1]


@KEPT
def test_children_and_continuing_as_new(app: Hapax, kept_runs: int) -> None:
    _, ship, _ = declare_tasks(app)

    @app.workflow
    async def child(ctx: Context, number: int) -> int:
        return number * await ctx.run(ship, Order(1, 1), express=True)

    @app.workflow
    async def countdown(ctx: Context, number: int, total: int = 0) -> int:
        total += await ctx.run(child.options(child_id=f"child-{number}"), number)
        if number > 1:
            ctx.continue_as_new(number - 1, total)
        return total

    async def main() -> None:
        assert await (await countdown.start("count", 3)).result(timeout=20) == 12
        assert await child.handle("child-3").result(timeout=1) == 6

    run(app, main, kept_runs)


@KEPT
def test_the_aliases_inside_a_workflow(app: Hapax, kept_runs: int) -> None:
    @app.task
    async def charge_card(order_id: int) -> str:
        return f"{order_id}:{hapax.current().idempotency_key}"

    @app.workflow
    async def process_order(ctx: Context, order_id: int) -> str:
        return await ctx.execute_task(charge_card, order_id, task_id="payment-456")

    @app.workflow
    def by_name(ctx: SyncContext) -> list[str]:
        return [ctx.execute_task("charge_card", order_id=456, task_id=task_id) for task_id in (None, "payment-456")]

    async def main() -> None:
        started = await app.start_workflow(process_order, workflow_id="order-456", order_id=456)
        assert await started.result(timeout=20) == "456:payment-456"
        named = await app.start_workflow(by_name, workflow_id="order-457")
        assert await named.result(timeout=20) == ["456:None", "456:payment-456"]
        direct = await app.enqueue(charge_card, order_id=456, task_id="payment-456")
        assert not direct.created

    run(app, main, kept_runs)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="asyncio.timeout and TaskGroup are of 3.11")
@KEPT
def test_timeouts_and_task_groups(app: Hapax, kept_runs: int) -> None:
    _, ship, _ = declare_tasks(app)

    @app.workflow
    async def waits(ctx: Context) -> str:
        try:
            async with asyncio.timeout(0.05):
                await ctx.signal("never")
        except TimeoutError:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(ctx.run(ship, Order(n, 1))) for n in range(5)]
            return f"late, {sum(task.result() for task in tasks)}"
        return "in time"

    async def main() -> None:
        assert await (await waits.start("w")).result(timeout=20) == "late, 5"

    run(app, main, kept_runs)


@KEPT
def test_a_requested_cancel_can_be_answered_with_compensation(app: Hapax, kept_runs: int) -> None:
    charge_card, _, _ = declare_tasks(app)

    @app.workflow
    async def refunds(ctx: Context, order: Order) -> str:
        try:
            await ctx.signal("never")
        except asyncio.CancelledError:
            return f"{await ctx.run(charge_card, Order(-order.id, 0))}: {ctx.cancel_reason}"
        return "never"

    @app.workflow
    async def unaware(ctx: Context) -> None:
        await ctx.signal("never")

    async def main() -> None:
        answers = await refunds.start("answers", Order(7, 1))
        asked = await answers.cancel(request_key="c", mode="request", reason="too dear", grace="1h")
        assert asked["changed"]
        assert (await answers.cancel(request_key="c", mode="request", reason="too dear", grace="1h"))[
            "idempotency_replayed"
        ]
        assert await answers.result(timeout=20) == "ch_-7: too dear"
        started = await unaware.start("unaware")
        await app.cancel_workflow("unaware", request_key="c-2", mode="request")
        with pytest.raises(hapax.WorkflowCancelled):
            await started.result(timeout=20)

    run(app, main, kept_runs)


@KEPT
def test_values_signals_between_workflows_and_abandoned_waits(app: Hapax, kept_runs: int) -> None:
    @app.workflow
    async def listens(ctx: Context) -> list[Any]:
        ctx.publish("state", "early")
        try:
            await ctx.signal("go", timeout="20ms")
        except TimeoutError:
            ctx.publish("state", "late")
        try:
            await asyncio.wait_for(ctx.signal("go"), 0.02)  # abandoned: it takes no signal
        except asyncio.TimeoutError:
            ctx.publish("waits", True)
        return [await ctx.signal("go"), ctx.cancel_requested]

    @app.workflow
    async def speaks(ctx: Context, listener: str) -> str:
        await ctx.send_signal(listener, "go", {"from": "speaks"})
        try:
            await ctx.send_signal("nobody", "go")
        except hapax.StepFailed as error:
            return str(error.type)
        return "sent"

    async def main() -> None:
        listener = await listens.start("listener")
        for _ in range(400):
            values = await listener.values()
            if "waits" in values:
                break
            await asyncio.sleep(0.02)
        assert values == {"state": "late", "waits": True}
        assert await (await speaks.start("speaker", "listener")).result(timeout=20) == "WorkflowNotFound"
        assert await listener.result(timeout=20) == [{"from": "speaks"}, False]

    run(app, main, kept_runs)


def test_no_more_runs_are_kept_than_asked_for(app: Hapax) -> None:
    unwound: list[str] = []

    @app.workflow
    async def waits(ctx: Context) -> str:
        try:
            return str(await ctx.signal("go"))
        finally:
            unwound.append(ctx.workflow_id)

    @app.workflow
    def plain(ctx: SyncContext) -> str:
        try:
            return str(ctx.signal("go"))
        finally:
            unwound.append(ctx.workflow_id)

    async def main() -> None:
        runs = [await waits.start(f"w-{number}") for number in range(4)]
        runs += [await plain.start(f"p-{number}") for number in range(4)]
        while {await handle.status() for handle in runs} != {"suspended"} or len(unwound) < 6:
            await asyncio.sleep(0.02)
        assert len(unwound) == 6, "two are kept; the others were cancelled within their loops"
        for number, handle in enumerate(runs):
            await handle.signal("go", number, request_key=f"go-{number}")
        assert [await handle.result(timeout=20) for handle in runs] == [str(number) for number in range(8)]

    run(app, main, kept_runs=2)


def test_a_wrong_input_fails_the_workflow(app: Hapax) -> None:
    @app.workflow
    async def typed(ctx: Context, order: Order) -> None: ...

    async def main() -> None:
        await app.call("POST", "/v1/workflows", {"type": "typed", "workflow_id": "t", "input": {"id": "x"}})
        with pytest.raises(hapax.WorkflowFailed, match="/id: expected an integer"):
            await typed.handle("t").result(timeout=20)

    run(app, main)


def test_a_stuck_workflow_goes_on_with_the_right_code(new_app: Any) -> None:
    wrong, right = new_app(), new_app()

    @wrong.workflow(name="changing")
    async def looks_at_the_clock(ctx: Context) -> str:
        import time

        return str(time.time())

    @right.workflow(name="changing")
    async def asks_for_the_time(ctx: Context) -> str:
        return ctx.now().isoformat()

    async def main() -> None:
        async with wrong.worker():
            started = await looks_at_the_clock.start("c")
            for _ in range(400):
                execution = await started.execution()
                if execution.get("error") and execution["status"] == "suspended":
                    break
                await asyncio.sleep(0.05)
            assert execution["status"] == "suspended"
            assert execution["error"]["type"] == "NotInWorkflow"
            assert "ctx.now()" in execution["error"]["message"]
        async with right.worker():
            assert "T" in await started.result(timeout=25)

    asyncio.run(main())
