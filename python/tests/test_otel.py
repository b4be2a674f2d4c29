"""Spans of submissions and handlers, with the SDK of OpenTelemetry."""

from __future__ import annotations

import asyncio
import pathlib
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

import hapax
import hapax.otel
from hapax import Hapax

from .databases import Database

pytestmark = pytest.mark.works


class Tracer:
    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    def spans(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.exporter.get_finished_spans() if span.name == name]

    def span(self, name: str) -> ReadableSpan:
        (found,) = self.spans(name)
        return found


@pytest.fixture
def tracer(app: Hapax) -> Iterator[Tracer]:
    tracer = Tracer()
    hapax.otel.instrument(app, tracer_provider=tracer.provider)
    yield tracer
    hapax.otel.uninstrument(app)


def ids(span: ReadableSpan) -> tuple[int, int]:
    context = span.get_span_context()
    assert context is not None
    return context.trace_id, context.span_id


def assert_child(child: ReadableSpan, parent: ReadableSpan) -> None:
    assert child.parent is not None
    assert (child.parent.trace_id, child.parent.span_id) == ids(parent)


def test_a_handler_is_a_child_of_the_submission(app: Hapax, tracer: Tracer) -> None:
    inside = tracer.provider.get_tracer("test")
    seen: list[str] = []

    @app.task(queue="payments")
    async def charge(order_id: int) -> str:
        with inside.start_as_current_span("call the bank"):
            seen.append(hapax.current().headers["traceparent"])
        return "ok"

    @app.task
    def ship(order_id: int) -> None:
        with inside.start_as_current_span("print a label"):
            pass

    async def main() -> Any:
        with inside.start_as_current_span("request"):
            handle = await charge.options(key="k").submit(1)
            shipped = await ship.submit(1)
        async with app.worker():
            await handle.result(timeout=20)
            await shipped.result(timeout=20)
        return handle

    handle = asyncio.run(main())
    submit, run = tracer.span("submit charge"), tracer.span("run charge")
    assert_child(submit, tracer.span("request"))
    assert_child(run, submit)
    assert_child(tracer.span("call the bank"), run)
    assert_child(tracer.span("print a label"), tracer.span("run ship"))
    assert (submit.kind, run.kind) == (SpanKind.PRODUCER, SpanKind.CONSUMER)
    assert run.attributes is not None
    assert submit.attributes is not None
    assert submit.attributes["messaging.message.id"] == run.attributes["messaging.message.id"] == handle.id
    assert submit.attributes["hapax.created"] is True
    assert run.attributes["hapax.attempt"] == 1
    assert run.attributes["messaging.destination.name"] == "payments"
    trace_id, span_id = ids(submit)
    assert [header.rsplit("-", 1)[0] for header in seen] == [f"00-{trace_id:032x}-{span_id:016x}"]


def test_each_attempt_has_a_span_and_its_error(app: Hapax, tracer: Tracer) -> None:
    @app.task(retry=hapax.Retry(initial="0s", max="0s"))
    async def flaky() -> str:
        if hapax.current().attempt == 1:
            raise ValueError("not yet")
        return "ok"

    async def main() -> None:
        handle = await flaky.submit()
        async with app.worker():
            await handle.result(timeout=20)

    asyncio.run(main())
    failed, done = sorted(tracer.spans("run flaky"), key=lambda span: (span.attributes or {})["hapax.attempt"])  # type: ignore[arg-type,return-value]
    assert failed.status.status_code is StatusCode.ERROR
    (event,) = failed.events
    assert event.name == "exception"
    assert event.attributes is not None
    assert event.attributes["exception.type"] == "ValueError"
    assert "not yet" in str(event.attributes["exception.stacktrace"])
    assert done.status.status_code is StatusCode.UNSET
    for span in (failed, done):
        assert_child(span, tracer.span("submit flaky"))


def test_steps_of_a_workflow_belong_to_the_trace_that_started_it(app: Hapax, tracer: Tracer) -> None:
    @app.task
    async def step(number: int) -> int:
        return number

    @app.workflow
    async def flow(ctx: hapax.Context) -> int:
        return await ctx.run(step, 1) + await ctx.run(step, 2)

    async def main() -> int:
        run = await flow.start("w-1")
        async with app.worker(kept_runs=0):  # replayed at every turn, and yet each step has one span
            return await run.result(timeout=20)

    assert asyncio.run(main()) == 3
    assert len(tracer.spans("run step")) == 2
    for span in tracer.spans("run step"):
        assert_child(span, tracer.span("submit flow"))
        assert (span.attributes or {})["hapax.workflow_id"] == "w-1"


def test_many_and_those_of_an_outbox_carry_it_too(app: Hapax, tracer: Tracer, tmp_path: pathlib.Path) -> None:
    from hapax.sql.relay import Relay

    database = Database("sqlite3", tmp_path, None)

    @app.task
    async def charge(order_id: int) -> None: ...

    async def main() -> None:
        handles = await app.submit_many([charge.of(1), charge.of(2)])
        async with database.transaction() as connection:
            handles.append(await app.submit_in(connection, charge.of(3)))
        async with database.transaction() as connection:
            await Relay(app, connection).move()
        async with app.worker():
            for handle in handles:
                await handle.result(timeout=20)

    asyncio.run(main())
    parents = [span.parent.span_id for span in tracer.spans("run charge") if span.parent is not None]
    many, one = ids(tracer.span("submit 2 tasks"))[1], ids(tracer.span("submit charge"))[1]
    assert sorted(parents) == sorted([many, many, one])


def test_headers_of_the_caller_come_first_and_a_refusal_is_an_error(app: Hapax, tracer: Tracer) -> None:
    @app.task
    async def charge(order_id: int) -> None: ...

    own = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    handle = charge.options(headers={"traceparent": own, "shop": "1"}, key="k").submit_sync(1)
    assert handle.receipt.execution["headers"] == {"traceparent": own, "shop": "1"}
    with pytest.raises(hapax.IdempotencyConflict):
        charge.options(key="k").submit_sync(2)
    refused = tracer.spans("submit charge")[-1]
    assert refused.status.status_code is StatusCode.ERROR


def test_without_it_nothing_of_opentelemetry_is_imported() -> None:
    program = (
        "import hapax, sys; hapax.Hapax('memory:'); print([name for name in sys.modules if 'opentelemetry' in name])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
