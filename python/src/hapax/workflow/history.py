"""What the code asks for, beside what the history has: steps, their numbers, and the new commands."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from hapax.workflow.errors import NonDeterminism, RunDropped, Stuck
from hapax.workflow.guard import place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Event = Mapping[str, Any]

_WITHOUT_OUTCOME = frozenset(("side_effect", "version", "publish", "cancel_step", "answer"))
COMMANDS = frozenset(("task", "child", "sleep", "wait_signal", "send_signal")) | _WITHOUT_OUTCOME
OUTCOMES = frozenset(("closed", "fired", "signal"))
CANCEL_REQUESTED = "cancel_requested"
TOLD_OF_CANCEL = "hapax.cancel_requested"
"""The side effect that records where the code was told of a requested cancel: its `reason`, and as `known` the latest
event that the code knew then. So a replay hands out the outcomes that the code had before, and none that came later."""
TIMER = "timer"
"""A `sleep` that is a timer of asyncio, perhaps a limit of time for something else."""


def _tells_of_cancel(command: Event) -> bool:
    return bool(command["kind"] == "side_effect" and command.get("name") == TOLD_OF_CANCEL)


def describe(event: Event) -> str:
    """A command as messages name it."""
    text: str = event["kind"]
    if event.get("name"):
        text += f" '{event['name']}'"
    if event["kind"] == "child" and event.get("key"):
        text += f" as '{event['key']}'"
    return text


class History:
    """The steps of one run. Steps are numbered from 1 in the order in which the code asks for them."""

    def __init__(self) -> None:
        self.seen = 0
        self.asked = 0
        self.commands: list[dict[str, Any]] = []
        self.stuck: Stuck | None = None
        self.dropped = False
        self._ahead: dict[int, Event] = {}
        self._unconfirmed: dict[int, Event] = {}
        self._waiting: dict[int, Callable[[Event], None]] = {}
        self._types: dict[int, str | None] = {}  # of the open steps: a task's or child's type
        self._waits: dict[int, str] = {}  # for what the code waits: kinds
        self.cancel_request: Event | None = None
        self.spared: set[int] = set()
        """Steps that stay open if the code waits for them no longer, because it was told of a requested cancel."""
        self._early: dict[int, Event] = {}

    def learn(self, events: Iterable[Event]) -> list[Event] | None:
        """Takes new events; what the code has to be told among them, in order. None: another worker's turn was
        committed instead of this one, so what is in memory is not the run."""
        outcomes = []
        for event in events:
            if event["no"] <= self.seen:
                continue
            self.seen = event["no"]
            if event["kind"] in COMMANDS:
                if event["step"] > self.asked:
                    self._ahead[event["step"]] = event
                elif not self._confirm(event):
                    return None
            elif event["kind"] == CANCEL_REQUESTED:
                self.cancel_request = event
            elif event["kind"] in OUTCOMES and event.get("step"):
                outcomes.append(event)
        return None if self._unconfirmed else outcomes

    def _confirm(self, event: Event) -> bool:
        sent = self._unconfirmed.pop(event["step"], None)
        return sent is not None and all(sent.get(member) == event.get(member) for member in ("kind", "name", "value"))

    @property
    def replaying(self) -> bool:
        """Whether the history has commands that the code has not asked for yet."""
        return bool(self._ahead)

    @property
    def waits(self) -> bool:
        """Whether a step is open that could wake the code."""
        return bool(self._waiting)

    @property
    def may_be_interrupted(self) -> bool:
        """Whether the code waits for something else than tasks. One that was begun has its effect: the code gets its
        outcome first, and can undo it."""
        kinds = set(self._waits.values())
        return bool(kinds & {"child", "sleep", "wait_signal"}) or not kinds & {"task", "send_signal"}

    def known_when_told(self) -> int | None:
        """If the code was told of a cancel before it asked for anything else: the latest event that it knew then."""
        before = self.recorded()
        if before is None or not _tells_of_cancel(before):
            return None
        known: int = before["value"]["known"]
        return known

    def tells_of_cancel_here(self) -> bool:
        """Whether the code is told of a cancel before its next step: as the history has it, or if it has no more."""
        before = self.recorded()
        return self.cancel_request is not None if before is None else _tells_of_cancel(before)

    def tell_of_cancel(self) -> Any:
        """Records that the code is told here; the reason, if one was given."""
        before = self.recorded()
        if before is not None:
            value = before["value"]
        else:
            assert self.cancel_request is not None
            reason = self.cancel_request.get("value")
            value = {"known": self.seen, **({} if reason is None else {"reason": reason})}
        self.ask("side_effect", TOLD_OF_CANCEL, {"name": TOLD_OF_CANCEL, "value": value})
        self.spared = set(self._waits)
        return value.get("reason")

    def recorded(self) -> Event | None:
        """What the history has as the next step, if anything."""
        return self._ahead.get(self.asked + 1)

    def check_usable(self) -> None:
        if self.dropped:
            raise RunDropped("this run is no longer kept in memory; nothing can be asked for")
        if self.stuck is not None:
            raise self.stuck

    def ask(
        self,
        kind: str,
        name: str | None = None,
        members: Mapping[str, Any] | None = None,
        *,
        key: str | None = None,
        aliases: tuple[str, ...] = (),
        waiter: Callable[[Event], None] | None = None,
        waits: str | None = None,
    ) -> tuple[int, Event | None]:
        """The next step, and its command in the history if it is there. `waiter` is told its outcome; `waits` is the
        kind, or TIMER, if that is something that the code waits for."""
        self.check_usable()
        step = self.asked + 1
        known = self._ahead.get(step)
        if known is not None:
            same = known["kind"] == kind and known.get("name") in (name, *aliases)
            if not same or (kind == "child" and key is not None and known.get("key") != key):
                found = describe({"kind": kind, "name": name, "key": key})
                self._mismatch(step, known, f"{found} at {place(sys._getframe(1))}")
            del self._ahead[step]
        else:
            command = {"step": step, "kind": kind, **(members or {})}
            self.commands.append(command)
            self._unconfirmed[step] = {"kind": kind, "name": name, "value": command.get("value")}
        self.asked = step
        if waiter is not None and kind not in _WITHOUT_OUTCOME:
            early = self._early.pop(step, None)
            if early is not None:
                waiter(early)
            else:
                self._waiting[step] = waiter
                type_asked = known.get("name") if known is not None else name
                self._types[step] = type_asked if kind in ("task", "child") else None
                if waits is not None:
                    self._waits[step] = waits
        return step, known

    def tell(self, outcome: Event) -> None:
        """Tells the code that waits for this step how it ended."""
        step = outcome["step"]
        waiter = self._waiting.pop(step, None)
        self._types.pop(step, None)
        self._waits.pop(step, None)
        if waiter is not None:
            waiter(outcome)
        elif step > self.asked:
            self._early[step] = outcome

    def abandon(self, step: int) -> None:
        """The code does not wait for this step any more: if it is open, it is cancelled."""
        if self._waiting.pop(step, None) is None:
            return
        name = self._types.pop(step)
        self._waits.pop(step, None)
        if self.dropped or self.stuck is not None or step in self.spared:
            return
        self.ask("cancel_step", name, {"value": step, **({} if name is None else {"name": name})})

    def waits_for_alone(self) -> int | None:
        """The step that the code waits for, if that is the last thing it asked for and nothing else is open."""
        last = self.commands[-1] if self.commands else None
        if last is None or last["kind"] != "task" or list(self._waiting) != [last["step"]]:
            return None
        step: int = last["step"]
        return step

    def _mismatch(self, step: int, expected: Event, found: str) -> None:
        self.stuck = NonDeterminism(f"step {step}: expected {describe(expected)}, found {found}")
        raise self.stuck

    def check_nothing_left(self, found: str) -> None:
        """The code has reached its wait or its end: this code does not ask for what the history has beyond that."""
        if self._ahead and self.stuck is None:
            step = min(self._ahead)
            self.stuck = NonDeterminism(f"step {step}: expected {describe(self._ahead[step])}, found {found}")

    def take_commands(self) -> list[dict[str, Any]]:
        commands, self.commands = self.commands, []
        return commands
