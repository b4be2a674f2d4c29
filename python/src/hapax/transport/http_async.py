"""The connections of one event loop to the server."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections import deque
from typing import TYPE_CHECKING, cast

from hapax.transport.base import ConnectionFailed, Request, Response
from hapax.transport.http1 import BadResponse, ResponseReader

if TYPE_CHECKING:
    from hapax.transport.http import Address

PATIENCE_S = 30.0

running_loop = asyncio.get_running_loop


class _Connection(asyncio.Protocol):
    """A connection of the pool; one request at a time."""

    def __init__(self, address: Address, loop: asyncio.AbstractEventLoop) -> None:
        self._address = address
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._waiting: asyncio.Future[Response] | None = None
        self.reader = ResponseReader()
        self.is_open = False
        self.used = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is a class of its own
        plain = transport.get_extra_info("socket")
        if plain is not None:
            with contextlib.suppress(OSError):
                plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.is_open = True

    def data_received(self, data: bytes) -> None:
        try:
            response = self.reader.feed(data)
        except (BadResponse, ValueError) as error:
            self._fail(ConnectionFailed(f"{self._address.url} does not speak HTTP: {error}"))
            return
        if response is not None:
            waiting, self._waiting = self._waiting, None
            if waiting is None:  # nobody asked for it
                self.close()
            elif not waiting.done():
                waiting.set_result(response)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        self._fail(self._address.unreachable(exc or ConnectionResetError("the server closed the connection")))

    def _fail(self, error: Exception) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_exception(error)
        self.close()

    def _too_late(self) -> None:
        self._fail(self._address.unreachable(TimeoutError("it did not answer in time")))

    async def call(self, data: bytes, timeout_s: float) -> Response:
        assert self._transport is not None
        self.used = True
        waiting: asyncio.Future[Response] = self._loop.create_future()
        self._waiting = waiting
        timer = self._loop.call_later(timeout_s, self._too_late)
        self._transport.write(data)
        try:
            return await waiting
        finally:
            timer.cancel()
            if self._waiting is waiting:  # nobody awaits the answer any more
                self._waiting = None
                self.close()

    def close(self) -> None:
        self.is_open = False
        if self._transport is not None and not self._loop.is_closed():
            self._transport.close()


class Pool:
    """Up to `limit` connections; a call takes an idle one, opens one, or waits for one."""

    def __init__(self, address: Address, loop: asyncio.AbstractEventLoop, limit: int) -> None:
        self._address = address
        self._loop = loop
        self._limit = limit
        self._idle: list[_Connection] = []
        self._open: set[_Connection] = set()
        self._in_use = 0
        self._waiters: deque[asyncio.Future[None]] = deque()

    async def call(self, request: Request) -> Response:
        data = self._address.write(request)
        await self._enter()
        try:
            while True:
                connection = self._take_idle() or await self._connect()
                fresh = not connection.used
                try:
                    response = await connection.call(data, request.wait_s + PATIENCE_S)
                except ConnectionFailed:
                    # The server may close a connection that nobody uses; that says nothing about this request.
                    if fresh or connection.reader.has_begun:
                        raise
                    continue
                finally:
                    self._put_back(connection)
                return response
        finally:
            self._leave()

    async def _enter(self) -> None:
        if self._in_use < self._limit:
            self._in_use += 1
            return
        waiter = self._loop.create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        except BaseException:
            if waiter.done() and not waiter.cancelled():
                self._leave()  # it was given a place and does not use it
            else:
                self._waiters.remove(waiter)
            raise

    def _leave(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
        self._in_use -= 1

    def _take_idle(self) -> _Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open:
                return connection
            self._open.discard(connection)
        return None

    async def _connect(self) -> _Connection:
        try:
            _, connection = await asyncio.wait_for(
                self._loop.create_connection(
                    lambda: _Connection(self._address, self._loop),
                    self._address.host,
                    self._address.port,
                    ssl=self._address.ssl_context(),
                ),
                10,
            )
        except (OSError, asyncio.TimeoutError) as error:
            raise self._address.unreachable(error) from error
        self._open.add(connection)
        return connection

    def _put_back(self, connection: _Connection) -> None:
        if connection.is_open and connection.reader.keep_alive:
            self._idle.append(connection)
        else:
            connection.close()
            self._open.discard(connection)

    def close(self) -> None:
        """Ends the connections. Those of a loop that is closed went with it."""
        for connection in self._open:
            connection.close()
        self._open.clear()
        self._idle.clear()
