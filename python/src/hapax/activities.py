"""Schedules and events: what starts tasks and workflows by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, Literal, TypeVar

from hapax.codec.build import ANY
from hapax.definitions import Task, Workflow
from hapax.durations import Duration, to_wire

T = TypeVar("T")

Misfire = Literal["skip", "catchup", "compress"]
Overlap = Literal["allow", "skip", "buffer_one"]


@dataclass(frozen=True)
class Window:
    """The firings that one run stands for, under `misfire="compress"`. A parameter `window: Window | None = None`."""

    from_: datetime
    to: datetime
    missed: int


@dataclass(frozen=True)
class CloudEvent(Generic[T]):
    """A CloudEvent 1.0. A parameter `event: CloudEvent[Paid]` has the event's data as a `Paid`."""

    id: str
    source: str
    type: str
    data: T
    subject: str | None = None
    time: str | None = None


Where = Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""Conditions on an event's data: `{"/country": "DE"}`, or `[{"pointer": "/country", "prefix": "D"}]`."""


def starts(definition: Task[Any, Any] | Workflow[Any, Any], input: Any) -> dict[str, Any]:
    """The part of an activity that says what it starts."""
    what: dict[str, Any] = {"type": definition.name}
    if input is not None:
        what["input"] = ANY.encode(input)
    queue = definition.declared_queue if isinstance(definition, Workflow) else definition.declared.queue
    if queue:
        what["queue"] = queue
    return {"from_code": True, **({"workflow": what} if isinstance(definition, Workflow) else {"tasks": [what]})}


def cron_trigger(
    expression: str,
    timezone: str | None,
    misfire: Misfire | None,
    misfire_grace: Duration | None,
    catchup_limit: int | None,
    overlap: Overlap | None,
    jitter: Duration | None,
) -> dict[str, Any]:
    """The trigger of a schedule."""
    cron: dict[str, Any] = {"expression": expression}
    given = {
        "timezone": timezone,
        "misfire_policy": misfire,
        "misfire_grace": None if misfire_grace is None else to_wire(misfire_grace),
        "catchup_limit": catchup_limit,
        "overlap": overlap,
        "jitter": None if jitter is None else to_wire(jitter),
    }
    cron.update({name: value for name, value in given.items() if value is not None})
    return {"trigger": {"cron": cron}}


def event_trigger(
    type: str | None,
    source: str | None,
    subject: str | None,
    where: Where | None,
    dedupe_by: Literal["id", "source_and_id"] | None,
) -> dict[str, Any]:
    """The trigger of events."""
    event: dict[str, Any] = {}
    given = {"type": type, "source": source, "subject": subject, "dedupe_by": dedupe_by}
    event.update({name: value for name, value in given.items() if value is not None})
    if isinstance(where, Mapping):
        event["where"] = [{"pointer": pointer, "equals": ANY.encode(value)} for pointer, value in where.items()]
    elif where is not None:
        event["where"] = [dict(condition) for condition in where]
    return {"trigger": {"event": event}}
