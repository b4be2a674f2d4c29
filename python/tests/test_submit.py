"""Submitting, finding and controlling, without a worker."""

from __future__ import annotations

import asyncio
import datetime
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

import hapax
from hapax import Hapax


@dataclass
class Order:
    id: int
    cents: int


def declare(app: Hapax) -> Any:
    @app.task(
        queue="payments",
        retry=hapax.Retry(max_attempts=5, initial="2s"),
        timeout="30s",
        identity="contextual",
        identity_fields=["/id"],
    )
    async def charge_card(order: Order) -> str:
        return f"ch_{order.id}"

    return charge_card


def test_the_same_key_is_the_same_task(app: Hapax) -> None:
    charge_card = declare(app)

    async def main() -> None:
        first = await charge_card.options(key="charge-order-456").submit(Order(456, 9999))
        again = await charge_card.options(key="charge-order-456").submit(Order(456, 9999))
        assert (first.created, again.created) == (True, False)
        assert first.id == again.id == again.receipt.execution["id"]
        assert again.receipt.match["strategy"] == "caller_provided"
        with pytest.raises(hapax.IdempotencyConflict) as conflict:
            await charge_card.options(key="charge-order-456").submit(Order(456, 1))
        assert conflict.value.existing_id == first.id
        assert conflict.value.input_hash != conflict.value.existing_input_hash
        assert not conflict.value.safe_to_retry

    asyncio.run(main())


def test_what_code_declares_is_shown_by_the_server(app: Hapax) -> None:
    charge_card = declare(app)
    app.configure_queue("payments", retention=timedelta(days=30), rate_limit="100/sec")
    first = charge_card.submit_sync(Order(1, 5))
    assert charge_card.submit_sync(Order(1, 6)).id == first.id  # contextual: the id decides
    shown = hapax.sync(app.call("GET", "/v1/types/charge_card"))
    assert shown["settings"]["max_attempts"] == 5
    assert shown["identity"] == {"strategy": "contextual", "from": "code", "steps": "contextual"}
    queue = hapax.sync(app.call("GET", "/v1/queues/payments"))
    assert queue["settings"]["rate_limit"] == "100/sec"
    assert queue["settings"]["retention"] == "30d"


def test_an_explanation_changes_nothing(app: Hapax) -> None:
    charge_card = declare(app).options(key="k")

    async def main() -> None:
        assert "would create" in str(await charge_card.explain(Order(1, 2)))
        handle = await charge_card.submit(Order(1, 2))
        assert handle.created
        assert f"would find the pending task {handle.id}" in str(await charge_card.explain(Order(1, 2)))
        assert "would be refused" in str(await charge_card.explain(Order(1, 3)))

    asyncio.run(main())


def test_on_duplicate_error_raises_with_the_api_body(app: Hapax) -> None:
    charge_card = declare(app).options(key="k", on_duplicate="error")
    handle = charge_card.submit_sync(Order(1, 2))
    with pytest.raises(hapax.TaskAlreadyExists) as caught:
        charge_card.submit_sync(Order(1, 2))
    assert caught.value.body["existing_execution_id"] == handle.id
    assert caught.value.body["error"] == "TaskAlreadyExists"
    assert caught.value.status == "pending"


def test_many_at_once_have_their_own_outcomes(app: Hapax) -> None:
    charge_card = declare(app)

    async def main() -> None:
        calls = [charge_card.options(key=f"c-{n}").of(Order(n, 1)) for n in range(1500)]
        handles = await app.submit_many(calls)
        assert [handle.created for handle in handles] == [True] * 1500
        again = await app.submit_many(calls)  # the same ids: the first answers
        assert [handle.id for handle in again] == [handle.id for handle in handles]
        mixed = [charge_card.options(key="c-1").of(Order(1, 2)), charge_card.options(key="new").of(Order(2, 2))]
        with pytest.raises(hapax.BatchError) as caught:
            await app.submit_many(mixed)
        conflict, made = caught.value.outcomes
        assert isinstance(conflict, hapax.IdempotencyConflict)
        assert made.receipt.execution["idempotency_key"] == "new"
        outcomes = await app.submit_many(mixed, return_errors=True)
        assert isinstance(outcomes[0], hapax.Error)
        assert isinstance(outcomes[1], hapax.Handle)

    asyncio.run(main())


def test_sixty_four_at_the_same_instant_create_one(app: Hapax) -> None:
    charge_card = declare(app).options(key="once")

    async def main() -> None:
        handles = await asyncio.gather(*(charge_card.submit(Order(1, 2)) for _ in range(64)))
        assert sum(handle.created for handle in handles) == 1
        assert len({handle.id for handle in handles}) == 1

    asyncio.run(main())


