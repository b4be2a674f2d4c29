"""Workflows that are plain functions: their code runs on a thread of its own, in strict turns with the loop."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from hapax.workflow.errors import RunDropped
from hapax.workflow.guard import guarded, place

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from hapax.workflow.errors import NotInWorkflow


class CodeThread:
    """Runs a function. Either the thread runs or the loop does, never both: so the order is that of the code."""

    def __init__(self, function: Callable[[], Any], report: Callable[[NotInWorkflow], None]) -> None:
        self._function = function
        self._report = report
        self._thread_may_run = threading.Semaphore(0)
        self._loop_may_run = threading.Semaphore(0)
        self._asked: Coroutine[Any, Any, Any] | None = None
        self._answer: Any = None
        self._error: BaseException | None = None
        self._ended = False
        self._dropped = False
        self._waits_at = "its start"
        self._thread = threading.Thread(target=self._main, name="hapax-workflow", daemon=True)

    # On the loop's thread

    async def drive(self) -> Any:
        """Starts the code, and answers what it asks for until it ends."""
        self._start()
        while True:
            self._thread_may_run.release()
            self._loop_may_run.acquire()
            if self._ended:
                if self._error is not None:
                    raise self._error
                return self._answer
            asked, self._asked = self._asked, None
            assert asked is not None
            try:
                self._answer, self._error = await asked, None
            except BaseException as error:
                if self._dropped or isinstance(error, (KeyboardInterrupt, SystemExit)):
                    raise
                self._answer, self._error = None, error

    def _start(self) -> None:
        import sys

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
            self._answer, self._error = None, RunDropped("this run is no longer kept in memory")
            self._thread_may_run.release()
            self._thread.join(1)

    def waits_at(self) -> str:
        return self._waits_at

    # On the code's thread

    def ask(self, call: Coroutine[Any, Any, Any]) -> Any:
        """Hands a coroutine to the loop and waits for its result."""
        import sys

        if self._dropped:
            call.close()
            raise RunDropped("this run is no longer kept in memory; nothing can be asked for")
        self._waits_at = place(sys._getframe(1))
        self._asked = call
        self._loop_may_run.release()
        self._thread_may_run.acquire()
        error, self._error = self._error, None
        if error is not None:
            raise error
        return self._answer

    def _main(self) -> None:
        self._thread_may_run.acquire()
        answer, failure = None, None
        try:
            if not self._dropped:
                with guarded(self._report):
                    answer = self._function()
        except BaseException as error:
            failure = error
        self._answer, self._error, self._ended = answer, failure, True
        self._loop_may_run.release()
