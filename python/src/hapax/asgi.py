"""Idempotency-Key middleware for ASGI: FastAPI, Starlette and others.

web.add_middleware(IdempotencyMiddleware, hapax=app, required=["/orders*"])
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import TYPE_CHECKING, Any

from hapax.context import CURRENT
from hapax.web import Answer, Asked, Gate, Rules
from hapax.web.answers import MOST_BODY, problem
from hapax.web.rules import Required, principal_of_headers

if TYPE_CHECKING:
    from hapax.app import Hapax
    from hapax.durations import Duration
    from hapax.here.attempt import Attempt

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]

MOST_REQUEST = 16 * 1024 * 1024


class IdempotencyMiddleware:
    """Answers a request with an Idempotency-Key once: the handler runs for the first one, later ones get its response.

    `required` names the routes that need a key: True for all, path patterns such as `"/payments/*"`, or a function of
    method and path. `principal` says who asks, from the ASGI scope: the same key of two users is two keys. Without it,
    it is whoever has the Authorization header. `ttl` is how long a key counts, else as long as the response is kept
    (the retention of the queue `http`). In the handler `hapax.current()` has the attempt and the effect key.
    """

    def __init__(
        self,
        app: ASGIApp,
        hapax: Hapax,
        *,
        methods: Iterable[str] = ("POST", "PATCH"),
        required: Required = False,
        principal: Callable[[Scope], str] | None = None,
        lease: Duration = "30s",
        ttl: Duration | None = None,
        most_request: int = MOST_REQUEST,
    ) -> None:
        self.app = app
        self._rules = Rules(methods, required)
        self._principal: Callable[[Scope], str | Answer] = principal or _principal_of
        self._gate = Gate(hapax, lease=lease, ttl=ttl)
        self._most_request = most_request

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        key = self._rules.key_of(scope["method"], scope["path"], _fields(scope, b"idempotency-key"))
        if key is None:
            await self.app(scope, receive, send)
        elif isinstance(key, Answer):
            await _send(send, key)
        else:
            await self._keyed(key, scope, receive, send)

    async def _keyed(self, key: str, scope: Scope, receive: Receive, send: Send) -> None:
        principal = self._principal(scope)
        if isinstance(principal, Answer):
            await _send(send, principal)
            return
        body = await _read(receive, self._most_request)
        if body is None:
            return  # the client is gone
        if isinstance(body, Answer):
            await _send(send, body)
            return
        query = scope.get("query_string", b"").decode("latin-1")
        begun = await self._gate.begin(Asked(key, principal, scope["method"], scope["path"], query, body))
        if isinstance(begun, Answer):
            await _send(send, begun)
            return
        # Without extensions, so that every response comes as messages with its body.
        inner = {**scope, "extensions": {}}
        response = _Response(self._gate, begun, send)
        token = CURRENT.set(begun.context)
        try:
            await self.app(inner, _given(body, receive), response.take)
        except BaseException as error:
            if not response.ended:
                await self._gate.raised(begun, error)
            raise
        finally:
            CURRENT.reset(token)
        if not response.ended:
            await self._gate.fail(begun, "NoResponse", "the handler ended without a whole response")


class _Response:
    """Collects a handler's response until it is whole, stores it, and sends it then."""

    def __init__(self, gate: Gate, attempt: Attempt, send: Send) -> None:
        self._gate = gate
        self._attempt = attempt
        self._send = send
        self._start: Message | None = None
        self._body = bytearray()
        self._passing = False
        self.ended = False

    async def take(self, message: Message) -> None:
        kind = message["type"]
        if kind == "http.response.start":
            self._start = message
            if (_header(message["headers"], b"content-type") or b"").startswith(b"text/event-stream"):
                await self._pass()
        elif kind == "http.response.body" and not self.ended:
            await self._take_body(message)
        else:
            await self._send(message)

    async def _take_body(self, message: Message) -> None:
        assert self._start is not None, "a body before the start of the response"
        last = not message.get("more_body", False)
        if not self._passing:
            self._body += message.get("body", b"")
            if len(self._body) > MOST_BODY:
                await self._pass()
            elif last:
                await self._end_stored()
            if not (self._passing and last):
                return
            message = {"type": "http.response.body", "body": b""}
        if last:
            self.ended = True
            await self._gate.end_without_body(self._attempt, self._start["status"], _decoded(self._start["headers"]))
        await self._send(message)

    async def _pass(self) -> None:
        """From now on the response is sent as it is made."""
        assert self._start is not None
        self._passing = True
        await self._send(self._start)
        if self._body:
            await self._send({"type": "http.response.body", "body": bytes(self._body), "more_body": True})
            self._body.clear()

    async def _end_stored(self) -> None:
        assert self._start is not None
        answer = Answer(self._start["status"], _decoded(self._start["headers"]), bytes(self._body))
        self.ended = True
        sent = await self._gate.end(self._attempt, answer)
        if sent is answer:
            await self._send(self._start)
            await self._send({"type": "http.response.body", "body": answer.body})
        else:
            await _send(self._send, sent)


def _fields(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key.lower() == name]


def _header(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> bytes | None:
    return next((value for key, value in headers if key.lower() == name), None)


def _decoded(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]


def _principal_of(scope: Scope) -> str | Answer:
    authorization = _fields(scope, b"authorization")
    return principal_of_headers(authorization[0] if authorization else None, bool(_fields(scope, b"cookie")))


async def _read(receive: Receive, most: int) -> bytes | Answer | None:
    """The whole body of the request; None if the client is gone; or a refusal."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if len(body) > most:
            return problem(413, "TooLarge", f"A request with an Idempotency-Key has at most {most} bytes.")
        if not message.get("more_body", False):
            return bytes(body)


def _given(body: bytes, receive: Receive) -> Receive:
    """The body that was read, and then what the server says."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


async def _send(send: Send, answer: Answer) -> None:
    headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


__all__ = ["IdempotencyMiddleware"]
