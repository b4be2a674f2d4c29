"""A worker as a whole."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from hapax.context import TaskContext
from hapax.durations import Duration, to_seconds
from hapax.errors import Error
from hapax.tracing import handling
from hapax.worker.attempts import Processes, cancelled, run_attempt
from hapax.worker.notes import Notes
from hapax.worker.source import Lane
from hapax.worker.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from typing_extensions import Self

    from hapax.app import Hapax
    from hapax.definitions import Task
    from hapax.worker.source import Claim, Source

_log = logging.getLogger("hapax.worker")


class Worker:
    """Runs the tasks and workflows of an app, beside your own code: `async with app.worker(): ...`.

    Async handlers run on the event loop, up to `concurrency` at once; plain ones on `threads` threads; those with
    `cpu=True` in `processes` processes. Turns of workflows run on a thread of their own. It claims only what the app
    has declared, in the queues of its tasks, or in `queues`. Leaving the block drains: no more claims, up to `grace`
    for what runs, and everything is reported.

    `lease` is how long the engine waits for a worker that has died; it is kept up while a handler runs. `kept_runs`
    workflows stay in memory between their turns, the others are replayed. With `until_idle`, `run()` ends when there
    was nothing to do for that long. `name` is for people who look at the engine.
    """

    def __init__(
        self,
        app: Hapax,
        *,
        queues: Sequence[str] | None = None,
        concurrency: int = 64,
        threads: int = 8,
        processes: int | None = None,
        lease: Duration = "60s",
        grace: Duration = "30s",
        until_idle: Duration | None = None,
        kept_runs: int = 1000,
        name: str | None = None,
    ) -> None:
        self._app = app
        self._queues = queues
        self._concurrency = concurrency
        self._thread_count = threads
        self._process_count = processes or os.cpu_count() or 1
        self._lease_s = to_seconds(lease)
        self._grace_s = to_seconds(grace)
        self._until_idle_s = None if until_idle is None else to_seconds(until_idle)
        self._kept_runs = kept_runs
        self.name = name or f"{socket.gethostname()}:{os.getpid()}"
        self._running: dict[str, tuple[asyncio.Task[None], TaskContext | None]] = {}
        self._failure: BaseException | None = None
        self._is_draining = False
        self._processes = Processes(self._process_count)
        self.left_running = 0
        """How many handlers had not ended within the grace. Those on threads still run."""
        self._stopped = asyncio.Event()

    # From outside

    async def __aenter__(self) -> Self:
        await self._begin()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.drain()
        if self._failure is not None and error is None:
            raise self._failure

    async def run(self) -> None:
        """Works until `stop()` is called, or with `until_idle` until there was nothing to do for that long."""
        async with self:
            await self._stopped.wait()

    def stop(self) -> None:
        """Ends `run()`, which drains."""
        self._stopped.set()

    def kill_processes(self) -> None:
        """Ends the processes of `cpu=True` handlers, whatever they are doing."""
        self._processes.kill()

    # Beginning and ending

    async def _begin(self) -> None:
        app, registry = self._app, self._app.registry
        await registry.tell_all(app.calls)
        lanes = self._make_lanes()
        if not lanes:
            raise Error("this app has no tasks and no workflows, so there is nothing to work on", code="NothingToDo")
        self._threads = ThreadPoolExecutor(self._thread_count, thread_name_prefix="hapax-task")
        self._source = self._make_source()
        self._notes = Notes(app.calls, self._lease_s)
        self._turns = Turns(app.calls, registry.workflows, self._source, self._kept_runs)
        await self._source.begin(lanes, self)
        self._watching = asyncio.create_task(self._watch_idle())

    def _make_source(self) -> Source:
        from hapax.transport.http import HttpTransport

        self._own_transport = self._app._open_for_worker()
        transport = self._own_transport or self._app._open()
        if isinstance(transport, HttpTransport):
            from hapax.worker.remote import RemoteSource

            wait_s = 20.0 if self._until_idle_s is None else min(20.0, max(0.05, self._until_idle_s))
            return RemoteSource(self._app.calls, transport.address, self.name, self._lease_s, wait_s)
        from hapax.transport.native import NativeTransport
        from hapax.worker.native import NativeSource

        if not isinstance(transport, NativeTransport):
            raise Error(f"a worker cannot claim through {type(transport).__name__}", code="WorkerRefused")
        return NativeSource(transport, self.name, self._lease_s, steps_in_turns=self._kept_runs > 0)

    def _make_lanes(self) -> list[Lane]:
        tasks = self._app.registry.tasks
        rooms = {"async": self._concurrency, "thread": self._thread_count, "process": self._process_count}
        lanes = []
        for where, room in rooms.items():
            types = [name for name, task in tasks.items() if _where(task) == where]
            if types and room > 0:
                lanes.append(Lane("task", self._queues or self._queues_of(types), types, room))
        workflows = self._app.registry.workflows
        if workflows:
            queues = self._queues or sorted({workflow.queue for workflow in workflows.values()})
            lanes.append(Lane("workflow", queues, list(workflows), self._concurrency))
        return lanes

    def _queues_of(self, types: list[str]) -> list[str]:
        """Where the tasks of these types wait: the server's word counts, it may know better than the code."""
        registry = self._app.registry
        return sorted({registry.effective_queues.get(name, registry.tasks[name].queue) for name in types})

    async def drain(self) -> None:
        """No more claims; waits up to the grace for what runs, reports, and ends threads and processes."""
        self._watching.cancel()
        await self._source.stop_claiming()
        ends = time.monotonic() + self._grace_s
        while self._running and time.monotonic() < ends:  # a step within its turn is followed by its turn
            await asyncio.wait([task for task, _ in self._running.values()], timeout=ends - time.monotonic())
            await asyncio.sleep(0)
        self._is_draining = True
        left = [(task, context) for task, context in self._running.values() if not task.done()]
        for task, context in left:
            if context is not None:
                context._cancel(lease_lost=False)
            task.cancel()
        self.left_running = len(left)
        if left:
            _log.warning("%d did not end within the grace; other workers get them when their leases run out", len(left))
            await asyncio.wait([task for task, _ in left], timeout=1)
        await self._turns.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._processes.close()
        await self._source.close()
        if self._own_transport is not None:
            await asyncio.to_thread(self._own_transport.close)

    async def _watch_idle(self) -> None:
        if self._until_idle_s is None:
            return
        while True:
            await asyncio.sleep(0.05)
            if not self._running and time.monotonic() - self._source.last_busy >= self._until_idle_s:
                self._stopped.set()

    # What the source says

    def failed(self, error: BaseException) -> None:
        """The source cannot claim any more: the worker ends with this error."""
        self._failure = error
        _log.error("the worker ends: %s", error)
        self._stopped.set()

    def cancelled(self, lease: str, lost: bool) -> None:
        """The task of this lease was cancelled, or is no longer this worker's."""
        task, context = self._running.get(lease, (None, None))
        if task is None or context is None:
            return  # it is over, or it is a turn: its commit will be refused
        context._cancel(lease_lost=lost)
        definition = self._app.registry.tasks.get(context.type)
        if definition is not None and definition.is_async:
            task.cancel()

    def started(self, lane: int, claim: Claim) -> bool:
        """Runs what was claimed; False if this worker does not."""
        execution = claim["execution"]
        if self._is_draining:
            return False
        if execution["kind"] == "workflow":
            self._running[claim["lease"]] = (asyncio.create_task(self._run_turn(lane, claim)), None)
            return True
        definition = self._app.registry.tasks.get(execution["type"])
        if definition is None:
            return False
        context = TaskContext(claim)
        loop, notes = asyncio.get_running_loop(), self._notes
        context._report = lambda note: _tell(loop, notes, context.lease, note)
        task = asyncio.create_task(self._run_task(lane, claim, definition, context))
        self._running[claim["lease"]] = (task, context)
        return True

    # Work

    async def _run_task(self, lane: int, claim: Claim, definition: Task[Any, Any], context: TaskContext) -> None:
        try:
            with handling(self._app, context) as ended:
                outcome = await run_attempt(definition, context, self._threads, self._processes)
                ended(outcome)
            if context.cancelled and "error" in outcome:
                outcome = cancelled()
            if not context.lease_lost:
                await self._notes.flush(context.lease)
                await self._source.finish(claim, outcome)
        finally:
            self._end(lane, claim)

    async def _run_turn(self, lane: int, claim: Claim) -> None:
        try:
            await self._turns.run(claim)
        except Error as error:
            _log.warning("a turn of %s was given up: %s", claim["execution"].get("workflow_id"), error)
        finally:
            self._end(lane, claim)

    def _end(self, lane: int, claim: Claim) -> None:
        self._running.pop(claim["lease"], None)
        self._source.ended(lane, claim)


