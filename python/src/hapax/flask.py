"""Idempotency-Key middleware for Flask, and for any other WSGI application.

web.wsgi_app = IdempotencyMiddleware(web.wsgi_app, app, required=["/orders*"])
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from hapax.context import CURRENT
from hapax.transport import sync
from hapax.web import Answer, Asked, Gate, Rules
from hapax.web.answers import MOST_BODY, problem
from hapax.web.rules import Required, principal_of_headers

if TYPE_CHECKING:
    from hapax.app import Hapax
    from hapax.durations import Duration
    from hapax.here.attempt import Attempt

Environ = dict[str, Any]
StartResponse = Callable[..., Any]
WSGIApp = Callable[[Environ, StartResponse], Iterable[bytes]]

MOST_REQUEST = 16 * 1024 * 1024


class IdempotencyMiddleware:
    """Answers a request with an Idempotency-Key once: the handler runs for the first one, later ones get its response.

    `required` names the routes that need a key: True for all, path patterns such as `"/payments/*"`, or a function of
    method and path. `principal` says who asks, from the WSGI environ: the same key of two users is two keys. Without
    it, it is whoever has the Authorization header. `ttl` is how long a key counts, else as long as the response is
    kept (the retention of the queue `http`). In the handler `hapax.current()` has the attempt and the effect key.
    """

    def __init__(
        self,
        wsgi_app: WSGIApp,
        hapax: Hapax,
        *,
        methods: Iterable[str] = ("POST", "PATCH"),
        required: Required = False,
        principal: Callable[[Environ], str] | None = None,
        lease: Duration = "30s",
        ttl: Duration | None = None,
        most_request: int = MOST_REQUEST,
    ) -> None:
        self.wsgi_app = wsgi_app
        self._rules = Rules(methods, required)
        self._principal: Callable[[Environ], str | Answer] = principal or _principal_of
        self._gate = Gate(hapax, lease=lease, ttl=ttl)
        self._most_request = most_request

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        method, path = environ["REQUEST_METHOD"], environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
        # A header that comes twice is one value with a comma, here as in every WSGI server.
        field = environ.get("HTTP_IDEMPOTENCY_KEY")
        key = self._rules.key_of(method, path, [] if field is None else [field])
        if key is None:
            return self.wsgi_app(environ, start_response)
        if isinstance(key, Answer):
            return _start(start_response, key)
        principal = self._principal(environ)
        if isinstance(principal, Answer):
            return _start(start_response, principal)
        body = _read(environ, self._most_request)
        if isinstance(body, Answer):
            return _start(start_response, body)
        environ["wsgi.input"], environ["CONTENT_LENGTH"] = io.BytesIO(body), str(len(body))
        begun = sync(self._gate.begin(Asked(key, principal, method, path, environ.get("QUERY_STRING", ""), body)))
        if isinstance(begun, Answer):
            return _start(start_response, begun)
        return self._run(begun, environ, start_response)

    def _run(self, attempt: Attempt, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        response = _Response()
        token = CURRENT.set(attempt.context)
        try:
            parts = self.wsgi_app(environ, response.start)
            iterator = iter(parts)
            # A response that never ends, or a long one, is sent as it is made.
            whole = not response.is_endless and response.collect(iterator)
        except BaseException as error:
            sync(self._gate.raised(attempt, error))
            raise
        finally:
            CURRENT.reset(token)
        if not whole:
            start_response(response.status, response.headers)
            return self._pass(attempt, response, parts, iterator)
        _close(parts)
        answer = Answer(int(response.status.split(" ", 1)[0]), response.headers, bytes(response.body))
        sent = sync(self._gate.end(attempt, answer))
        if sent is not answer:
            return _start(start_response, sent)
        start_response(response.status, response.headers)
        return [answer.body]

    def _pass(
        self, attempt: Attempt, response: _Response, parts: Iterable[bytes], iterator: Iterator[bytes]
    ) -> Iterator[bytes]:
        token = CURRENT.set(attempt.context)
        ended = False
        try:
            yield bytes(response.body)
            yield from iterator
            ended = True
        finally:
            CURRENT.reset(token)
            _close(parts)
            if ended:
                status = int(response.status.split(" ", 1)[0])
                sync(self._gate.end_without_body(attempt, status, response.headers))
            else:
                sync(self._gate.fail(attempt, "NoResponse", "the handler ended without a whole response"))


class _Response:
    """What a WSGI application answers with."""

    def __init__(self) -> None:
        self.status = ""
        self.headers: list[tuple[str, str]] = []
        self.body = bytearray()

    def start(self, status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Callable[[bytes], Any]:
        self.status, self.headers = status, list(headers)
        return self.body.extend

    @property
    def is_endless(self) -> bool:
        return any(
            name.lower() == "content-type" and value.startswith("text/event-stream") for name, value in self.headers
        )

    def collect(self, parts: Iterator[bytes]) -> bool:
        """Takes the body; whether it is all of it, within what can be stored."""
        for part in parts:
            self.body += part
            if len(self.body) > MOST_BODY:
                return False
        return True


def _principal_of(environ: Environ) -> str | Answer:
    return principal_of_headers(environ.get("HTTP_AUTHORIZATION"), "HTTP_COOKIE" in environ)


def _read(environ: Environ, most: int) -> bytes | Answer:
    """The whole body of the request, or a refusal."""
    length = environ.get("CONTENT_LENGTH")
    if length:
        wanted = int(length)
    elif environ.get("wsgi.input_terminated"):
        wanted = most + 1
    else:
        wanted = 0
    body: bytes = environ["wsgi.input"].read(min(wanted, most + 1))
    if len(body) > most:
        return problem(413, "TooLarge", f"A request with an Idempotency-Key has at most {most} bytes.")
    return body


def _start(start_response: StartResponse, answer: Answer) -> list[bytes]:
    start_response(f"{answer.status} {answer.reason}", answer.headers)
    return [answer.body]


def _close(parts: Iterable[bytes]) -> None:
    close = getattr(parts, "close", None)
    if close is not None:
        close()