def test_the_spellings_of_other_designs(app: Hapax) -> None:
    @app.task
    async def charge_customer(order_id: int, amount: float) -> str:
        return "x"

    @app.workflow
    async def process_order(ctx: hapax.Context, order_id: int) -> None: ...

    async def main() -> None:
        handle = await app.enqueue(charge_customer, order_id=456, amount=99.99, task_id="charge-order-456")
        assert handle.receipt.execution["input"] == {"order_id": 456, "amount": 99.99}
        assert handle.receipt.execution["idempotency_key"] == "charge-order-456"
        by_place = await app.enqueue(charge_customer, 456, 99.99, task_id="charge-order-456")
        assert by_place.id == handle.id
        run = await app.start_workflow(process_order, workflow_id="order-456", order_id=456)
        assert run.receipt.execution["input"] == {"order_id": 456}
        other = await app.submit(
            "charge_customer", {"order": 1}, idempotency_key="charge-ORD-123", idempotency_ttl_days=30
        )
        assert other.receipt.match is not None
        created = datetime.datetime.fromisoformat(other.receipt.execution["created_at"].replace("Z", "+00:00"))
        expires = datetime.datetime.fromisoformat(other.receipt.match["expires_at"].replace("Z", "+00:00"))
        assert expires - created == timedelta(days=30)
        answer = await app.cancel_workflow("order-456", request_key="cancel-456")
        assert answer["idempotency_replayed"] is False
        answer = await app.cancel_workflow("order-456", request_key="cancel-456")
        assert answer["idempotency_replayed"] is True
        with pytest.raises(hapax.WorkflowCancelled):
            await run.result(timeout="5s")
        assert (await app.resume_workflow("order-456", request_key="resume-456"))["changed"]
        forked = await app.fork_workflow("order-456", request_key="fork-456", from_step=1)
        assert forked["forked_from"] == "order-456"

    asyncio.run(main())


def test_why_something_does_not_run(app: Hapax) -> None:
    @app.task(queue="slow")
    async def charge(order: int) -> None: ...

    @app.workflow
    async def process(ctx: hapax.Context) -> None: ...

    async def main() -> None:
        later = await charge.options(delay="1h").submit(1)
        why = await later.why()
        assert why["state"] == "pending"
        assert why["because"][0]["code"] == "delayed"
        assert why["because"][0]["run_at"] in why["sentences"][0]
        await app.call("POST", "/v1/queues/slow/pause")
        codes = [reason["code"] for reason in (await charge.handle(later.id).why())["because"]]
        assert "paused" in codes
        run = await process.start("order-é")
        assert (await run.why())["state"] == "pending"
        await run.cancel(request_key="c")
        closed = (await app.workflow_handle("order-é").why())["because"][0]
        assert (closed["code"], closed["how"]) == ("closed", "cancelled")
        with pytest.raises(hapax.NotFound):
            await app.handle(hapax.new_id()).why()
        assert (await asyncio.to_thread(lambda: hapax.sync(later.why())))["state"] == "pending"

    asyncio.run(main())


def test_control_operations_are_done_once_per_request_key(app: Hapax) -> None:
    async def main() -> None:
        handle = await app.submit("anything", options=hapax.SubmitOptions(queue="nobody"))
        strange = 'a "quoted" key with \\ and more'
        assert (await handle.cancel(request_key=strange))["idempotency_replayed"] is False
        assert (await handle.cancel(request_key=strange))["idempotency_replayed"] is True
        with pytest.raises(hapax.IdempotencyConflict):
            await handle.retry(request_key=strange)
        with pytest.raises(hapax.TaskCancelled) as cancelled:
            await handle.result(timeout=5)
        assert cancelled.value.execution["status"] == "cancelled"
        assert (await handle.retry(request_key="again"))["changed"]
        assert await handle.status() == "pending"
        with pytest.raises(hapax.InvalidRequest):
            await handle.cancel(request_key=" ")

    asyncio.run(main())


def test_a_wait_that_is_over_says_so(app: Hapax) -> None:
    handle = hapax.sync(app.submit("anything", options=hapax.SubmitOptions(queue="nobody")))
    with pytest.raises(hapax.Timeout):
        handle.wait(timeout=0.05)
    with pytest.raises(TimeoutError):
        asyncio.run(handle.result(timeout="50ms"))


def test_errors_have_their_members(app: Hapax) -> None:
    async def main() -> None:
        with pytest.raises(hapax.NotFound):
            await app.handle(hapax.new_id()).execution()
        with pytest.raises(hapax.InvalidRequest) as wrong:
            await app.submit("t", options=hapax.SubmitOptions(priority=100_000))
        assert wrong.value.pointer == "/priority"
        with pytest.raises(hapax.InvalidRequest):
            await app.submit("t", idempotency_key="x" * 300)

    asyncio.run(main())


def test_two_functions_of_one_name_are_refused(app: Hapax) -> None:
    declare(app)
    with pytest.raises(hapax.InvalidRequest, match="charge_card"):
        declare(app)


def test_threads_and_loops_share_an_app(app: Hapax) -> None:
    created: list[bool] = []

    async def submit_some(thread: int) -> None:
        handles = await asyncio.gather(*(app.submit("t", idempotency_key=f"{thread}-{n}") for n in range(20)))
        created.extend(handle.created for handle in handles)

    def run(thread: int) -> None:
        asyncio.run(submit_some(thread))
        created.append(hapax.sync(app.submit("t", idempotency_key=f"{thread}-0")).created)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(created) == [False] * 4 + [True] * 80


def test_several_apps_see_the_same_tasks(new_app: Callable[[], Hapax]) -> None:
    first, second = new_app(), new_app()
    assert hapax.sync(first.submit("t", idempotency_key="k")).created
    assert not hapax.sync(second.submit("t", idempotency_key="k")).created


def test_sync_is_for_calls_of_the_library() -> None:
    async def other() -> None:
        await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="asyncio"):
        hapax.sync(other())
