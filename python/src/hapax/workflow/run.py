"""One run of a workflow in memory, advanced turn by turn."""

from __future__ import annotations

import asyncio
import math
import sys
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, NamedTuple

from hapax.durations import time_from_wire, time_to_wire
from hapax.errors import InvalidInput, StepFailed
from hapax.workflow import ordered
from hapax.workflow.context import Context, SyncContext
from hapax.workflow.errors import ContinueAsNew, NothingToWaitFor, NotInWorkflow, RunDropped, Stuck
from hapax.workflow.guard import guarded, is_code_of_workflow
from hapax.workflow.history import TIMER, History
from hapax.workflow.loop import WorkflowLoop
from hapax.workflow.updates import Updates

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping

    from hapax.definitions import Workflow
    from hapax.workflow.history import Event
    from hapax.workflow.threads import CodeThread

ordered.install()


class Turn(NamedTuple):
    """What a turn hands back: the number of the last event that the code knew, its new commands, and how it ended."""

    seen: int
    commands: list[dict[str, Any]]
    end: dict[str, Any]
    waits_for: int | None = None
    """The step that the code waits for alone, and has just asked for: it may run within this turn."""

    @property
    def suspended(self) -> bool:
        return bool(self.end["kind"] == "suspended")


def stuck_turn(seen: int, error: Stuck) -> Turn:
    """A turn that could not be run. Nothing is stored but its error."""
    return Turn(seen, [], {"kind": "stuck", "error": {"type": error.type, "message": str(error)}})


class _Pause:
    """Awaited, it lets the loop run once."""

    def __await__(self) -> Generator[None, None, None]:
        yield


