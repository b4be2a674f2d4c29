"""What the code of an app declares: tasks, workflows, activities, settings of queues."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from hapax.calls import path
from hapax.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from hapax.calls import Calls
    from hapax.definitions import Task, Workflow


class Registry:
    """Declarations by name, and those that the server has not been told yet."""

    def __init__(self) -> None:
        self.tasks: dict[str, Task[Any, Any]] = {}
        self.workflows: dict[str, Workflow[Any, Any]] = {}
        self.activities: dict[str, dict[str, Any]] = {}
        self.outboxes: list[Callable[[], Any]] = []
        self.effective_queues: dict[str, str] = {}
        self._lock = threading.Lock()
        self._untold: dict[str, dict[str, Any]] = {}
        self._told: dict[str, dict[str, Any]] = {}

    def add_task(self, task: Task[Any, Any]) -> None:
        for name in (task.name, *task.aliases):
            self._check_new(name, self.tasks, "task")
        for name in (task.name, *task.aliases):
            self.tasks[name] = task
        declared = task.declared.to_wire()
        if declared:
            self.tell(path("types", task.name, "code"), declared)

    def add_workflow(self, workflow: Workflow[Any, Any]) -> None:
        for name in (workflow.name, *workflow.aliases):
            self._check_new(name, self.workflows, "workflow")
        for name in (workflow.name, *workflow.aliases):
            self.workflows[name] = workflow

    def add_activity(self, activity_id: str, activity: dict[str, Any]) -> None:
        self._check_new(activity_id, self.activities, "activity")
        self.activities[activity_id] = activity
        self.tell(path("activities", activity_id), activity)

    def _check_new(self, name: str, known: dict[str, Any], what: str) -> None:
        if name in known:
            raise InvalidRequest(f"this app has a {what} named {name!r} already; give one of them another name=")

    def tell(self, target: str, body: dict[str, Any]) -> None:
        """Remembers a PUT for the first call that goes out."""
        with self._lock:
            self._untold[target] = body

    async def tell_all(self, calls: Calls) -> None:
        """Sends what the server has not been told. Callers at the same time may send it twice, which is harmless."""
        if not self._untold:
            return
        with self._lock:
            untold = dict(self._untold)
        for target, body in untold.items():
            answer = await calls.call("PUT", target, body)
            if target.startswith("/v1/types/"):
                queue = answer.json.get("settings", {}).get("queue")
                if queue:
                    self.effective_queues[answer.json["name"]] = queue
            with self._lock:
                self._told[target] = body
                if self._untold.get(target) is body:
                    del self._untold[target]
