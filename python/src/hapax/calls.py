"""JSON calls over a transport: what is sent again, and which error an answer is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from hapax.codec import dump_json, load_json
from hapax.errors import Error, StoreUnavailable, error_from
from hapax.transport import ConnectionFailed, Request, Response, is_blocking, pause

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hapax.transport import Transport

_PAUSES_S = (0.1, 0.3, 0.9)
_JSON = {"content-type": "application/json"}


class Answer(NamedTuple):
    """A response with its body read."""

    status: int
    headers: Mapping[str, str]
    json: Any


class Calls:
    """Calls the API. Every request is safe to send again (by its id, key, lease or nature), so a lost connection or a
    busy store is tried a few times before the caller hears of it."""

    def __init__(self, transport: Callable[[], Transport]) -> None:
        self._transport = transport

    async def call(
        self,
        method: str,
        target: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        wait_s: float = 0.0,
        tries: int = 1 + len(_PAUSES_S),
        accept: tuple[int, ...] = (),
    ) -> Answer:
        """The answer, if its status is 2xx or one of `accept`; otherwise the error is raised."""
        data = b"" if body is None else dump_json(body)
        sent = {**(_JSON if data else {}), **(headers or {})}
        answer = await self.send(Request(method, target, sent, data, wait_s), tries)
        if answer.status // 100 == 2 or answer.status in accept:
            return answer
        raise error_from(answer.status, answer.json, answer.headers.get("retry-after"))

    async def send(self, request: Request, tries: int = 1 + len(_PAUSES_S)) -> Answer:
        """Any request, with its answer whatever the status is."""
        for again in range(tries):
            last = again == tries - 1
            try:
                response = await self._once(request)
            except ConnectionFailed as error:
                if last:
                    raise StoreUnavailable(str(error), code="Unreachable", safe_to_retry=True) from error
            else:
                if response.status != 503 or last:
                    return _read(response)
                if not _read_error(response).safe_to_retry:
                    return _read(response)
            await pause(_PAUSES_S[min(again, len(_PAUSES_S) - 1)])
        raise AssertionError("unreachable")

    async def _once(self, request: Request) -> Response:
        transport = self._transport()
        return transport.call_blocking(request) if is_blocking() else await transport.call(request)


def _read(response: Response) -> Answer:
    if not response.body:
        return Answer(response.status, response.headers, None)
    try:
        return Answer(response.status, response.headers, load_json(response.body))
    except ValueError:
        text = response.body[:200].decode("utf-8", "replace")
        message = f"this is no answer of a Hapax server (status {response.status}): {text!r}"
        raise Error(message, code="NotHapax") from None


def _read_error(response: Response) -> Error:
    answer = _read(response)
    return error_from(answer.status, answer.json, answer.headers.get("retry-after"))


def path(*parts: str) -> str:
    """A path of the API; each part is percent-encoded."""
    return "/v1/" + "/".join(quote(part, safe="") for part in parts)
