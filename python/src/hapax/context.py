"""What a task handler can ask for while it runs."""

from __future__ import annotations

import threading
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from hapax.codec.build import ANY

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

P = ParamSpec("P")
R = TypeVar("R")


class TaskContext:
    """The task that a handler runs. Get it by `hapax.current()`, or as a parameter annotated `TaskContext`.

    `effect_key` is the same in every attempt: hand it to the outside world as its idempotency key. `attempt` counts
    from 1, `id` and `type` are the task's, `lease` is this attempt's, and `execution` is the task as the API shows it.
    """

    def __init__(self, claim: Mapping[str, Any]) -> None:
        execution: Mapping[str, Any] = claim["execution"]
        self.execution = execution
        self.id: str = execution["id"]
        self.type: str = execution["type"]
        self.attempt: int = claim["attempt"]
        self.effect_key: str = claim["effect_key"]
        self.lease: str = claim["lease"]
        self._cancelled = threading.Event()
        self._lease_lost = False
        self._effects: dict[str, int] = {}
        self._effects_lock = threading.Lock()
        self._report: Callable[[dict[str, Any]], None] | None = None

    @property
    def idempotency_key(self) -> str | None:
        """The caller's name for this task, if it has one."""
        return self.execution.get("idempotency_key")

    @property
    def workflow_id(self) -> str | None:
        """The workflow whose step this task is, if it is one."""
        return self.execution.get("parent_workflow_id")

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers that travelled with the submission."""
        headers: Mapping[str, str] = self.execution.get("headers") or {}
        return headers

    @property
    def tags(self) -> list[str]:
        """The tags of the submission."""
        return list(self.execution.get("tags") or [])

    @property
    def cancelled(self) -> bool:
        """Whether the task was cancelled, or another worker has it by now. A handler on a thread asks this from time
        to time; an async one gets a CancelledError by itself."""
        return self._cancelled.is_set()

    @property
    def lease_lost(self) -> bool:
        """Whether another worker has the task by now, or it is closed: what this handler returns does not count."""
        return self._lease_lost

    def progress(self, value: Any) -> None:
        """Says how far the task is: any JSON value, shown with the execution. The last one counts."""
        if self._report is not None:
            self._report({"progress": ANY.encode(value)})

    def log(self, line: str) -> None:
        """Keeps a line with the attempt, up to 64 KiB in all."""
        if self._report is not None:
            self._report({"log": [line]})

    @overload
    async def once_in(
        self, connection: Any, function: Callable[P, Awaitable[R]], /, *args: P.args, **kwargs: P.kwargs
    ) -> R: ...
    @overload
    async def once_in(self, connection: Any, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R: ...
    async def once_in(self, connection: Any, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Runs `function` once over all attempts, in the transaction of your own database that `connection` is in.

        The effect key, the function's name and its result are written beside what the function itself writes through
        the connection. Commit, and it has happened; a later attempt, or a worker that lost its lease meanwhile, gets
        the stored result. A function that is given a second time in one attempt is a second effect, so every attempt
        must come to them in the same order. The table is `hapax_effects`: `hapax effects --sql postgres`.
        """
        from hapax.sql.inbox import name_of, once_in

        name = name_of(function)
        with self._effects_lock:
            number = self._effects[name] = self._effects.get(name, 0) + 1
        key = f"{self.effect_key}/{name}" if number == 1 else f"{self.effect_key}/{name}#{number}"
        return await once_in(connection, key, function, args, kwargs)

    def _cancel(self, *, lease_lost: bool) -> None:
        self._lease_lost = self._lease_lost or lease_lost
        self._cancelled.set()


CURRENT: ContextVar[TaskContext] = ContextVar("hapax_task")


def current() -> TaskContext:
    """The task that the calling handler runs. RuntimeError outside of one."""
    try:
        return CURRENT.get()
    except LookupError:
        raise RuntimeError("hapax.current() is for task handlers; no task runs here") from None
