"""Turns of workflows: a thread of their own runs the code, a bounded number of runs stays in memory."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import queue
import sys
import threading
import time
import traceback
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from hapax.calls import path
from hapax.workflow.errors import UnknownType, WorkflowBlocked
from hapax.workflow.run import Run, Turn, stuck_turn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hapax.calls import Calls
    from hapax.definitions import Workflow
    from hapax.worker.source import Claim, Source

_log = logging.getLogger("hapax.worker")

BLOCKED_LOGGED_S = 2.0
BLOCKED_STUCK_S = 10.0


class TurnThread:
    """A thread that runs one turn after the other. One that blocks it is left behind with it."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._current: tuple[Callable[[], Any], float] | None = None
        self._thread = self._start()

    def _start(self) -> threading.Thread:
        thread = threading.Thread(target=self._main, name="hapax-turns", daemon=True)
        thread.start()
        return thread

    async def run(self, work: Callable[[], Any]) -> Any:
        """Runs `work` on the thread; its result."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Any] = loop.create_future()

        def job() -> None:
            self._current = (work, time.monotonic())
            result, error = None, None
            try:
                result = work()
            except BaseException as caught:
                error = caught
            with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
                loop.call_soon_threadsafe(_settle, done, result, error)

        self._jobs.put(job)
        return await done

    def _main(self) -> None:
        while True:
            job = self._jobs.get()
            if job is None:
                return
            job()
            if threading.current_thread() is not self._thread:
                return
            self._current = None

    def took_s(self, work: Callable[[], Any]) -> float:
        """How long `work` has been running; 0 if it does not run."""
        current = self._current
        return time.monotonic() - current[1] if current is not None and current[0] is work else 0.0

    def stack(self) -> str:
        """Where it is."""
        frame = sys._current_frames().get(self._thread.ident or 0)
        return "".join(traceback.format_stack(frame)[-12:]) if frame else ""

    def leave_behind(self) -> None:
        """Goes on with the next turn on a new thread. The old one gets a WorkflowBlocked, which ends Python loops."""
        old = self._thread
        self._thread = self._start()
        if old.ident is not None:
            error = ctypes.py_object(WorkflowBlocked)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(old.ident), error)

    def close(self) -> None:
        self._jobs.put(None)


def _settle(done: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if done.done():
        return
    if error is not None:
        done.set_exception(error)
    else:
        done.set_result(result)


class Turns:
    """Runs the turns that a worker claims, and commits them."""

    def __init__(self, calls: Calls, workflows: Mapping[str, Workflow[Any, Any]], source: Source, kept: int) -> None:
        """`kept` is how many runs stay in memory between their turns; 0 replays each at every turn."""
        self._calls = calls
        self._workflows = workflows
        self._source = source
        self._most_kept = kept
        self._kept: OrderedDict[str, Run] = OrderedDict()
        self._thread = TurnThread()

    async def run(self, claim: Claim) -> None:
        """Runs one turn and commits it."""
        execution = claim["execution"]
        workflow = self._workflows.get(execution["type"])
        if workflow is None:
            error = UnknownType(f"no workflow of type {execution['type']} is known here")
            await self._source.turn(claim, stuck_turn(claim["run"]["seen"], error))
            return
        if claim.get("continues") and not self._fits(claim):
            await self._source.give_back(claim)  # what is in memory is gone, and its history is not stored yet
            return
        run, turn = await self._advance(workflow, claim)
        if run is not None and turn.suspended:
            # Before the answer: the next turn may be handed out sooner than that. Its claim says what was committed.
            await self._keep(run)
            accepted = await self._source.turn(claim, turn)
            if not accepted and self._kept.get(run.id) is run:
                del self._kept[run.id]
                await self._drop(run)
            return
        await self._source.turn(claim, turn)
        if run is not None:
            await self._drop(run)

    def _fits(self, claim: Claim) -> bool:
        """Whether the run is in memory, at the position that the claim continues from."""
        run = self._kept.get(claim["execution"]["id"])
        return run is not None and run.history.seen == claim["run"]["seen"]

    async def _advance(self, workflow: Workflow[Any, Any], claim: Claim) -> tuple[Run | None, Turn]:
        execution, now = claim["execution"], claim["execution"]["started_at"]
        fits = self._fits(claim)
        run = self._kept.pop(execution["id"], None)
        if run is not None and fits:
            turn = await self._watched(run, lambda: run.turn(claim["events"], now))
            if turn is not None:
                return (None if turn.end.get("blocked") else run), _plain(turn)
        if run is not None:
            await self._drop(run)
        events = claim["events"] if claim["run"]["seen"] == 0 else await self._history(execution)
        replayed = Run(workflow, execution)
        turn = await self._watched(replayed, lambda: replayed.turn(events, now))
        assert turn is not None, "a run that was not in memory confirms nothing"
        return (None if turn.end.get("blocked") else replayed), _plain(turn)

    async def _watched(self, run: Run, work: Callable[[], Turn | None]) -> Turn | None:
        """Runs a turn. One that takes too long is logged, and then given up with the thread that it blocks."""
        thread = self._thread
        running = asyncio.ensure_future(thread.run(work))
        logged = False
        while not running.done():
            await asyncio.wait([running], timeout=0.5)
            took_s = thread.took_s(work)
            if running.done() or took_s < BLOCKED_LOGGED_S:
                continue
            if not logged:
                logged = True
                text = "a turn of %s has been running for %.0f s; its code must not block:\n%s"
                _log.warning(text, run.id, took_s, thread.stack())
            if took_s >= BLOCKED_STUCK_S:
                where = " ".join(line.strip() for line in thread.stack().strip().splitlines()[-2:])
                thread.leave_behind()
                error = WorkflowBlocked(f"the turn did not end within {BLOCKED_STUCK_S:.0f} s: {where}")
                turn = stuck_turn(run.history.seen, error)
                turn.end["blocked"] = True
                return turn
        result: Turn | None = running.result()
        return result

    async def _history(self, execution: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        events: list[Mapping[str, Any]] = []
        after: int | None = 0
        while after is not None:
            target = path("workflows", execution["workflow_id"], "history") + f"?run={execution['id']}&after={after}"
            page = (await self._calls.call("GET", target)).json
            events += page["events"]
            after = page["next_after"]
        return events

    async def _keep(self, run: Run) -> None:
        older = self._kept.pop(run.id, None)
        if older is not None:
            await self._drop(older)
        self._kept[run.id] = run
        while len(self._kept) > self._most_kept:
            _, oldest = self._kept.popitem(last=False)
            await self._drop(oldest)

    async def _drop(self, run: Run) -> None:
        await self._thread.run(run.drop)

    async def close(self) -> None:
        """Drops all runs that are in memory; their histories are safe."""
        while self._kept:
            _, run = self._kept.popitem()
            await self._drop(run)
        self._thread.close()


def _plain(turn: Turn) -> Turn:
    """Without the mark of a turn whose thread is gone."""
    return turn._replace(end={name: value for name, value in turn.end.items() if name != "blocked"})
