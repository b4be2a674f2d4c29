"""The transport to a `hapax serve`: keep-alive connections, a small pool for each event loop, no dependencies."""

from __future__ import annotations

import socket
import threading
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from hapax._version import __version__
from hapax.errors import InvalidRequest
from hapax.transport.base import ConnectionFailed, Request, Response
from hapax.transport.http1 import BadResponse, ResponseReader, write_request

if TYPE_CHECKING:
    import asyncio
    import ssl
    from collections.abc import Mapping

    from hapax.transport.http_async import Pool

_SHORT = 32
_LONG = 256
PATIENCE_S = 30.0
"""How long an answer may take beyond what the request lets the server wait."""


class Address:
    """Where the server is, and what every request to it says."""

    def __init__(self, url: str, token: str | None, headers: Mapping[str, str], verify: ssl.SSLContext | None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidRequest(f"{url!r} is no URL of a server; write http://HOST:PORT")
        try:
            port = parts.port
        except ValueError:
            raise InvalidRequest(f"{url!r} has no valid port") from None
        self.url = f"{parts.scheme}://{parts.hostname}{f':{port}' if port else ''}"
        self.host = parts.hostname
        self.port = port or (443 if parts.scheme == "https" else 80)
        self.prefix = parts.path.rstrip("/")
        self.tls = parts.scheme == "https"
        self._verify = verify
        authority = f"[{self.host}]" if ":" in self.host else self.host
        lines = [f"host: {authority}:{self.port}", f"user-agent: hapax-python/{__version__}"]
        token = token or (unquote(parts.password) if parts.password else None)
        if token:
            lines.append(f"authorization: Bearer {token}")
        lines += [f"{name}: {value}" for name, value in headers.items()]
        if any("\r" in line or "\n" in line for line in lines):
            raise InvalidRequest("the token, the namespace or the host has a line break")
        self.fixed = "".join(f"{line}\r\n" for line in lines)

    def ssl_context(self) -> ssl.SSLContext | None:
        if not self.tls:
            return None
        if self._verify is None:
            import ssl

            self._verify = ssl.create_default_context()
        return self._verify

    def write(self, request: Request) -> bytes:
        return write_request(request, self.prefix, self.fixed)

    def unreachable(self, error: BaseException) -> ConnectionFailed:
        return ConnectionFailed(f"there is no Hapax server at {self.url}: {error}")


class HttpTransport:
    """Calls a server. Threads and event loops share it; each loop has connections of its own."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self.address = Address(url, token, headers or {}, ssl_context)
        self._lock = threading.Lock()
        self._pools: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[Pool, Pool]] = (
            weakref.WeakKeyDictionary()
        )
        self._idle: deque[_BlockingConnection] = deque()
        self._closed = False

    async def call(self, request: Request) -> Response:
        from hapax.transport.http_async import Pool, running_loop

        loop = running_loop()
        pools = self._pools.get(loop)
        if pools is None:
            with self._lock:
                pools = self._pools[loop] = (Pool(self.address, loop, _SHORT), Pool(self.address, loop, _LONG))
        return await pools[request.wait_s > 0].call(request)

    def call_blocking(self, request: Request) -> Response:
        data = self.address.write(request)
        while True:
            connection, fresh = self._take()
            try:
                response = connection.call(data, request.wait_s + PATIENCE_S)
            except BadResponse as error:
                connection.close()
                raise ConnectionFailed(f"{self.address.url} does not speak HTTP: {error}") from error
            except OSError as error:
                connection.close()
                # The server may close a connection that nobody uses; that says nothing about this request.
                if fresh or isinstance(error, TimeoutError):
                    raise self.address.unreachable(error) from error
                continue
            except BaseException:
                connection.close()
                raise
            if connection.reader.keep_alive and not self._closed:
                self._idle.append(connection)
            else:
                connection.close()
            return response

    def _take(self) -> tuple[_BlockingConnection, bool]:
        try:
            return self._idle.pop(), False
        except IndexError:
            return _BlockingConnection(self.address), True

    def close(self) -> None:
        self._closed = True
        while self._idle:
            self._idle.pop().close()
        for loop, pools in list(self._pools.items()):
            for pool in pools:
                if loop.is_running():
                    loop.call_soon_threadsafe(pool.close)
                else:
                    pool.close()
        self._pools.clear()


class _BlockingConnection:
    """A connection for callers without a loop; one request at a time."""

    def __init__(self, address: Address) -> None:
        try:
            plain = socket.create_connection((address.host, address.port), timeout=10)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            context = address.ssl_context()
            self._socket: Any = context.wrap_socket(plain, server_hostname=address.host) if context else plain
        except OSError as error:
            raise address.unreachable(error) from error
        self.reader = ResponseReader()

    def call(self, data: bytes, timeout_s: float) -> Response:
        self._socket.settimeout(timeout_s)
        self._socket.sendall(data)
        while True:
            received = self._socket.recv(262_144)
            if not received:
                raise ConnectionResetError("the server closed the connection")
            response = self.reader.feed(received)
            if response is not None:
                return response

    def close(self) -> None:
        self._socket.close()
