"""`hapax-worker replay`: runs open workflows against the code, before a deploy. Nothing is committed."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from hapax.calls import path
from hapax.errors import Error
from hapax.transport import sync
from hapax.workflow.run import Run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hapax.app import Hapax

_OPEN = ("suspended", "pending", "running")


def main(arguments: Sequence[str]) -> int:
    """1 if the code does not fit the history of an open workflow."""
    from hapax.worker.main import find_app

    parser = argparse.ArgumentParser(prog="hapax-worker replay", description="Replays open workflows against the code")
    parser.add_argument("app", metavar="MODULE:APP")
    parser.add_argument("--url", help="another engine than the app's own")
    parser.add_argument("--type", action="append", help="only workflows of this type; may be repeated")
    parser.add_argument("--limit", type=int, default=1000, help="at most so many of a type (%(default)s)")
    options = parser.parse_args(list(arguments))
    app = find_app(options.app)
    if options.url:
        app.url = options.url
    types = options.type or list(app.registry.workflows)
    wrong = 0
    try:
        for name in types:
            if name not in app.registry.workflows:
                print(f"hapax-worker: the app has no workflow named {name!r}", file=sys.stderr)
                return 2
            for execution in _open_runs(app, name, options.limit):
                error = replay(app, execution)
                print(
                    f"{'wrong' if error else 'ok':7}{name}  {execution['workflow_id']}{'  ' + error if error else ''}"
                )
                wrong += bool(error)
    except Error as error:
        print(f"hapax-worker: {error}", file=sys.stderr)
        return 2
    finally:
        app.close()
    return 1 if wrong else 0


def _open_runs(app: Hapax, name: str, limit: int) -> Iterator[Mapping[str, Any]]:
    for status in _OPEN:
        cursor, left = "", limit
        while left > 0:
            target = f"/v1/workflows?type={quote(name, safe='')}&status={status}&limit={min(left, 100)}{cursor}"
            page = sync(app.calls.call("GET", target)).json
            yield from page["executions"]
            left -= len(page["executions"])
            if not page["next_cursor"]:
                break
            cursor = f"&cursor={quote(page['next_cursor'], safe='')}"


def replay(app: Hapax, execution: Mapping[str, Any]) -> str | None:
    """What is wrong with the code for this run, if anything."""
    events: list[Mapping[str, Any]] = []
    after: int | None = 0
    while after is not None:
        target = path("workflows", execution["workflow_id"], "history") + f"?run={execution['id']}&after={after}"
        page = sync(app.calls.call("GET", target)).json
        events += page["events"]
        after = page["next_after"]
    run = Run(app.registry.workflows[execution["type"]], execution)
    turn = run.turn(events, execution["created_at"])
    run.drop()
    if turn is None or turn.end["kind"] != "stuck":
        return None
    return f"{turn.end['error']['type']}: {turn.end['error']['message']}"
