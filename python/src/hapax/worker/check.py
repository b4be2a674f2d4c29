"""`hapax-worker --check`: what the code declares, beside what the server has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hapax.calls import path
from hapax.errors import NotFound
from hapax.transport import sync

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hapax.app import Hapax


def check(app: Hapax) -> int:
    """Prints tasks, workflows and schedules. 1 if the server has something else than the code declares."""
    differences = 0
    registry = app.registry
    for name, task in registry.tasks.items():
        declared = task.declared.to_wire()
        shown = _get(app, path("types", name)) or {}
        settings = shown.get("settings", {})
        wrong = [
            f"{member} is {settings.get(member)}" for member in declared if settings.get(member) != declared[member]
        ]
        differences += _line(f"task      {name}  queue {settings.get('queue', task.queue)}", wrong)
    for name, workflow in registry.workflows.items():
        _line(f"workflow  {name}  queue {workflow.queue}", [])
    for name, activity in registry.activities.items():
        there = _get(app, path("activities", name))
        if there is None:
            differences += _line(f"activity  {name}", ["the server does not have it yet; a worker will tell it"])
            continue
        following = ", ".join(there.get("next", [])) or "none"
        wrong = [member for member in activity if not _contains(there.get(member), activity[member])]
        differences += _line(f"activity  {name}  next {following}", [f"{member} differs" for member in wrong])
    return 1 if differences else 0


def _get(app: Hapax, target: str) -> Mapping[str, Any] | None:
    try:
        found: Mapping[str, Any] = sync(app.calls.call("GET", target)).json
        return found
    except NotFound:
        return None


def _contains(there: Any, declared: Any) -> bool:
    """Whether the server has at least what was declared: it fills in defaults."""
    if isinstance(declared, dict):
        return isinstance(there, dict) and all(_contains(there.get(name), value) for name, value in declared.items())
    if isinstance(declared, list):
        return (
            isinstance(there, list)
            and len(there) == len(declared)
            and all(_contains(one, other) for one, other in zip(there, declared))
        )
    return bool(there == declared)


def _line(text: str, wrong: list[str]) -> int:
    print(f"{'differs' if wrong else 'ok':8}{text}{'  (' + '; '.join(wrong) + ')' if wrong else ''}")
    return 1 if wrong else 0
