"""One attempt of a task in the process that submitted it."""

from __future__ import annotations

import logging
import os
import socket
import time
from typing import TYPE_CHECKING, Any

from hapax.context import TaskContext
from hapax.durations import to_wire
from hapax.errors import Error, InvalidRequest, error_from
from hapax.receipt import Receipt
from hapax.tracing import submitting
from hapax.transport import pause
from hapax.worker.reports import refused_outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hapax.app import Hapax

_log = logging.getLogger("hapax.here")

LEASE_S = 30.0
"""After a process died, its task waits this long at most until another one may run it."""

AGAIN_AT_ONCE: dict[str, Any] = {"max_attempts": 1000, "retry": {"initial": "0s", "max": "0s"}}
"""For what is tried again only when somebody asks for it again: no pause between attempts, and no end of them."""


async def submit_here(
    app: Hapax, request: Mapping[str, Any], lease_s: float | None = None
) -> tuple[Receipt, Attempt | None]:
    """Submits a task, and claims it in the same commit if it is there to be run: it is new, or nobody runs it any more.

    Without an attempt it runs elsewhere, or is closed: the receipt says which.
    """
    lease_s = LEASE_S if lease_s is None else lease_s
    await app.registry.tell_all(app.calls)
    worker = f"{socket.gethostname()}:{os.getpid()}"
    body = {**request, "run_here": {"worker": worker, "lease": to_wire(lease_s)}}
    with submitting(app, request["type"], request.get("queue")) as traced:
        answer = (await app.calls.call("POST", "/v1/tasks", traced.carried(body))).json
        receipt = Receipt.from_wire(answer)
        traced.answered(receipt.id, receipt.created)
    claim = answer.get("claim")
    return receipt, None if claim is None else Attempt(app, claim, lease_s)


class Attempt:
    """A claimed task. From its making until `end` its lease is kept."""

    def __init__(self, app: Hapax, claim: Mapping[str, Any], lease_s: float) -> None:
        self.context = TaskContext(claim)
        self.calls = app.calls
        self._leases = app._leases()
        self._lease_s = lease_s
        self._on_cancel: Callable[[], None] | None = None
        self.on_end: Callable[[Mapping[str, Any]], None] | None = None
        self._leases.keep(self.context.lease, lease_s, self._told)

    def on_cancel(self, call: Callable[[], None]) -> None:
        """Calls this, on another thread, when the task is cancelled or its lease is lost."""
        self._on_cancel = call

    def _told(self, lost: bool) -> None:
        self.context._cancel(lease_lost=lost)
        if self._on_cancel is not None:
            self._on_cancel()

    async def end(self, outcome: Mapping[str, Any], patience_s: float | None = None) -> bool:
        """Reports how it ended. False if the lease was lost: what happened here does not count.

        The engine may be away for `patience_s` (else for as long as the lease lasts); then its error is raised.
        """
        if self.on_end is not None:
            self.on_end(outcome)
        lease = self.context.lease
        report = {"lease": lease, **outcome}
        ends = time.monotonic() + (self._lease_s if patience_s is None else patience_s)
        try:
            while True:
                try:
                    return await self._report(report)
                except InvalidRequest as error:
                    replaced = refused_outcome(report, error)
                    if replaced is None:
                        raise
                    await self._report(replaced)
                    raise
                except Error as error:
                    if not error.safe_to_retry or time.monotonic() >= ends:
                        raise
                    _log.warning("cannot report: %s; trying again", error)
                await pause(0.5)
        finally:
            self._leases.release(lease)

    async def _report(self, report: Mapping[str, Any]) -> bool:
        answer = await self.calls.call("POST", "/v1/claims/finish", {"outcomes": [report]}, accept=(409,))
        outcome = answer.json["outcomes"][0]
        if outcome.get("error") == "LeaseLost":
            return False
        if "error" in outcome:
            raise error_from(400, outcome)
        return True

    async def fail(self, error: Mapping[str, Any], patience_s: float = 5.0) -> None:
        """Reports a failure on the way to telling the caller of it. If the report cannot be made, the lease runs out,
        which comes to the same."""
        try:
            await self.end({"error": error}, patience_s)
        except Error as refused:
            _log.warning("cannot report a failure: %s; the lease runs out instead", refused)