class Run:
    """The code of one run, at the position `history.seen`.

    Outcomes are told one at a time, in the order of their numbers, and after each the loop runs until nothing is ready.
    So what the code asks for depends on the history alone, not on how its events were spread over turns.
    """

    def __init__(self, workflow: Workflow[Any, Any], execution: Mapping[str, Any]) -> None:
        self.workflow = workflow
        self.execution = execution
        self.id: str = execution["id"]
        self.history = History()
        began_s = time_from_wire(execution["created_at"]).timestamp()
        self.loop = WorkflowLoop(self, began_s)  # type: ignore[abstract]
        self.turn_began_s = self.loop.time()
        self._timers: dict[int, int] = {}  # id of a handle → its step
        self._main: asyncio.Task[Any] | None = None
        self.thread: CodeThread | None = None
        """Of a plain workflow, where its code runs."""
        self.updates = Updates(self)
        self.is_cancel_requested = False  # and the code was told
        self.cancel_reason: Any = None

    def turn(self, events: Iterable[Event], now: str) -> Turn | None:
        """Runs the code on with these events; `now` is the server's time at the beginning of the turn. None: what is
        in memory does not fit the history, so the run has to be replayed."""
        self.turn_began_s = max(self.loop.time(), time_from_wire(now).timestamp())
        outcomes = self.history.learn(events)
        if outcomes is None:
            return None
        try:
            with guarded(self.forbidden):
                if self._main is None:
                    self._main = self.loop.create_task(self._code())
                    self._run_ready()
                for outcome in outcomes:
                    known = self.history.known_when_told()
                    if known is not None and outcome["no"] > known:
                        self._tell_of_cancel_where_it_waits()
                    if self._is_over():
                        break
                    self.loop.set_time(time_from_wire(outcome["at"]).timestamp())
                    self.history.tell(outcome)
                    self._run_ready()
                self._tell_of_cancel_where_it_waits()
        except Stuck as error:
            self.history.stuck = self.history.stuck or error
        return self._finish_turn()

    def _is_over(self) -> bool:
        assert self._main is not None
        return self._main.done() or self.history.stuck is not None

    def _run_ready(self) -> None:
        self.loop.run_ready()
        self.history.spared.clear()

    # A requested cancel is told once: where the code begins its next step, or where it waits for something else than
    # tasks. The place is recorded, and every replay tells it there: docs/protocol.md.

    def _is_told_of_cancel_here(self) -> bool:
        if self.is_cancel_requested or self.updates.is_answering:
            return False  # a handler of updates is let finish what it has begun
        return self.history.tells_of_cancel_here()

    def _tell_of_cancel_where_it_waits(self) -> None:
        if self._is_over() or not self._is_told_of_cancel_here() or not self.history.may_be_interrupted:
            return
        assert self._main is not None
        self.cancel_reason = self.history.tell_of_cancel()
        self.is_cancel_requested = True
        self._main.cancel()
        self._run_ready()

    def tell_of_cancel_at_a_step(self) -> bool:
        """Raises a CancelledError in the code of the workflow, if it is told here. In another task of its: True, and it
        is cancelled with what it waits for."""
        self.history.check_usable()
        if not self._is_told_of_cancel_here():
            return False
        self.cancel_reason = self.history.tell_of_cancel()
        self.is_cancel_requested = True
        assert self._main is not None
        running = asyncio.current_task() if asyncio._get_running_loop() is self.loop else self._main
        if running is self._main:
            raise asyncio.CancelledError("the cancellation of this workflow was requested")
        self._main.cancel()
        return True

    async def _code(self) -> Any:
        function, signature = self.workflow.function, self.workflow.signature
        arguments = signature.decode(self.execution.get("input"))
        assert signature.context_parameter is not None
        if self.workflow.is_async:
            result = await function(**{signature.context_parameter: Context(self)}, **arguments)
        else:
            from hapax.workflow.threads import CodeThread

            context = SyncContext(self)
            self.thread = CodeThread(
                lambda: function(**{signature.context_parameter or "": context}, **arguments), self.forbidden
            )
            context._bind(self.thread)
            result = await self.thread.drive()
        return None if result is None else signature.encode_result(result)

    def _finish_turn(self) -> Turn:
        history, main = self.history, self._main
        end: dict[str, Any] = {"kind": "suspended"}
        if history.stuck is None:
            assert main is not None
            if main.done():
                end = self._end_of(main)
            history.check_nothing_left(_found(end, self))
            if end["kind"] == "suspended" and not history.waits and history.stuck is None:
                history.stuck = NothingToWaitFor(
                    f"the code waits at {self.waits_at()}, and no task, timer or signal is open that could wake it"
                )
        if history.stuck is not None:
            return stuck_turn(history.seen, history.stuck)
        waits_for = history.waits_for_alone() if end["kind"] == "suspended" else None
        return Turn(history.seen, history.take_commands(), end, waits_for)

    def _end_of(self, main: asyncio.Task[Any]) -> dict[str, Any]:
        if main.cancelled():
            if self.is_cancel_requested:
                return _failed("CancelRequested", f"its cancellation was requested: {self.cancel_reason}")
            return _failed("CancelledError", "the workflow's code was cancelled by itself")
        error = main.exception()
        if error is None:
            result = main.result()
            return {"kind": "completed"} if result is None else {"kind": "completed", "result": result}
        if isinstance(error, ContinueAsNew):
            return {"kind": "continued", "input": error.input}
        if isinstance(error, Stuck):
            self.history.stuck = error
        if isinstance(error, InvalidInput):
            return _failed("InvalidInput", error.message)
        return _failed("StepFailed" if _is_step_failure(error) else type(error).__name__, str(error))

    def waits_at(self) -> str:
        """Where the code waits: file and line of its innermost await, of each task that is not done."""
        places = []
        for task in self.loop.tasks:
            if task.done():
                continue
            waiting: Any = task.get_coro()
            place = None
            while waiting is not None:
                frame = getattr(waiting, "cr_frame", None) or getattr(waiting, "gi_frame", None)
                if frame is not None and is_code_of_workflow(frame):
                    place = f"{frame.f_code.co_filename}:{frame.f_lineno}"
                waiting = getattr(waiting, "cr_await", None) or getattr(waiting, "gi_yieldfrom", None)
            if place is not None:
                places.append(place)
        if self.thread is not None:
            places.append(self.thread.waits_at())
        return ", ".join(dict.fromkeys(places)) or "an unknown place"

    def drop(self) -> None:
        """Ends the code: its tasks are cancelled inside their loop. What its `finally` blocks ask for is refused."""
        self.history.dropped = True
        for _ in range(3):  # a task may swallow its first cancellation
            for task in self.loop.tasks:
                if not task.done():
                    task.cancel()
            self.loop.run_ready(most=10_000)
        if self.thread is not None:
            self.thread.end()
        for task in self.loop.tasks:
            if task.done() and not task.cancelled():
                task.exception()  # it was dropped with the run
        self.loop.tasks.clear()

    # Asking

    async def step(
        self,
        kind: str,
        name: str | None,
        members: Mapping[str, Any],
        *,
        key: str | None = None,
        aliases: tuple[str, ...] = (),
    ) -> Event:
        """Asks for a step and waits for its outcome."""
        if self.tell_of_cancel_at_a_step():
            await _Pause()  # if this task is cancelled with the code, then here
        outcome = self.loop.create_future()

        def told(event: Event) -> None:
            if not outcome.done():
                outcome.set_result(event)

        step, _ = self.history.ask(kind, name, members, key=key, aliases=aliases, waiter=told, waits=kind)
        try:
            event: Event = await outcome
        except asyncio.CancelledError:
            self.history.abandon(step)
            raise
        if event["kind"] == "closed" and event["status"] != "completed":
            raise StepFailed(f"{kind} '{name}'", event["status"], event.get("error"))
        return event

    def record(self, name: str, compute: Callable[[], Any]) -> Any:
        """A side effect: computed once, and the same in every replay."""
        self.history.check_usable()
        before = self.history.recorded()
        if before is not None:
            self.history.ask("side_effect", name)
            if before.get("error"):
                raise StepFailed(f"side effect '{name}'", "failed", before["error"])
            return before.get("value")
        profile = sys.getprofile()
        sys.setprofile(None)  # what it does is recorded, so it may do anything
        try:
            value = compute()
        except Exception as error:
            told = {"type": type(error).__name__, "message": str(error)}
            self.history.ask("side_effect", name, {"name": name, "error": told})
            raise StepFailed(f"side effect '{name}'", "failed", told) from error
        finally:
            sys.setprofile(profile)
        self.history.ask("side_effect", name, {"name": name, "value": value})
        return value

    def version(self, change: str, current: int) -> int:
        """Which version of the code this run is on."""
        self.history.check_usable()
        before = self.history.recorded()
        if before is not None and (before["kind"], before.get("name")) != ("version", change):
            return 0  # the code passed this point before it asked; the step is not consumed
        value = current if before is None else int(before["value"])
        self.history.ask("version", change, {"name": change, "value": value})
        return value

    def until(self, delay_s: float) -> str:
        """The time `delay_s` after the beginning of this turn, on the server's clock."""
        milliseconds = math.ceil((self.turn_began_s + delay_s) * 1000)
        return time_to_wire(datetime.fromtimestamp(milliseconds / 1000, timezone.utc))

    # The loop's timers

    def start_timer(self, handle: asyncio.TimerHandle) -> None:
        delay_s = handle.when() - self.loop.time()
        step, _ = self.history.ask(
            "sleep", None, {"until": self.until(delay_s)}, waiter=lambda event: self.loop.fire(handle), waits=TIMER
        )
        self._timers[id(handle)] = step

    def cancel_timer(self, handle: asyncio.TimerHandle) -> None:
        step = self._timers.pop(id(handle), None)
        if step is not None:
            self.history.abandon(step)

    def forbidden(self, error: NotInWorkflow) -> None:
        """The code did something that a replay cannot repeat. It may catch the error; the turn is stuck anyway."""
        if not self.history.dropped:
            self.history.stuck = self.history.stuck or error


def _failed(kind: str, message: str) -> dict[str, Any]:
    return {"kind": "failed", "error": {"type": kind, "message": message}}


def _is_step_failure(error: BaseException) -> bool:
    """A step's failure that escaped the code, by itself or in the group of a TaskGroup. Resuming tries it again."""
    inner = getattr(error, "exceptions", None)
    return all(_is_step_failure(one) for one in inner) if inner else isinstance(error, StepFailed)


def _found(end: Mapping[str, Any], run: Run) -> str:
    if end["kind"] == "suspended":
        return f"a wait at {run.waits_at()}"
    if end["kind"] == "failed":
        return f"an exception ({end['error']['type']}: {end['error']['message']})"
    return "continue_as_new" if end["kind"] == "continued" else "the end of the workflow"


__all__ = ["Run", "RunDropped", "Turn", "stuck_turn"]
