"""An engine for one workflow run, small enough to read: it keeps the history and hands out turns.

What happens outside (tasks that end, timers that fire, signals that arrive) is drawn by a random generator, so one seed
is one schedule.
"""

from __future__ import annotations

import random
from typing import Any

from hapax import Workflow
from hapax.durations import time_from_wire, time_to_wire
from hapax.workflow.run import Run, Turn

OPEN_KINDS = ("task", "child", "sleep", "wait_signal")


class Engine:
    """`replay` is the chance that a turn is run by a worker that does not have the run in memory."""

    def __init__(self, workflow: Workflow[Any, Any], seed: int, replay: float, input: Any = None) -> None:
        self.workflow = workflow
        self.random = random.Random(seed)
        self.workers = random.Random(seed + 1)  # apart, so that all modes have the same schedule
        self.replay = replay
        self.execution = {
            "id": "run-1",
            "kind": "workflow",
            "type": workflow.name,
            "workflow_id": "w",
            "created_at": "2026-01-01T00:00:00.000Z",
            "input": input,
        }
        self.now_s = time_from_wire("2026-01-01T00:00:00.000Z").timestamp()
        self.history: list[dict[str, Any]] = []
        self.open: list[dict[str, Any]] = []
        self.seen = 0
        self.kept: Run | None = None
        self.end: dict[str, Any] | None = None
        self.turns = 0
        self.asked_to_end = False

    def now(self) -> str:
        import datetime

        return time_to_wire(datetime.datetime.fromtimestamp(self.now_s, datetime.timezone.utc))

    def append(self, **event: Any) -> None:
        self.history.append({"no": len(self.history) + 1, "at": self.now(), **event})

    def turn(self) -> Turn:
        """One turn, by a worker that kept the run or by another one."""
        self.turns += 1
        if self.kept is not None and self.workers.random() < self.replay:
            self.kept.drop()
            self.kept = None
        new = [event for event in self.history if event["no"] > self.seen]
        if self.kept is not None:
            turn = self.kept.turn(new, self.now())
        else:
            self.kept = Run(self.workflow, self.execution)
            turn = self.kept.turn(list(self.history), self.now())
        assert turn is not None, "the run in memory does not fit its own history"
        self.seen = turn.seen
        if self.open and self.random.random() < 0.3:
            self.happen()  # while the turn runs, which does not know it
        self.commit(turn)
        return turn

    def commit(self, turn: Turn) -> None:
        for command in turn.commands:
            event = {name: value for name, value in command.items() if name != "start"}
            if "start" in command:
                event["name"] = command["start"]["type"]
                event["input"] = command["start"].get("input")
            self.append(**event)
            if command["kind"] in OPEN_KINDS:
                self.open.append(self.history[-1])
            if command["kind"] == "cancel_step":
                self.cancel(command["value"])
        if not turn.suspended:
            self.end = turn.end

    def cancel(self, number: int) -> None:
        """A pending step is closed at once; a running task may still end as it likes."""
        step = next((step for step in self.open if step["step"] == number), None)
        if step is not None and (step["kind"] != "task" or self.random.random() < 0.5):
            self.open.remove(step)
            self.append(kind="closed", step=number, status="cancelled")

    def happen(self) -> None:
        """Something happens to one of the open steps, or the workflow is asked to end."""
        if not self.asked_to_end and self.random.random() < 0.02:
            self.asked_to_end = True
            self.append(kind="cancel_requested", value="enough")
            return
        step = self.open.pop(self.random.randrange(len(self.open)))
        self.now_s += self.random.random() * 5
        if step["kind"] == "sleep":
            self.now_s = max(self.now_s, time_from_wire(step["until"]).timestamp())
            self.append(kind="fired", step=step["step"])
        elif step["kind"] == "wait_signal":
            value: Any = self.random.randrange(100)
            if step["name"].startswith("hapax.update:"):
                value = {"request_key": f"r{len(self.history)}", "payload": value}
            self.append(kind="signal", step=step["step"], name=step["name"], value=value)
        elif self.random.random() < 0.15:
            error = {"type": "Bad", "message": "by chance"}
            self.append(kind="closed", step=step["step"], status="failed", error=error)
        else:
            self.append(kind="closed", step=step["step"], status="completed", value=self.random.randrange(100))

    def run(self, most: int = 500) -> dict[str, Any]:
        """Turns and events until the run ends; how it ended."""
        self.turn()
        while self.end is None:
            assert most > 0, "the run does not end"
            most -= 1
            for _ in range(self.random.randint(1, 3)):
                if self.open:
                    self.happen()
            self.turn()
        if self.kept is not None:
            self.kept.drop()
        return self.end

    def shape(self) -> list[tuple[Any, ...]]:
        """The history without times and without what was drawn at random."""
        names = ("no", "kind", "step", "name", "input", "status", "value")
        return [
            tuple(None if name == "value" and event["kind"] == "side_effect" else event.get(name) for name in names)
            for event in self.history
        ]
