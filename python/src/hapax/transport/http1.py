"""HTTP/1.1 without I/O: requests as bytes, and a reader for responses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hapax.transport.base import Request, Response

if TYPE_CHECKING:
    from collections.abc import Mapping


class BadResponse(Exception):
    """What came is no HTTP/1.1 response."""


def write_request(request: Request, prefix: str, fixed: str) -> bytes:
    """The bytes of a request. `fixed` are the header lines that every request of a connection has."""
    lines = [f"{request.method} {prefix}{request.target} HTTP/1.1\r\n{fixed}"]
    for name, value in request.headers.items():
        if "\r" in value or "\n" in value:
            raise ValueError(f"the header {name} has a line break")
        lines.append(f"{name}: {value}\r\n")
    lines.append(f"content-length: {len(request.body)}\r\n\r\n")
    return "".join(lines).encode("utf-8") + request.body


class ResponseReader:
    """Collects the bytes of one response after the other."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._status = 0
        self._headers: Mapping[str, str] | None = None
        self._length = 0
        self._chunks: bytearray | None = None
        self.keep_alive = True

    @property
    def has_begun(self) -> bool:
        """Whether some bytes of a response have arrived that is not complete."""
        return bool(self._buffer) or self._headers is not None

    def feed(self, data: bytes) -> Response | None:
        """Takes the bytes that arrived; a response once it is complete."""
        self._buffer += data
        if self._headers is None and not self._read_head():
            return None
        headers = self._headers
        assert headers is not None
        if self._chunks is not None:
            if not self._read_chunks():
                return None
            body = bytes(self._chunks)
        else:
            if len(self._buffer) < self._length:
                return None
            body = bytes(self._buffer[: self._length])
            del self._buffer[: self._length]
        self._headers = None
        self._chunks = None
        return Response(self._status, headers, body)

    def _read_head(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > 65_536:
                raise BadResponse("the head of the response is too long")
            return False
        head = self._buffer[:end].decode("latin-1").split("\r\n")
        del self._buffer[: end + 4]
        first = head[0].split(" ", 2)
        if len(first) < 2 or not first[0].startswith("HTTP/1.") or not first[1].isdigit():
            raise BadResponse(f"this is no HTTP response: {head[0][:80]!r}")
        self._status = int(first[1])
        headers = {}
        for line in head[1:]:
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        if self._status // 100 == 1:
            return self._read_head()
        self._headers = headers
        self.keep_alive = headers.get("connection", "").lower() != "close" and first[0] != "HTTP/1.0"
        if headers.get("transfer-encoding", "").lower() == "chunked":
            self._chunks = bytearray()
        else:
            self._length = 0 if self._status in (204, 304) else int(headers.get("content-length", "0"))
        return True

    def _read_chunks(self) -> bool:
        assert self._chunks is not None
        while True:
            end = self._buffer.find(b"\r\n")
            if end < 0:
                return False
            size = int(bytes(self._buffer[:end]).split(b";")[0], 16)
            if len(self._buffer) < end + 2 + size + 2:
                return False
            self._chunks += self._buffer[end + 2 : end + 2 + size]
            del self._buffer[: end + 2 + size + 2]
            if size == 0:
                return True
