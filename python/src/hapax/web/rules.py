"""Which requests the middleware is for, who asks, and what a key is."""

from __future__ import annotations

import hashlib
import logging
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Union

from hapax.errors import InvalidRequest
from hapax.web.answers import Answer, problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

Required = Union[bool, "Iterable[str]", "Callable[[str, str], bool]"]
"""The routes that need a key: all, none, path patterns (`"/payments/*"`), or a function of the method and the path."""

MOST_KEY = 255

_log = logging.getLogger("hapax.web")


class Rules:
    """What a middleware was set up with."""

    def __init__(self, methods: Iterable[str] = ("POST", "PATCH"), required: Required = False) -> None:
        self.methods = {method.upper() for method in methods}
        self._required: bool | list[str] | Callable[[str, str], bool]
        if isinstance(required, str):
            self._required = [required]
        elif isinstance(required, bool) or callable(required):
            self._required = required
        else:
            self._required = list(required)

    def requires_key(self, method: str, path: str) -> bool:
        """Whether a request without a key is refused."""
        if isinstance(self._required, bool):
            return self._required
        if isinstance(self._required, list):
            return any(fnmatchcase(path, pattern) for pattern in self._required)
        return self._required(method, path)

    def key_of(self, method: str, path: str, fields: Sequence[str]) -> str | Answer | None:
        """The key of a request whose Idempotency-Key fields are these; None if it passes without one; or a refusal."""
        if method.upper() not in self.methods:
            return None
        if not fields:
            if not self.requires_key(method, path):
                return None
            return problem(
                400,
                "IdempotencyKeyRequired",
                "This operation needs the header Idempotency-Key: a value that is new for each request, and the same "
                "when the request is sent again.",
            )
        try:
            return parse_key(fields)
        except InvalidRequest as error:
            return problem(400, "InvalidIdempotencyKey", f"{error.message}.")


def parse_key(fields: Sequence[str]) -> str:
    """The key of the header's fields: a structured string (`"abc"`) or bare (`abc`)."""
    if len(fields) != 1:
        raise InvalidRequest("The header Idempotency-Key was sent more than once")
    field = fields[0].strip(" \t")
    key = _unquoted(field) if field.startswith('"') else field
    try:
        # Frameworks give headers as Latin-1; what was sent is UTF-8, as the API has it.
        key = key.encode("latin-1").decode("utf-8")
    except UnicodeError:
        raise InvalidRequest("The header Idempotency-Key is not UTF-8") from None
    if not key.strip():
        raise InvalidRequest("The header Idempotency-Key is empty")
    if len(key.encode()) > MOST_KEY:
        raise InvalidRequest(f"The header Idempotency-Key is longer than {MOST_KEY} bytes")
    if any(character < " " or character == "\x7f" for character in key):
        raise InvalidRequest("The header Idempotency-Key has a control character")
    return key


def _unquoted(field: str) -> str:
    malformed = InvalidRequest('The header Idempotency-Key is no structured string such as "abc"')
    if len(field) < 2 or not field.endswith('"'):
        raise malformed
    key, escaped = "", False
    for character in field[1:-1]:
        if escaped:
            if character not in '"\\':
                raise malformed
            key, escaped = key + character, False
        elif character == "\\":
            escaped = True
        elif character == '"':
            raise malformed
        else:
            key += character
    if escaped:
        raise malformed
    return key


def principal_of_headers(authorization: str | None, has_cookies: bool) -> str | Answer:
    """Who asks, if the application does not say it: whoever has these credentials. A request without any is nobody's.

    Cookies may be a session, or nothing of the kind: guessing wrong would give one user the response of another.
    """
    if authorization is not None:
        return "authorization " + hashlib.sha256(authorization.encode("utf-8", "surrogateescape")).hexdigest()
    if has_cookies:
        _log.error(
            "the Idempotency-Key middleware does not know who asks: the request has cookies and no Authorization. Give "
            "it principal=, a function from the request to the user's id ('' for nobody)"
        )
        return problem(500, "NoPrincipal", "The server is not set up to know whose Idempotency-Key this is.")
    return ""
