"""Submitting inside the caller's own transaction: a row in the caller's database, which a relay submits.

The row has the submission's id. Whatever a relay does twice, because it died in between, is the same submission.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from hapax.codec import dump_json
from hapax.errors import InvalidRequest
from hapax.handles import Handle, WorkflowHandle
from hapax.sql.drivers import driver_in_transaction
from hapax.sql.relay import Relay
from hapax.tracing import submitting

if TYPE_CHECKING:
    from hapax.app import Hapax
    from hapax.definitions import Call, R, Workflow
    from hapax.sql.drivers import Driver

__all__ = ["Relay", "start_in", "submit_in"]


async def submit_in(app: Hapax, connection: Any, call: Call[R]) -> Handle[R]:
    """Writes the submission into the outbox, in the transaction of `connection`."""
    await _write(app, connection, "task", call.request)
    return Handle(app.calls, call.request["id"], call.decode)


async def start_in(
    app: Hapax, connection: Any, workflow: Workflow[..., R], workflow_id: str, args: Any, kwargs: Any
) -> WorkflowHandle[R]:
    """Writes the start of a workflow into the outbox, in the transaction of `connection`."""
    await _write(app, connection, "workflow", workflow._start_request(workflow_id, args, kwargs))
    return WorkflowHandle(app.calls, workflow_id, workflow.signature.decode_result)


async def _write(app: Hapax, connection: Any, kind: str, request: dict[str, Any]) -> None:
    driver = await driver_in_transaction(connection, "submit_in")
    if driver.dialect == "sqlite" and app.url.startswith("sqlite:"):
        await _refuse_own_file(app.url, driver)
    uuid = "?::text::uuid" if driver.dialect == "postgres" else "?"
    with submitting(app, request["type"], request.get("queue")) as traced:
        text = dump_json(traced.carried(request)).decode()
        await driver.run(
            f"INSERT INTO hapax_outbox (id, kind, request) VALUES ({uuid}, ?, ?)", request["id"], kind, text
        )


async def _refuse_own_file(url: str, driver: Driver) -> None:
    path = unquote(url[len("sqlite:") :].partition("?")[0])
    for _, _, file in await driver.run("PRAGMA database_list"):
        if file and _same_file(file, path):
            raise InvalidRequest(
                f"this connection is on {path}, which the engine has open in this process. Python and the engine have "
                "a copy of SQLite each, and two copies in one process drop each other's locks on a file. Either keep "
                "your tables in a file of their own, and the outbox with them; or let another process have the engine: "
                f"`hapax serve --store sqlite:{path}`, and Hapax('http://…') here; or use PostgreSQL",
                code="EnginesOwnFile",
            )


def _same_file(one: str, other: str) -> bool:
    return os.path.exists(one) and os.path.exists(other) and os.path.samefile(one, other)
