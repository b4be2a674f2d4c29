"""Workflows that are plain functions: their code runs on a thread of its own, in strict turns with the loop."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from hapax.workflow.errors import RunDropped
from hapax.workflow.guard import guarded, place

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from hapax.workflow.errors import NotInWorkflow


class _Outcome(NamedTuple):
    """What the code gets for what it asked."""

    value: Any = None
    error: BaseException | None = None


class CodeThread:
    """Runs a function. Either the thread runs or the loop does, never both: so the order is that of the code.

    While the function waits for something, it may be interrupted: its thread does a job first, which may wait itself.
    """

    def __init__(self, function: Callable[[], Any], report: Callable[[NotInWorkflow], None]) -> None:
        self.may_be_interrupted = False
        self._function = function
        self._report = report
        self._thread_may_run = threading.Semaphore(0)
        self._loop_may_run = threading.Semaphore(0)
        self._asked: Coroutine[Any, Any, Any] | None = None
        self._outcome = _Outcome()
        self._ended = False
        self._dropped = False
        self._waits_at = "its start"
        self._thread = threading.Thread(target=self._main, name="hapax-workflow", daemon=True)
        self._job: Callable[[], None] | None = None  # to do before the code goes on
        self._job_error: BaseException | None = None
        self._happened: deque[Callable[[], None] | None] = deque()  # jobs, and None: what the code waits for is there
        self._next: asyncio.Future[None] | None = None

    # On the loop's thread

    async def drive(self) -> Any:
        """Starts the code, and answers what it asks for until it ends."""
        self._start()
        self._run_thread()
        while not self._ended:
            outcome = self._interruptible if self.may_be_interrupted else self._outcome_of
            self._outcome = await outcome(self._take_asked())
            self._run_thread()
        if self._outcome.error is not None:
            raise self._outcome.error
        return self._outcome.value

    def interrupt(self, job: Callable[[], None]) -> None:
        """Has the code do this where it waits, before what comes later."""
        self._happened.append(job)
        self._tell()

    def _tell(self) -> None:
        if self._next is not None and not self._next.done():
            self._next.set_result(None)

    def _run_thread(self) -> None:
        """Lets the code run until it asks for something, or ends."""
        self._thread_may_run.release()
        self._loop_may_run.acquire()

    def _take_asked(self) -> Coroutine[Any, Any, Any]:
        asked, self._asked = self._asked, None
        assert asked is not None
        return asked

    async def _outcome_of(self, asked: Coroutine[Any, Any, Any] | asyncio.Task[Any]) -> _Outcome:
        try:
            return _Outcome(await asked)
        except BaseException as error:
            if self._dropped or isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
            return _Outcome(error=error)

    async def _interruptible(self, asked: Coroutine[Any, Any, Any]) -> _Outcome:
        waiting = asyncio.get_running_loop().create_task(asked)
        waiting.add_done_callback(lambda _: self._arrived())
        try:
            while (job := await self._next_happening()) is not None:
                await self._do(job)
        except asyncio.CancelledError as error:  # the wait ends, or the job has passed on a cancellation
            waiting.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await waiting
            if None in self._happened:
                self._happened.remove(None)
            return _Outcome(error=error)
        return await self._outcome_of(waiting)

    def _arrived(self) -> None:
        self._happened.append(None)
        self._tell()

    async def _next_happening(self) -> Callable[[], None] | None:
        while not self._happened:
            self._next = asyncio.get_running_loop().create_future()
            await self._next
        return self._happened.popleft()

    async def _do(self, job: Callable[[], None]) -> None:
        self._job = job
        self._run_thread()
        while self._asked is not None:
            self._outcome = await self._outcome_of(self._take_asked())
            self._run_thread()
        error, self._job_error = self._job_error, None
        if error is not None:
            raise error

    def _start(self) -> None:
        profile = sys.getprofile()
        sys.setprofile(None)  # this thread is the library's own
        try:
            self._thread.start()
        finally:
            sys.setprofile(profile)

    def end(self) -> None:
        """Unwinds the code: what it waits for raises RunDropped."""
        self._dropped = True
        if self._thread.is_alive():
            self._outcome = _Outcome(error=RunDropped("this run is no longer kept in memory"))
            self._thread_may_run.release()
            self._thread.join(1)

    def waits_at(self) -> str:
        return self._waits_at

    # On the code's thread

    def ask(self, call: Coroutine[Any, Any, Any]) -> Any:
        """Hands a coroutine to the loop and waits for its result."""
        if self._dropped:
            call.close()
            raise RunDropped("this run is no longer kept in memory; nothing can be asked for")
        self._waits_at = place(sys._getframe(1))
        self._asked = call
        self._run_loop()
        while self._job is not None:
            job, self._job = self._job, None
            try:
                job()
            except BaseException as error:
                if self._dropped:
                    raise
                self._job_error = error
            self._run_loop()
        if self._outcome.error is not None:
            raise self._outcome.error
        return self._outcome.value

    def _run_loop(self) -> None:
        self._loop_may_run.release()
        self._thread_may_run.acquire()

    def _main(self) -> None:
        self._thread_may_run.acquire()
        value, failure = None, None
        try:
            if not self._dropped:
                with guarded(self._report):
                    value = self._function()
        except BaseException as error:
            failure = error
        self._outcome, self._ended = _Outcome(value, failure), True
        self._loop_may_run.release()
