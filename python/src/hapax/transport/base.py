"""What a transport is."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping


class Request(NamedTuple):
    """One call of the HTTP API. `wait_s` is how long the server may hold it before it answers."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes
    wait_s: float = 0.0


class Response(NamedTuple):
    """The answer. Names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class ConnectionFailed(Exception):
    """No answer came. Whether the server did what was asked is not known."""


class Transport(Protocol):
    """Carries requests to the engine. Any thread and any event loop may call it.

    Both calls raise ConnectionFailed if no answer comes.
    """

    async def call(self, request: Request) -> Response:
        """From code that runs on an event loop."""
        ...

    def call_blocking(self, request: Request) -> Response:
        """From code without a loop. Ctrl-C ends it."""
        ...

    def close(self) -> None:
        """Ends its connections. Calls under way fail."""
        ...
