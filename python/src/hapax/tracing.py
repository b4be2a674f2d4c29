"""Where tracing hooks in. Without it nothing is imported and nothing is done; `hapax.otel` is the one that there is."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from hapax.app import Hapax
    from hapax.context import TaskContext


class Submitting(Protocol):
    """A submission that is being traced."""

    def carried(self, request: dict[str, Any]) -> dict[str, Any]:
        """The request with what its handler needs to know in its headers."""
        ...

    def answered(self, execution_id: str, created: bool) -> None:
        """It was answered."""
        ...


class Tracing(Protocol):
    """Sees every submission of an app, and every task that its workers run."""

    def submitting(self, what: str, queue: str | None) -> AbstractContextManager[Submitting]:
        """Around a submission of `what`: a type, or several tasks."""
        ...

    def handling(self, context: TaskContext) -> AbstractContextManager[Callable[[Mapping[str, Any]], None]]:
        """Around one attempt of a task; what it gives is called with the outcome."""
        ...


class _Nothing:
    def carried(self, request: dict[str, Any]) -> dict[str, Any]:
        return request

    def answered(self, execution_id: str, created: bool) -> None:
        pass


def _ignore(outcome: Mapping[str, Any]) -> None:
    pass


_NOTHING: AbstractContextManager[Submitting] = contextlib.nullcontext(_Nothing())
_IGNORED: AbstractContextManager[Callable[[Mapping[str, Any]], None]] = contextlib.nullcontext(_ignore)


def submitting(app: Hapax, what: str, queue: str | None = None) -> AbstractContextManager[Submitting]:
    """Around a submission of this app."""
    return _NOTHING if app.tracing is None else app.tracing.submitting(what, queue)


def handling(app: Hapax, context: TaskContext) -> AbstractContextManager[Callable[[Mapping[str, Any]], None]]:
    """Around one attempt of a task that this process runs."""
    return _IGNORED if app.tracing is None else app.tracing.handling(context)
