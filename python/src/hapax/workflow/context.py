"""What the code of a workflow can ask for."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, TypeVar, cast, overload

from hapax.codec.build import ANY
from hapax.durations import Duration, time_from_wire, time_to_wire, to_seconds
from hapax.errors import InvalidRequest, StepFailed

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Coroutine, Mapping
    from datetime import datetime

    from hapax.definitions import Call, Task, Workflow
    from hapax.workflow.run import Run
    from hapax.workflow.threads import CodeThread

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
F = TypeVar("F", bound="Callable[..., Any]")

_log = logging.getLogger("hapax.workflow")


class _Base:
    """What both kinds of workflows can ask for without waiting."""

    _handlers_may_wait = True

    def __init__(self, run: Run) -> None:
        self._run = run

    @property
    def workflow_id(self) -> str:
        """The caller's name for this workflow."""
        workflow_id: str = self._run.execution["workflow_id"]
        return workflow_id

    @property
    def run_id(self) -> str:
        """The id of this run; a workflow that continues as new has several."""
        return self._run.id

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers that travelled with the start; steps and children inherit them."""
        headers: Mapping[str, str] = self._run.execution.get("headers") or {}
        return headers

    @property
    def replaying(self) -> bool:
        """Whether the code is being replayed. For logs only: nothing asked for may depend on it."""
        return self._run.history.replaying

    def log(self, message: str, *args: Any, level: int = logging.INFO) -> None:
        """Logs a line once, not again in every replay."""
        if not self.replaying:
            _log.log(level, "%s: " + message, self.workflow_id, *args)

    def now(self) -> datetime:
        """The time of the store's clock when this turn began, recorded."""
        return time_from_wire(self._run.record("now", lambda: self._run.until(0)))

    def random(self) -> float:
        """A random number from 0 to below 1, recorded."""
        import os

        number = self._run.record("random", lambda: int.from_bytes(os.urandom(8), "big"))
        return int(number) / 2**64

    def uuid(self) -> uuid.UUID:
        """A UUID of version 4, recorded."""
        import uuid

        return uuid.UUID(self._run.record("uuid", lambda: str(uuid.uuid4())))

    @property
    def cancel_requested(self) -> bool:
        """Whether the code was told that somebody asked this workflow to end: `handle.cancel(mode="request")`.

        It gets a CancelledError where it begins its next step, or where it waits for something else than tasks: a task
        that runs is let end first, so that the code can undo it. It may catch the error, compensate, and return; if it
        lets it escape, the workflow is cancelled.
        """
        return self._run.is_cancel_requested

    @property
    def cancel_reason(self) -> Any:
        """What was given as the reason of the requested cancellation, if anything was."""
        return self._run.cancel_reason

    def publish(self, name: str, value: Any) -> None:
        """Stores a value under a name, for others to read with `handle.values()`. The last one of a name counts."""
        self._run.history.check_usable()
        self._run.history.ask("publish", name, {"name": name, "value": ANY.encode(value)})

    @overload
    def on(self, update: str, /) -> Callable[[F], F]: ...
    @overload
    def on(self, update: str, function: F, /) -> F: ...
    def on(self, update: str, function: Any = None, /) -> Any:
        """Answers the updates of that name from now on, those that came before too: `@ctx.on("reserve_more")`.

        The function takes the question, or nothing, and returns the answer, which `handle.update()` gets; what it
        raises refuses the update. It is called where the code waits, one update after the other, in the order in which
        they came. It may use the context and wait, in an async workflow as an async function. An async workflow goes on
        beside it, a plain one waits for it.
        """
        names = dict(sys._getframe(1).f_locals)

        def add(function: Any) -> Any:
            self._run.updates.add(update, function, names, may_wait=self._handlers_may_wait)
            return function

        return add if function is None else add(function)

    def side_effect(self, name: str, compute: Callable[[], T]) -> T:
        """What `compute` returns, recorded as JSON: a quick look at something outside. It is called again if the worker
        dies before the turn is stored; what it raises is recorded too, and raised as `StepFailed`."""
        return cast("T", self._run.record(name, compute))

    def version(self, change: str, current: int = 1) -> int:
        """Which version of the code this workflow is on, if the code was changed while workflows were running.

        0 if the workflow had passed this point before the question was added, otherwise `current`, for good.
        """
        return self._run.version(change, current)

    def continue_as_new(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Ends this run and begins the next one, with these arguments and an empty history."""
        from hapax.signature import has_input
        from hapax.workflow.errors import ContinueAsNew

        self._run.tell_of_cancel_at_a_step()
        value = self._run.workflow.signature.encode(args, kwargs)
        raise ContinueAsNew(value if has_input(value) else None)

    async def _run_task(
        self, task: Task[..., Any] | str, args: tuple[Any, ...], kwargs: dict[str, Any], key: str | None = None
    ) -> Any:
        if isinstance(task, str):
            start: dict[str, Any] = {"type": task}
            if key is not None:
                start["idempotency_key"] = key
            if len(args) + bool(kwargs) > 1:
                raise InvalidRequest(f"task '{task}' is given by its name, so it takes one input, or arguments by name")
            if args:
                start["input"] = ANY.encode(args[0])
            elif kwargs:
                start["input"] = ANY.encode(kwargs)
            event = await self._run.step("task", task, {"start": start})
            return event.get("value")
        if key is not None:
            task = task.options(key=key)
        start = task.request(args, kwargs)
        start.pop("id", None)
        event = await self._run.step("task", task.name, {"start": start}, aliases=task.aliases)
        return task.signature.decode_result(event.get("value"))

    async def _run_call(self, call: Call[Any]) -> Any:
        start = {name: value for name, value in call.request.items() if name != "id"}
        event = await self._run.step("task", start["type"], {"start": start})
        return call.decode(event.get("value"))

    async def _run_child(self, workflow: Workflow[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        start = workflow.request(args, kwargs)
        start.pop("id", None)
        key = workflow.child_id
        if key is not None:
            start["workflow_id"] = key
        event = await self._run.step("child", workflow.name, {"start": start}, key=key, aliases=workflow.aliases)
        return workflow.signature.decode_result(event.get("value"))

    async def _run_child_named(self, type: str, input: Any, workflow_id: str | None) -> Any:
        start: dict[str, Any] = {"type": type}
        if input is not None:
            start["input"] = ANY.encode(input)
        if workflow_id is not None:
            start["workflow_id"] = workflow_id
        return (await self._run.step("child", type, {"start": start}, key=workflow_id)).get("value")

    async def _signal(self, name: str, codec: Any, timeout: Duration | None) -> Any:
        members: dict[str, Any] = {"name": name}
        if timeout is not None:
            members["until"] = self._run.until(to_seconds(timeout))
        event = await self._run.step("wait_signal", name, members)
        if event["kind"] == "fired":
            raise TimeoutError(f"no signal '{name}' came in time")
        from hapax.codec import Mismatch, codec_of

        try:
            return codec_of(codec).decode(event.get("value"))
        except Mismatch as mismatch:
            error = {"type": "InvalidInput", "message": str(mismatch)}
            raise StepFailed(f"signal '{name}'", "failed", error) from None

    async def _send_signal(self, workflow_id: str, name: str, payload: Any) -> None:
        members: dict[str, Any] = {"name": name, "workflow_id": workflow_id}
        if payload is not None:
            members["value"] = ANY.encode(payload)
        await self._run.step("send_signal", name, members, key=workflow_id)

    async def _sleep_until(self, until: str) -> None:
        await self._run.step("sleep", None, {"until": until})


class Context(_Base):
    """What an async workflow can ask for.

    Its code may use asyncio as usual: `gather`, `TaskGroup`, `timeout`, `sleep`, `Queue`. Timers are durable.
    """

    @overload
    async def run(self, task: Task[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    async def run(self, task: Workflow[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    async def run(self, task: str, /, *args: Any, **kwargs: Any) -> Any: ...
    async def run(self, task: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Runs a task, or a child workflow, and waits for its result.

        It runs once for this step, however often the workflow is replayed. With `task.options(key=…)` the rules of
        idempotency hold beyond the workflow. Raises `StepFailed` if it ended without a result.
        """
        from hapax.definitions import Workflow

        if isinstance(task, Workflow):
            return await self._run_child(task, args, kwargs)
        return await self._run_task(task, args, kwargs)

    async def run_workflow(self, type: str, input: Any = None, *, workflow_id: str | None = None) -> Any:
        """Runs a workflow of any type, by its name, as a step of this one; its result is plain JSON."""
        return await self._run_child_named(type, input, workflow_id)

    async def execute_task(
        self, task: Task[..., R] | str, /, *args: Any, task_id: str | None = None, **kwargs: Any
    ) -> R:
        """As `run`; `task_id` is the task's idempotency key."""
        return cast("R", await self._run_task(task, args, kwargs, task_id))

    @overload
    async def signal(self, name: str, /, *, timeout: Duration | None = None) -> Any: ...
    @overload
    async def signal(self, name: str, type: type[T], /, *, timeout: Duration | None = None) -> T: ...
    async def signal(self, name: str, type: Any = Any, /, *, timeout: Duration | None = None) -> Any:
        """Waits for a signal of that name and returns its payload, as `type`. Signals are taken in their order, each
        once, also those that came before. Raises TimeoutError after `timeout`."""
        return await self._signal(name, type, timeout)

    async def send_signal(self, workflow_id: str, name: str, payload: Any = None) -> None:
        """Sends another workflow a signal, once, however often this one is replayed. Raises `StepFailed` with the type
        `WorkflowNotFound` or `WorkflowClosed` if there is nobody to take it."""
        await self._send_signal(workflow_id, name, payload)

    async def sleep(self, duration: Duration) -> None:
        """Sleeps, for months if need be: nothing runs during that time."""
        await self._sleep_until(self._run.until(to_seconds(duration)))

    async def sleep_until(self, time: datetime) -> None:
        """Sleeps until a time, which must have a time zone."""
        await self._sleep_until(time_to_wire(time))


class SyncContext(_Base):
    """What a `def` workflow can ask for. It runs on a thread of its own, which waits while the workflow does."""

    _thread: CodeThread
    _handlers_may_wait = False

    def _bind(self, thread: CodeThread) -> None:
        self._thread = thread

    def _await(self, call: Coroutine[Any, Any, Any]) -> Any:
        return self._thread.ask(call)

    @overload
    def run(self, task: Task[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    def run(self, task: Workflow[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    def run(self, task: str, /, *args: Any, **kwargs: Any) -> Any: ...
    def run(self, task: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Runs a task, or a child workflow, and waits for its result. Raises `StepFailed` if it ended without one."""
        from hapax.definitions import Workflow

        if isinstance(task, Workflow):
            return self._await(self._run_child(task, args, kwargs))
        return self._await(self._run_task(task, args, kwargs))

    def run_workflow(self, type: str, input: Any = None, *, workflow_id: str | None = None) -> Any:
        """Runs a workflow of any type, by its name, as a step of this one; its result is plain JSON."""
        return self._await(self._run_child_named(type, input, workflow_id))

    def execute_task(self, task: Task[..., R] | str, /, *args: Any, task_id: str | None = None, **kwargs: Any) -> R:
        """As `run`; `task_id` is the task's idempotency key."""
        return cast("R", self._await(self._run_task(task, args, kwargs, task_id)))

    def all(self, *calls: Call[R]) -> list[R]:
        """Runs several tasks at once and waits for all of them: `ctx.all(ship.of(a), ship.of(b))`."""

        async def gather() -> list[R]:
            import asyncio

            return list(await asyncio.gather(*(self._run_call(call) for call in calls)))

        return cast("list[R]", self._await(gather()))

    @overload
    def signal(self, name: str, /, *, timeout: Duration | None = None) -> Any: ...
    @overload
    def signal(self, name: str, type: type[T], /, *, timeout: Duration | None = None) -> T: ...
    def signal(self, name: str, type: Any = Any, /, *, timeout: Duration | None = None) -> Any:
        """Waits for a signal of that name and returns its payload, as `type`. TimeoutError after `timeout`."""
        return self._await(self._signal(name, type, timeout))

    def send_signal(self, workflow_id: str, name: str, payload: Any = None) -> None:
        """Sends another workflow a signal, once, however often this one is replayed. Raises `StepFailed` with the type
        `WorkflowNotFound` or `WorkflowClosed` if there is nobody to take it."""
        self._await(self._send_signal(workflow_id, name, payload))

    def sleep(self, duration: Duration) -> None:
        """Sleeps, for months if need be: nothing runs during that time."""
        self._await(self._sleep_until(self._run.until(to_seconds(duration))))

    def sleep_until(self, time: datetime) -> None:
        """Sleeps until a time, which must have a time zone."""
        self._await(self._sleep_until(time_to_wire(time)))
