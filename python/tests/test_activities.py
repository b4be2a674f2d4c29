"""Schedules and events declared in code."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

import hapax
from hapax import CloudEvent, Context, Hapax, Window
from hapax.codec import codec_of

pytestmark = pytest.mark.works


@dataclass
class Paid:
    order: int
    country: str


def test_a_schedule_is_told_to_the_server(app: Hapax) -> None:
    @app.cron("0 9 * * mon-fri", timezone="Europe/Berlin", misfire="compress")
    @app.workflow
    async def report(ctx: Context, window: Window | None = None) -> int:
        return window.missed if window else 0

    shown = hapax.sync(app.call("GET", "/v1/activities/report"))
    assert shown["workflow"] == {"type": "report"}
    assert shown["trigger"]["cron"]["expression"] == "0 9 * * mon-fri"
    assert shown["trigger"]["cron"]["misfire_policy"] == "compress"
    assert shown["from_code"] is True
    assert len(shown["next"]) == 5

    async def main() -> Any:
        async with app.worker():
            fired = await app.call("POST", "/v1/activities/report/trigger", headers={"idempotency-key": "now"})
            assert fired["workflow_id"] == "activity-report:trigger-now"
            return await report.handle(fired["workflow_id"]).result(timeout=20)

    assert asyncio.run(main()) == 0


def test_a_window_is_read_from_the_input() -> None:
    text = {"from": "2026-03-01T09:00:00.000Z", "to": "2026-03-02T09:00:00.000Z", "missed": 2}
    window = codec_of(Window).decode(text)
    assert (window.missed, window.from_.day, window.to.day) == (2, 1, 2)


def test_an_event_runs_its_function_once(app: Hapax) -> None:
    seen: list[CloudEvent[Paid]] = []
    ran = asyncio.Event()

    @app.on_event("order.paid", where={"/country": "DE"})
    async def pick(event: CloudEvent[Paid]) -> None:
        seen.append(event)
        ran.set()

    @app.on_event("order.paid", id="book-workflow")
    @app.workflow
    async def book(ctx: Context, event: CloudEvent[Paid]) -> int:
        return event.data.order

    async def main() -> None:
        async with app.worker():
            sent = await app.send_event("order.paid", Paid(456, "DE"), source="/shop", id="p-1")
            assert sorted(sent["started"]) == ["activity-book-workflow:p-1", "activity-pick:p-1"]
            again = await app.send_event("order.paid", Paid(456, "DE"), source="/shop", id="p-1")
            assert again["started"] == []
            other = await app.send_event("order.paid", Paid(457, "FR"), source="/shop", id="p-2")
            assert other["started"] == ["activity-book-workflow:p-2"]
            await asyncio.wait_for(ran.wait(), 20)
            assert await book.handle("activity-book-workflow:p-2").result(timeout=20) == 457
            with pytest.raises(hapax.IdempotencyConflict):
                await app.send_event("order.paid", Paid(1, "DE"), source="/shop", id="p-1")

    asyncio.run(main())
    assert [event.data for event in seen] == [Paid(456, "DE")]
    assert seen[0].source == "/shop"


def test_two_activities_of_one_id_are_refused(app: Hapax) -> None:
    @app.task
    async def nightly() -> None: ...

    app.cron("@daily")(nightly)
    with pytest.raises(hapax.InvalidRequest, match="nightly"):
        app.cron("@weekly")(nightly)
    app.cron("@weekly", id="weekly")(nightly)
