"""The answers of a handler as they are stored, and the answers that the middleware gives itself."""

from __future__ import annotations

import base64
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple

from hapax.codec import dump_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MOST_BODY = 1024 * 1024
"""A longer body is sent, but not stored."""

_DRAFT = "https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/"

# About one connection or one moment, not about the response; and cookies, which are secrets of their session.
_NOT_STORED = {
    "connection",
    "content-length",
    "date",
    "keep-alive",
    "proxy-authenticate",
    "proxy-connection",
    "server",
    "set-cookie",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
}


class Answer(NamedTuple):
    """A response: of a handler, from the store, or of the middleware itself."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def reason(self) -> str:
        try:
            return HTTPStatus(self.status).phrase
        except ValueError:
            return "Unknown"


def problem(status: int, code: str, detail: str, *, retry_after_s: int | None = None) -> Answer:
    """An RFC 9457 answer; `code` is the API's word for it."""
    title = {
        "IdempotencyKeyRequired": "Idempotency-Key is missing",
        "InvalidIdempotencyKey": "Idempotency-Key is malformed",
        "IdempotencyConflict": "Idempotency-Key is already used",
        "RequestInProgress": "A request is outstanding for this Idempotency-Key",
    }.get(code, HTTPStatus(status).phrase)
    members = {"type": _DRAFT, "title": title, "status": status, "detail": detail, "error": code}
    headers = [("content-type", "application/problem+json")]
    if retry_after_s is not None:
        headers.append(("retry-after", str(retry_after_s)))
    return with_length(Answer(status, headers, dump_json(members)))


def with_length(answer: Answer) -> Answer:
    """With the length of its body."""
    return answer._replace(headers=[*answer.headers, ("content-length", str(len(answer.body)))])


def to_stored(status: int, headers: Iterable[tuple[str, str]], body: bytes | None) -> dict[str, Any]:
    """The JSON that is the result of the task. Without a body, the response was too long to be stored."""
    kept = [[name, value] for name, value in headers if name.lower() not in _NOT_STORED]
    stored: dict[str, Any] = {"status": status, "headers": kept}
    if body is None:
        stored["body_not_stored"] = True
        return stored
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        stored["body_base64"] = base64.b64encode(body).decode()
    else:
        stored["body"] = text
    return stored


def from_stored(stored: Mapping[str, Any] | None) -> Answer:
    """The stored response, marked as replayed."""
    if stored is None or stored.get("body_not_stored"):
        what = "it is not kept any more" if stored is None else "it was too long to be kept"
        refused = problem(
            409,
            "ResponseNotStored",
            f"The request under this key was carried out; its response cannot be repeated: {what}.",
        )
        return refused._replace(headers=[*refused.headers, ("idempotency-replayed", "true")])
    body = base64.b64decode(stored["body_base64"]) if "body_base64" in stored else stored["body"].encode()
    headers = [(name, value) for name, value in stored["headers"]]
    answer = Answer(stored["status"], [*headers, ("Idempotency-Replayed", "true")], body)
    return answer if answer.status in (204, 304) else with_length(answer)
