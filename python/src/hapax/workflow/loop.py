"""The event loop of one workflow run.

It has no clock, no threads and no sockets. What runs next depends only on the order in which callbacks became ready,
and time only passes with the events of the history. Timers are steps of the workflow.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import sys
from collections import deque
from typing import TYPE_CHECKING, Any, Protocol

from hapax.workflow.errors import NotInWorkflow

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import Context

_log = logging.getLogger("hapax.workflow")

_INSTEAD = {
    "run_in_executor": "threads and executors: make it a task, and `await ctx.run(task, …)`",
    "call_soon_threadsafe": "other threads: make it a task, and `await ctx.run(task, …)`",
    "create_connection": "the network: make it a task, and `await ctx.run(task, …)`",
    "create_datagram_endpoint": "the network: make it a task, and `await ctx.run(task, …)`",
    "create_unix_connection": "sockets: make it a task, and `await ctx.run(task, …)`",
    "create_server": "the network: a server belongs beside the worker, not in a workflow",
    "create_unix_server": "sockets: a server belongs beside the worker, not in a workflow",
    "getaddrinfo": "the network: make it a task, and `await ctx.run(task, …)`",
    "getnameinfo": "the network: make it a task, and `await ctx.run(task, …)`",
    "sock_connect": "the network: make it a task, and `await ctx.run(task, …)`",
    "subprocess_exec": "processes: make it a task, and `await ctx.run(task, …)`",
    "subprocess_shell": "processes: make it a task, and `await ctx.run(task, …)`",
    "connect_read_pipe": "pipes: make it a task, and `await ctx.run(task, …)`",
    "connect_write_pipe": "pipes: make it a task, and `await ctx.run(task, …)`",
    "add_reader": "descriptors: make it a task, and `await ctx.run(task, …)`",
    "add_writer": "descriptors: make it a task, and `await ctx.run(task, …)`",
    "add_signal_handler": "signals of the process: they belong beside the worker",
}


class Timers(Protocol):
    """Where the loop's timers become steps."""

    def start_timer(self, handle: asyncio.TimerHandle) -> None: ...

    def cancel_timer(self, handle: asyncio.TimerHandle) -> None: ...

    def forbidden(self, error: NotInWorkflow) -> None: ...


class OrderedTask(asyncio.Task[Any]):
    """A task whose hash is its number within the run: sets of tasks have the same order in every replay."""

    number = 0

    def __hash__(self) -> int:
        return self.number

    def __eq__(self, other: object) -> bool:
        return self is other


class WorkflowLoop(asyncio.AbstractEventLoop):
    """Runs callbacks in order until none is ready."""

    def __init__(self, timers: Timers, now: float) -> None:
        self._timers = timers
        self._ready: deque[asyncio.Handle] = deque()
        self._numbers = itertools.count(1)
        self._now = now
        self.tasks: list[OrderedTask] = []

    # What the run does with it

    def run_ready(self, most: int = 10_000_000) -> None:
        """Runs what is ready, and what becomes ready by it. `most` bounds a run that is being dropped."""
        hooks = sys.get_asyncgen_hooks()
        before = asyncio._get_running_loop()
        asyncio._set_running_loop(self)
        sys.set_asyncgen_hooks(firstiter=None, finalizer=self._close_generator)
        try:
            while self._ready and most > 0:
                most -= 1
                handle = self._ready.popleft()
                if not handle.cancelled():
                    handle._run()
        finally:
            sys.set_asyncgen_hooks(*hooks)
            asyncio._set_running_loop(before)
        if len(self.tasks) > 64:
            self.tasks = [task for task in self.tasks if not task.done()]

    def set_time(self, now: float) -> None:
        """Time passes with the events that the code is told."""
        self._now = max(self._now, now)

    def fire(self, handle: asyncio.TimerHandle) -> None:
        """The timer of this handle is over."""
        self.set_time(handle.when())
        if not handle.cancelled():
            self._ready.append(handle)

    def _close_generator(self, generator: Any) -> None:
        self.create_task(generator.aclose())

    # What asyncio does with it

    def time(self) -> float:
        return self._now

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        if when <= self._now:
            self._ready.append(handle)
        else:
            self._timers.start_timer(handle)
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        self._timers.cancel_timer(handle)

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, *, name: str | None = None, **options: Any) -> OrderedTask:
        number = next(self._numbers)
        task = OrderedTask.__new__(OrderedTask)
        task.number = number
        task.__init__(coro, loop=self, name=name or f"workflow-{number}", **options)  # type: ignore[misc]
        self.tasks.append(task)
        return task

    def is_running(self) -> bool:
        return asyncio._get_running_loop() is self

    def is_closed(self) -> bool:
        return False

    def get_debug(self) -> bool:
        return False

    def set_debug(self, enabled: bool) -> None:
        pass

    def get_task_factory(self) -> Any:
        return None

    def set_task_factory(self, factory: Any) -> None:
        self._refuse("set_task_factory", "another task factory")

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        _log.error("%s %s", context.get("message"), context.get("task", ""), exc_info=context.get("exception"))

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        self.call_exception_handler(context)

    def _refuse(self, name: str, instead: str) -> Any:
        error = NotInWorkflow(f"loop.{name}: a workflow cannot use {instead}")
        self._timers.forbidden(error)
        raise error


def _refusal(name: str, instead: str) -> Callable[..., Any]:
    def refuse(self: WorkflowLoop, *args: Any, **options: Any) -> Any:
        return self._refuse(name, instead)

    return refuse


for _name, _instead in _INSTEAD.items():
    setattr(WorkflowLoop, _name, _refusal(_name, _instead))
