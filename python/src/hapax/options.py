"""What can be said about a task besides its arguments."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal, Union

from hapax.durations import Duration, time_to_wire, to_wire
from hapax.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

Identity = Literal["strict", "contextual", "always_unique", "caller_provided"]
Reuse = Literal["allow_failed", "reject", "allow_closed", "replace"]
OnDuplicate = Literal["return", "error"]
Deadline = Union[Duration, "datetime"]


@dataclass(frozen=True)
class Retry:
    """How often and when a failed task is tried again.

    `max_attempts` counts the first one. The next attempt begins after `initial`, then `factor` times as long each time,
    at most `max`, with full jitter. What is not given is the server's default: 3 attempts, 1 s, 2, 1 minute.
    """

    max_attempts: int | None = None
    initial: Duration | None = None
    factor: float | None = None
    max: Duration | None = None

    def to_wire(self) -> dict[str, Any]:
        """The members `max_attempts` and `retry` of a request."""
        out: dict[str, Any] = {}
        if self.max_attempts is not None:
            out["max_attempts"] = self.max_attempts
        retry: dict[str, Any] = {}
        if self.initial is not None:
            retry["initial"] = to_wire(self.initial)
        if self.factor is not None:
            retry["factor"] = self.factor
        if self.max is not None:
            retry["max"] = to_wire(self.max)
        if retry:
            out["retry"] = retry
        return out


@dataclass(frozen=True)
class SubmitOptions:
    """The options of one submission, as `.options()` takes them."""

    key: str | None = None
    scope: str | None = None
    identity: Identity | None = None
    identity_fields: Sequence[str] | None = None
    reuse: Reuse | None = None
    on_duplicate: OnDuplicate | None = None
    idempotency_ttl: Duration | None = None
    queue: str | None = None
    priority: int | None = None
    run_at: datetime | None = None
    delay: Duration | None = None
    retry: Retry | None = None
    timeout: Duration | None = None
    deadline: Deadline | None = None
    concurrency_key: str | None = None
    headers: Mapping[str, str] | None = None
    tags: Sequence[str] | None = None
    id: str | None = None

    def merged(self, **given: Any) -> SubmitOptions:
        """These options with those that are given (not None) in place of their own."""
        return replace(self, **{name: value for name, value in given.items() if value is not None})

    def to_wire(self) -> dict[str, Any]:
        """The members of a request."""
        out: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if value is None:
                continue
            try:
                out.update(_member(field.name, value))
            except ValueError as error:
                raise InvalidRequest(f"{field.name}: {error}", body={"pointer": f"/{field.name}"}) from None
        return out


def _member(name: str, value: Any) -> dict[str, Any]:
    if name == "key":
        return {"idempotency_key": value}
    if name == "retry":
        members: dict[str, Any] = value.to_wire()
        return members
    if name in ("idempotency_ttl", "delay", "timeout"):
        return {name: to_wire(value)}
    if name == "run_at":
        return {name: time_to_wire(value)}
    if name == "deadline":
        return {name: time_to_wire(value) if hasattr(value, "tzinfo") else to_wire(value)}
    if name in ("identity_fields", "tags"):
        return {name: list(value)}
    return {name: dict(value) if name == "headers" else value}


@dataclass(frozen=True)
class TypeOptions:
    """What `@app.task(...)` declares about a type. The server keeps it and shows it as declared in code."""

    queue: str | None = None
    identity: Identity | None = None
    identity_fields: Sequence[str] | None = None
    reuse: Reuse | None = None
    retry: Retry | None = None
    timeout: Duration | None = None

    def to_wire(self) -> dict[str, Any]:
        """The body of `PUT /v1/types/{name}/code`; empty if nothing is declared."""
        return SubmitOptions(
            queue=self.queue,
            identity=self.identity,
            identity_fields=self.identity_fields,
            reuse=self.reuse,
            retry=self.retry,
            timeout=self.timeout,
        ).to_wire()
