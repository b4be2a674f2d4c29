"""What a program declares in code: tasks, workflows, settings of queues, schedules, events, and its outbox."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeVar, cast, overload

from hapax.activities import Misfire, Overlap, Where, cron_trigger, event_trigger, starts
from hapax.calls import path
from hapax.context import TaskContext
from hapax.definitions import Task, Workflow
from hapax.durations import Duration, to_wire
from hapax.errors import InvalidRequest
from hapax.options import Identity, Retry, Reuse, TypeOptions
from hapax.signature import Signature
from hapax.workflow.context import Context, SyncContext

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from hapax.app import Hapax
    from hapax.registry import Registry

P = ParamSpec("P")
R = TypeVar("R")
Connect = TypeVar("Connect", bound="Callable[[], Any]")
D = TypeVar("D", bound="Task[Any, Any] | Workflow[Any, Any]")


class Declaring:
    """The part of an app that declares. The server is told with the first call that goes out."""

    registry: Registry

    @overload
    def task(self, function: Callable[Concatenate[TaskContext, P], Awaitable[R]], /) -> Task[P, R]: ...
    @overload
    def task(self, function: Callable[P, Awaitable[R]], /) -> Task[P, R]: ...
    @overload
    def task(self, function: Callable[Concatenate[TaskContext, P], R], /) -> Task[P, R]: ...
    @overload
    def task(self, function: Callable[P, R], /) -> Task[P, R]: ...
    @overload
    def task(
        self,
        *,
        name: str | None = None,
        aliases: Sequence[str] = (),
        queue: str | None = None,
        identity: Identity | None = None,
        identity_fields: Sequence[str] | None = None,
        reuse: Reuse | None = None,
        retry: Retry | None = None,
        timeout: Duration | None = None,
        cpu: bool = False,
    ) -> _TaskDecorator: ...
    def task(
        self,
        function: Callable[..., Any] | None = None,
        *,
        name: str | None = None,
        aliases: Sequence[str] = (),
        queue: str | None = None,
        identity: Identity | None = None,
        identity_fields: Sequence[str] | None = None,
        reuse: Reuse | None = None,
        retry: Retry | None = None,
        timeout: Duration | None = None,
        cpu: bool = False,
    ) -> Any:
        """Makes a task of a function.

        An async function runs on the worker's event loop, a plain one on a thread, and with `cpu=True` in a process.
        `name` is the type, by default the function's name; `aliases` are names it had before. The other options are
        those of every submission, as in `Task.options`. They are declared to the server, which shows them as declared
        in code; its configuration file wins.
        """
        declared = TypeOptions(queue, identity, identity_fields, reuse, retry, timeout)
        names = _names_of_caller()

        def make(function: Callable[..., Any]) -> Task[Any, Any]:
            signature = Signature(function, TaskContext, names)
            task: Task[Any, Any] = Task(
                cast("Hapax", self), function, name or function.__name__, signature, declared, aliases, cpu=cpu
            )
            self.registry.add_task(task)
            return task

        return make if function is None else make(function)

    @overload
    def workflow(self, function: Callable[Concatenate[Context, P], Awaitable[R]], /) -> Workflow[P, R]: ...
    @overload
    def workflow(self, function: Callable[Concatenate[SyncContext, P], R], /) -> Workflow[P, R]: ...
    @overload
    def workflow(
        self, *, name: str | None = None, aliases: Sequence[str] = (), queue: str | None = None
    ) -> _WorkflowDecorator: ...
    def workflow(
        self,
        function: Callable[..., Any] | None = None,
        *,
        name: str | None = None,
        aliases: Sequence[str] = (),
        queue: str | None = None,
    ) -> Any:
        """Makes a workflow of a function whose first parameter is its `Context` (or `SyncContext` for a `def`).

        `name` is the type, by default the function's name; `aliases` are names it had before; `queue` is where its
        turns wait for a worker.
        """
        names = _names_of_caller()

        def make(function: Callable[..., Any]) -> Workflow[Any, Any]:
            signature = Signature(function, (Context, SyncContext), names)
            if signature.context_parameter is None:
                raise InvalidRequest(f"{function.__qualname__}: annotate its first parameter: `ctx: hapax.Context`")
            workflow: Workflow[Any, Any] = Workflow(
                cast("Hapax", self), function, name or function.__name__, signature, queue, aliases
            )
            self.registry.add_workflow(workflow)
            return workflow

        return make if function is None else make(function)

    def configure_queue(
        self,
        name: str,
        *,
        retention: Duration | None = None,
        rate_limit: str | None = None,
        max_running: int | None = None,
        concurrency_limit: int | None = None,
        idempotency_ttl: Duration | None = None,
        **settings: Any,
    ) -> None:
        """Sets what holds for a queue, on the server. It is sent with the first call that goes out.

        `retention` is how long closed tasks are kept, `idempotency_ttl` how long keys count. `rate_limit` is
        `"100/sec"`; `max_running` bounds the tasks that run at once, `concurrency_limit` those of one concurrency key.
        `settings` are any others of `PUT /v1/queues/{name}`.
        """
        body: dict[str, Any] = dict(settings)
        if retention is not None:
            body["retention"] = to_wire(retention)
        if idempotency_ttl is not None:
            body["idempotency_ttl"] = to_wire(idempotency_ttl)
        given = {"rate_limit": rate_limit, "max_running": max_running, "concurrency_limit": concurrency_limit}
        body.update({member: value for member, value in given.items() if value is not None})
        self.registry.tell(path("queues", name), body)

    def cron(
        self,
        expression: str,
        *,
        timezone: str | None = None,
        misfire: Misfire | None = None,
        misfire_grace: Duration | None = None,
        catchup_limit: int | None = None,
        overlap: Overlap | None = None,
        jitter: Duration | None = None,
        input: Any = None,
        id: str | None = None,
    ) -> Callable[[D], D]:
        """Starts a workflow or task on a schedule, once for each firing, on any number of servers.

        Five fields, six with seconds first, or `@daily` and friends, in `timezone` (UTC). `misfire` says what becomes
        of firings that were missed by more than `misfire_grace`: `"skip"`, `"catchup"` (each, up to `catchup_limit`) or
        `"compress"` (one run for all, which gets a `Window`). `overlap` says what becomes of a firing while the last
        run is open: `"allow"`, `"skip"`, `"buffer_one"`. `jitter` spreads the starts.

        `input` is that of each run. The activity's id is `id`, else the name of what it starts. The server is told with
        the first call that goes out, and keeps the schedule from then on.
        """
        trigger = cron_trigger(expression, timezone, misfire, misfire_grace, catchup_limit, overlap, jitter)

        def declare(definition: D) -> D:
            self.registry.add_activity(id or definition.name, {**starts(definition, input), **trigger})
            return definition

        return declare

    def on_event(
        self,
        type: str | None = None,
        *,
        source: str | None = None,
        subject: str | None = None,
        where: Where | None = None,
        dedupe_by: Literal["id", "source_and_id"] | None = None,
        id: str | None = None,
    ) -> _EventDecorator:
        """Runs a function, task or workflow for each CloudEvent that matches, once for each event id.

        A plain function becomes a task. Its parameter `event: CloudEvent[Paid]` gets the event. `where` has conditions
        on the event's data: `{"/country": "DE"}`, or `[{"pointer": "/country", "prefix": "D"}]`. `dedupe_by` says when
        two events are the same: by their `"id"`, or by `"source_and_id"`. The activity's id is `id`, else the name of
        what it starts.
        """
        trigger = event_trigger(type, source, subject, where, dedupe_by)

        def declare(definition: Any) -> Any:
            made = definition if isinstance(definition, (Task, Workflow)) else self.task(definition)
            self.registry.add_activity(id or made.name, {**starts(made, None), **trigger})
            return made

        return cast("_EventDecorator", declare)

    def outbox(self, connect: Connect) -> Connect:
        """Declares where your outbox is: a function, plain or async, that connects to that database.

        `@app.outbox` above `def connect(): return psycopg.connect(…)`. Relays use it, and nothing else does.
        """
        self.registry.outboxes.append(connect)
        return connect


class _TaskDecorator:
    """What `@app.task(…)` with options returns; for type checkers only."""

    @overload
    def __call__(self, function: Callable[Concatenate[TaskContext, P], Awaitable[R]], /) -> Task[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, Awaitable[R]], /) -> Task[P, R]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[TaskContext, P], R], /) -> Task[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Task[P, R]: ...
    def __call__(self, function: Callable[..., Any], /) -> Any:
        raise NotImplementedError


class _WorkflowDecorator:
    """What `@app.workflow(…)` with options returns; for type checkers only."""

    @overload
    def __call__(self, function: Callable[Concatenate[Context, P], Awaitable[R]], /) -> Workflow[P, R]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[SyncContext, P], R], /) -> Workflow[P, R]: ...
    def __call__(self, function: Callable[..., Any], /) -> Any:
        raise NotImplementedError


class _EventDecorator:
    """What `@app.on_event(…)` returns; for type checkers only."""

    @overload
    def __call__(self, function: D, /) -> D: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, function: Callable[P, Awaitable[R]], /) -> Task[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Task[P, R]: ...
    def __call__(self, function: Any, /) -> Any:
        raise NotImplementedError


def _names_of_caller() -> dict[str, Any]:
    """The local names where a decorator is used, so that annotations can name classes local to a function."""
    return dict(sys._getframe(2).f_locals)
