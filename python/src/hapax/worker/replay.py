"""Replays of histories against the code: before a deploy, for workflows that are open; in a test, from files."""

from __future__ import annotations

import argparse
import pathlib
import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from hapax.calls import path
from hapax.codec import load_json
from hapax.errors import Error, InvalidRequest
from hapax.transport import sync
from hapax.workflow.run import Run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hapax.app import Hapax
    from hapax.definitions import Workflow
    from hapax.workflow.history import Event

_OPEN = ("suspended", "pending", "running")
_ENDS = ("completed", "failed")
_MEMBERS = {"workflow_id": str, "execution_id": str, "type": str, "input": str, "events": list}


def main(arguments: Sequence[str]) -> int:
    """The command `hapax-worker replay`. 1 if the code does not fit the history of a workflow."""
    from hapax.worker.main import find_app

    parser = argparse.ArgumentParser(prog="hapax-worker replay", description="Replays workflows against the code")
    parser.add_argument("app", metavar="MODULE:APP")
    parser.add_argument("files", metavar="FILE", nargs="*", help="exported histories, instead of the open workflows")
    parser.add_argument("--url", help="another engine than the app's own")
    parser.add_argument("--type", action="append", help="only workflows of this type; may be repeated")
    parser.add_argument("--limit", type=int, default=1000, help="at most so many of a type (%(default)s)")
    options = parser.parse_args(list(arguments))
    app = find_app(options.app)
    if options.url:
        app.url = options.url
    wrong = 0
    try:
        runs = _exported(options.files) if options.files else _open_runs(app, options.type, options.limit)
        for execution, events in runs:
            error = mismatch(_workflow(app, execution["type"]), execution, events)
            named = f"{execution['type']}  {execution['workflow_id']}"
            print(f"ok     {named}" if error is None else f"wrong  {named}  {error.code}: {error.message}")
            wrong += error is not None
    except (Error, OSError) as error:
        print(f"hapax-worker: {error}", file=sys.stderr)
        return 2
    finally:
        app.close()
    return 1 if wrong else 0


def replay(workflow: Workflow[Any, Any], exported: str | bytes) -> None:
    """Runs the code of a workflow against a history that was exported: changes nothing, and calls no task.

    `exported` is what `hapax history WORKFLOW_ID --export` writes, or `await handle.export()`. If the code does not
    fit, it raises an `Error` whose `code` is `NonDeterminism`, `NothingToWaitFor` or `NotInWorkflow`, with the step,
    what was expected, what was found, and the file and line.
    """
    execution, events = read_exported(exported)
    if execution["type"] not in (workflow.name, *workflow.aliases):
        raise InvalidRequest(f"this history is of a workflow '{execution['type']}', not '{workflow.name}'")
    error = mismatch(workflow, execution, events)
    if error is not None:
        named = f"workflow '{execution['workflow_id']}' ({execution['type']}): {error.message}"
        raise Error(named, code=error.code)


def read_exported(text: str | bytes) -> tuple[dict[str, Any], list[Event]]:
    """The execution and the events of an exported history."""
    try:
        document = load_json(text)
    except ValueError as error:
        raise InvalidRequest(f"this is no exported history: {error}") from None
    for name, kind in _MEMBERS.items():
        if not isinstance(document, dict) or not isinstance(document.get(name), kind):
            raise InvalidRequest(
                f'this is no exported history: it has no "{name}"; write one with `hapax history WORKFLOW_ID --export`'
            )
    events: list[Event] = document["events"]
    execution = {
        "id": document["execution_id"],
        "workflow_id": document["workflow_id"],
        "type": document["type"],
        "input": load_json(document["input"]) if document["input"] else None,
        "created_at": document.get("created_at") or (events[0]["at"] if events else "1970-01-01T00:00:00.000Z"),
    }
    return execution, events


def mismatch(workflow: Workflow[Any, Any], execution: Mapping[str, Any], events: Sequence[Event]) -> Error | None:
    """What is wrong with the code for this run, if anything."""
    run = Run(workflow, execution)
    turn = run.turn(events, events[-1]["at"] if events else execution["created_at"])
    run.drop()
    assert turn is not None, "a run that was not in memory confirms nothing"
    if turn.end["kind"] == "stuck":
        return Error(turn.end["error"]["message"], code=turn.end["error"]["type"])
    if turn.commands and any(event["kind"] in _ENDS for event in events):
        first = turn.commands[0]
        found = first.get("name") or first.get("start", {}).get("type")
        asked = f"{first['kind']} '{found}'" if found else first["kind"]
        message = f"step {first['step']}: expected the end of the workflow, found {asked}"
        return Error(message, code="NonDeterminism")
    return None


def _workflow(app: Hapax, name: str) -> Workflow[Any, Any]:
    found = app.registry.workflows.get(name)
    if found is None:
        raise InvalidRequest(f"the app has no workflow named {name!r}", code="UnknownWorkflowType")
    return found


def _exported(files: Sequence[str]) -> Iterator[tuple[Mapping[str, Any], list[Event]]]:
    for name in files:
        try:
            yield read_exported(pathlib.Path(name).read_bytes())
        except InvalidRequest as error:
            raise InvalidRequest(f"{name}: {error.message}") from None


def _open_runs(app: Hapax, types: Sequence[str] | None, limit: int) -> Iterator[tuple[Mapping[str, Any], list[Event]]]:
    for name in types or list(app.registry.workflows):
        _workflow(app, name)
        for status in _OPEN:
            cursor, left = "", limit
            while left > 0:
                target = f"/v1/workflows?type={quote(name, safe='')}&status={status}&limit={min(left, 100)}{cursor}"
                page = sync(app.calls.call("GET", target)).json
                for execution in page["executions"]:
                    yield execution, _history(app, execution)
                left -= len(page["executions"])
                if not page["next_cursor"]:
                    break
                cursor = f"&cursor={quote(page['next_cursor'], safe='')}"


def _history(app: Hapax, execution: Mapping[str, Any]) -> list[Event]:
    events: list[Event] = []
    after: int | None = 0
    while after is not None:
        target = path("workflows", execution["workflow_id"], "history") + f"?run={execution['id']}&after={after}"
        page = sync(app.calls.call("GET", target)).json
        events += page["events"]
        after = page["next_after"]
    return events
