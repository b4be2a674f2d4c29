"""OpenTelemetry: spans of submissions and handlers. `pip install hapax[otel]`.

    hapax.otel.instrument(app)

The span of a handler is a child of the span that submitted its task, in whatever process and however much later: the
`traceparent` travels in the headers of the execution, to its steps and children too.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any

from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from hapax._version import __version__

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

    from hapax.app import Hapax
    from hapax.context import TaskContext

# Not the global propagator: baggage has no bound, and the headers of an execution do.
_PROPAGATOR = TraceContextTextMapPropagator()


def instrument(app: Hapax, *, tracer_provider: TracerProvider | None = None) -> None:
    """From now on submissions of this app and tasks that its workers run have spans."""
    app.tracing = _OpenTelemetry(tracer_provider)


def uninstrument(app: Hapax) -> None:
    """Ends what `instrument` began."""
    app.tracing = None


class _OpenTelemetry:
    def __init__(self, provider: TracerProvider | None) -> None:
        self._tracer = trace.get_tracer("hapax", __version__, provider)

    @contextlib.contextmanager
    def submitting(self, what: str, queue: str | None) -> Generator[_Submitting, None, None]:
        attributes = {"messaging.system": "hapax", "messaging.operation.type": "send"}
        if queue is not None:
            attributes["messaging.destination.name"] = queue
        with self._tracer.start_as_current_span(
            f"submit {what}", kind=SpanKind.PRODUCER, attributes=attributes
        ) as span:
            yield _Submitting(span)

    @contextlib.contextmanager
    def handling(self, context: TaskContext) -> Generator[Callable[[Mapping[str, Any]], None], None, None]:
        attributes: dict[str, str | int] = {
            "messaging.system": "hapax",
            "messaging.operation.type": "process",
            "messaging.destination.name": context.execution.get("queue", "default"),
            "messaging.message.id": context.id,
            "hapax.type": context.type,
            "hapax.attempt": context.attempt,
            "hapax.effect_key": context.effect_key,
        }
        if context.workflow_id is not None:
            attributes["hapax.workflow_id"] = context.workflow_id
        parent = _PROPAGATOR.extract(context.headers)
        with self._tracer.start_as_current_span(
            f"run {context.type}", context=parent, kind=SpanKind.CONSUMER, attributes=attributes
        ) as span:
            yield lambda outcome: _end(span, outcome)


class _Submitting:
    def __init__(self, span: Span) -> None:
        self._span = span
        self._carrier: dict[str, str] = {}
        _PROPAGATOR.inject(self._carrier)

    def carried(self, request: dict[str, Any]) -> dict[str, Any]:
        # Headers of the caller's own come first.
        return {**request, "headers": {**self._carrier, **request.get("headers", {})}}

    def answered(self, execution_id: str, created: bool) -> None:
        self._span.set_attribute("messaging.message.id", execution_id)
        self._span.set_attribute("hapax.created", created)


def _end(span: Span, outcome: Mapping[str, Any]) -> None:
    error = outcome.get("error")
    if error is None:
        if "snooze" in outcome:
            span.set_attribute("hapax.snooze", outcome["snooze"])
        return
    told = {"exception.type": error["type"], "exception.message": error["message"]}
    if error.get("stack"):
        told["exception.stacktrace"] = error["stack"]
    span.add_event("exception", told)
    span.set_attribute("error.type", error["type"])
    span.set_attribute("hapax.retryable", bool(error.get("retryable", True)))
    span.set_status(Status(StatusCode.ERROR, f"{error['type']}: {error['message']}"))
