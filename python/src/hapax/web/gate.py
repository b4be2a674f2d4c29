"""Lets a request pass once for its key: the part of the middleware that is the same for every framework.

A request is a task that runs here (`hapax.here`). Its key is the idempotency key, principal and route are the scope,
what was asked is the input, and the response is the result.
"""

from __future__ import annotations

import hashlib
import logging
from typing import TYPE_CHECKING, Any, NamedTuple

from hapax.codec import dump_json
from hapax.durations import Duration, to_seconds, to_wire
from hapax.errors import Error, IdempotencyConflict, StoreUnavailable
from hapax.handles import Handle
from hapax.here.attempt import AGAIN_AT_ONCE, Attempt, submit_here
from hapax.ids import new_id
from hapax.web.answers import MOST_BODY, Answer, from_stored, problem, to_stored
from hapax.worker.attempts import failure

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hapax.app import Hapax

_log = logging.getLogger("hapax.web")

QUEUE = "http"
"""Where requests are kept; its retention is how long. No worker claims from it, unless it is told to."""
TYPE = "http_request"

_RETRY_AFTER_S = 1
_PATIENCE_S = 5.0


class Asked(NamedTuple):
    """A request with a key."""

    key: str
    principal: str
    method: str
    path: str
    query: str
    body: bytes


class Gate:
    """Begins and ends requests. All calls may be awaited, or run by `hapax.sync`."""

    def __init__(self, app: Hapax, *, lease: Duration = "30s", ttl: Duration | None = None) -> None:
        self._app = app
        self._lease_s = to_seconds(lease)
        self._ttl = None if ttl is None else to_wire(ttl)

    async def begin(self, asked: Asked) -> Attempt | Answer:
        """The attempt to run the handler under; or the answer, if the handler is not to run."""
        try:
            receipt, attempt = await submit_here(self._app, self._request(asked), self._lease_s)
            if attempt is not None:
                return attempt
            if receipt.status == "completed":
                return await self._replay(receipt.id, receipt.result_expired)
        except IdempotencyConflict:
            return problem(
                422, "IdempotencyConflict", "This Idempotency-Key was used before, for a request with another payload."
            )
        except StoreUnavailable as error:
            _log.error("a request with an Idempotency-Key cannot be taken: %s", error)
            retry_after_s = max(1, round(error.retry_after))
            return problem(503, "StoreUnavailable", "Requests cannot be taken now.", retry_after_s=retry_after_s)
        return in_flight()

    def _request(self, asked: Asked) -> dict[str, Any]:
        route = f"{asked.method} {asked.path}"
        scope = hashlib.sha256(dump_json([asked.principal, route])).hexdigest()
        payload = hashlib.sha256(asked.body).hexdigest()
        request: dict[str, Any] = {
            **AGAIN_AT_ONCE,
            "type": TYPE,
            "queue": QUEUE,
            "id": new_id(),
            "idempotency_key": asked.key,
            "scope": f"web {scope}",
            "input": {"route": route, "query": asked.query, "body": f"sha256:{payload}"},
        }
        if self._ttl is not None:
            request["idempotency_ttl"] = self._ttl
        return request

    async def _replay(self, execution_id: str, expired: bool) -> Answer:
        if expired:
            return from_stored(None)
        handle: Handle[Any] = Handle(self._app.calls, execution_id, lambda value: value)
        return from_stored(await handle.result(0))

    async def end(self, attempt: Attempt, answer: Answer) -> Answer:
        """Stores the handler's answer, before it is sent. The answer to send: if another attempt took over, its own."""
        if answer.status >= 500:
            await self.fail(attempt, f"Http{answer.status}", f"the handler answered {answer.status}")
            return answer
        body = answer.body if len(answer.body) <= MOST_BODY else None
        return await self._store(attempt, to_stored(answer.status, answer.headers, body)) or answer

    async def end_without_body(self, attempt: Attempt, status: int, headers: Iterable[tuple[str, str]]) -> None:
        """Ends an attempt whose response is too long to be stored, or never ends: it is sent as it is made."""
        if status >= 500:
            await self.fail(attempt, f"Http{status}", f"the handler answered {status}")
        else:
            await self._store(attempt, to_stored(status, headers, None))

    async def _store(self, attempt: Attempt, stored: dict[str, Any]) -> Answer | None:
        try:
            if await attempt.end({"result": stored}, _PATIENCE_S):
                return None
            # What the attempt that took over answers is the response under this key.
            execution = await Handle(attempt.calls, attempt.context.id, lambda value: value).execution()
            if execution["status"] == "completed":
                return from_stored(execution.get("result"))
            return in_flight()
        except Error as error:
            # The handler is done: its own answer is worth more to the caller than an error that makes it ask again.
            _log.error("a response under an Idempotency-Key could not be stored: %s", error)
            return None

    async def fail(self, attempt: Attempt, type: str, message: str) -> None:
        """The next request under this key runs the handler again."""
        await attempt.fail({"type": type, "message": message, "retryable": True}, _PATIENCE_S)

    async def raised(self, attempt: Attempt, error: BaseException) -> None:
        """As `fail`, for a handler that raised."""
        told = failure(error).get("error") or {"type": type(error).__name__, "message": str(error)}
        await attempt.fail({**told, "retryable": True}, _PATIENCE_S)


def in_flight() -> Answer:
    """The answer while another request under the key is being handled."""
    return problem(
        409,
        "RequestInProgress",
        "A request with this Idempotency-Key is being handled; send it again later to get its response.",
        retry_after_s=_RETRY_AFTER_S,
    )