def _tell(loop: asyncio.AbstractEventLoop, notes: Notes, lease: str, note: dict[str, Any]) -> None:
    """From a handler, on the loop or on a thread."""
    if asyncio._get_running_loop() is loop:
        notes.add(lease, note)
    else:
        loop.call_soon_threadsafe(notes.add, lease, note)


def _where(task: Task[Any, Any]) -> str:
    return "process" if task.cpu else "async" if task.is_async else "thread"


def run_blocking(make: Callable[[], Worker]) -> Worker:
    """Runs a worker until SIGINT, SIGTERM or its idle time. A second signal ends the process at once."""
    import signal

    signals = 0
    worker: Worker | None = None
    loop: asyncio.AbstractEventLoop | None = None

    def on_signal(number: int, frame: object) -> None:
        # A plain handler of signals: those of a loop wait as long as something blocks the loop.
        nonlocal signals
        signals += 1
        if signals > 1:
            if worker is not None:
                worker.kill_processes()
            os._exit(128 + number)
        _log.info("stopping; a second signal ends at once")
        if worker is not None and loop is not None:
            loop.call_soon_threadsafe(worker.stop)

    async def main() -> Worker:
        nonlocal worker, loop
        loop = asyncio.get_running_loop()
        worker = make()
        if signals:
            worker.stop()
        await worker.run()
        return worker

    before = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(ValueError):  # not on the main thread
            before[number] = signal.signal(number, on_signal)
    try:
        return asyncio.run(main())
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
