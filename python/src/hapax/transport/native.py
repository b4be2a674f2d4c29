"""The transport within the process: calls go to the engine as functions, answers come through a queue.

Each event loop has a queue, whose descriptor it watches; each thread without a loop has one that it polls. Threads of
the engine never touch Python.
"""

from __future__ import annotations

import ctypes
import itertools
import json
import select
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any

from hapax.errors import Error, error_from
from hapax.transport.base import ConnectionFailed, Request, Response
from hapax.transport.library import ANSWER, Completion, Library, load

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Mapping

_DRAINED_AT_ONCE = 64
_PATIENCE_S = 60.0


class NativeTransport:
    """An open engine. Threads and event loops share it."""

    def __init__(self, url: str, *, token: str | None = None, namespace: str | None = None) -> None:
        self.library = load()
        options = {name: value for name, value in (("token", token), ("namespace", namespace)) if value}
        error = ctypes.c_char_p()
        handle = self.library.open(url.encode(), json.dumps(options).encode(), ctypes.byref(error))
        if not handle:
            body = json.loads(error.value or b"{}")
            raise error_from(503 if body.get("error") == "StoreUnavailable" else 400, body)
        self._begin(handle)

    def _begin(self, handle: int) -> None:
        self.handle: int | None = handle
        self._lock = threading.Lock()
        self._tokens = itertools.count(1)
        self._queues: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, LoopQueue] = weakref.WeakKeyDictionary()
        self._threads = threading.local()

    def queue_of(self, loop: asyncio.AbstractEventLoop) -> LoopQueue:
        """The queue that this event loop watches."""
        queue = self._queues.get(loop)
        if queue is None:
            with self._lock:
                queue = self._queues[loop] = LoopQueue(self.library, self.handle, loop)
        return queue

    async def call(self, request: Request) -> Response:
        from hapax.transport.http_async import running_loop

        loop = running_loop()
        queue = self.queue_of(loop)
        token = next(self._tokens)
        answer: asyncio.Future[Response] = loop.create_future()
        queue.waiting[token] = answer
        self._start(queue.handle, token, request)
        try:
            return await answer
        except BaseException:
            if answer.cancelled():
                self.library.cancel(self.handle, token)
            raise
        finally:
            queue.waiting.pop(token, None)

    def call_blocking(self, request: Request) -> Response:
        queue: ThreadQueue | None = getattr(self._threads, "queue", None)
        if queue is None:
            queue = self._threads.queue = ThreadQueue(self.library, self.handle)
        token = next(self._tokens)
        self._start(queue.handle, token, request)
        try:
            return queue.wait_for(token, request.wait_s + _PATIENCE_S)
        except BaseException:
            self.library.cancel(self.handle, token)
            raise

    def _start(self, queue: int | None, token: int, request: Request) -> None:
        headers = json.dumps(dict(request.headers)).encode() if request.headers else None
        self.library.call(
            self.handle,
            queue,
            token,
            request.method.encode(),
            request.target.encode(),
            headers,
            request.body,
            len(request.body),
        )

    def close(self) -> None:
        handle, self.handle = self.handle, None
        if handle is None:
            return
        for queue in list(self._queues.values()):
            queue.close()
        self.library.close(handle)


def response_of(completion: Completion) -> Response | Exception:
    """The answer of a call, or why there is none."""
    body = ctypes.string_at(completion.body, completion.body_size)
    status = completion.status
    if status == 0:
        told = json.loads(body)
        if told.get("safe_to_retry") or told.get("error") in ("StoreUnavailable", "OutcomeUnknown", "Cancelled"):
            return ConnectionFailed(told.get("message", "there was no answer"))
        return Error(told.get("message", "there was no answer"), code=told.get("error"))
    headers: Mapping[str, str] = {}
    if status >= 400:
        told = json.loads(ctypes.string_at(completion.headers, completion.headers_size) or b"{}")
        headers = {name.lower(): value for name, value in told.items()}
    return Response(status, headers, body)


class _Queue:
    """A queue of completions."""

    def __init__(self, library: Library, app: int | None) -> None:
        self._library = library
        self.handle: int | None = library.queue_new(app)
        self.descriptor: int = library.queue_fd(self.handle)
        self._drained = (Completion * _DRAINED_AT_ONCE)()
        self._free = weakref.finalize(self, library.queue_free, self.handle)

    def _drain(self, take: Callable[[Completion], None]) -> int:
        count: int = self._library.queue_drain(self.handle, self._drained, _DRAINED_AT_ONCE)
        try:
            for index in range(count):
                take(self._drained[index])
        finally:
            if count:
                self._library.release(self._drained, count)
        return count


class LoopQueue(_Queue):
    """The queue of an event loop. `others` hears of what is no answer of a call."""

    def __init__(self, library: Library, app: int | None, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(library, app)
        self.waiting: dict[int, asyncio.Future[Response]] = {}
        self.workers: dict[int, Callable[[Completion], None]] = {}
        self._loop = weakref.ref(loop)
        loop.add_reader(self.descriptor, self._readable)

    def _readable(self) -> None:
        while self._drain(self._take) == _DRAINED_AT_ONCE:
            pass

    def _take(self, completion: Completion) -> None:
        if completion.kind != ANSWER:
            told = self.workers.get(completion.worker or 0)
            if told is not None:
                told(completion)
            return
        answer = self.waiting.get(completion.token)
        if answer is None or answer.done():
            return
        response = response_of(completion)
        if isinstance(response, Response):
            answer.set_result(response)
        else:
            answer.set_exception(response)

    def close(self) -> None:
        loop = self._loop()
        if loop is not None and not loop.is_closed():
            try:
                loop.remove_reader(self.descriptor)
            except RuntimeError:
                loop.call_soon_threadsafe(loop.remove_reader, self.descriptor)
        for answer in self.waiting.values():
            if not answer.done() and loop is not None and not loop.is_closed():
                loop.call_soon_threadsafe(_fail, answer)


def _fail(answer: asyncio.Future[Any]) -> None:
    if not answer.done():
        answer.set_exception(ConnectionFailed("the app was closed"))


class ThreadQueue(_Queue):
    """The queue of a thread without a loop; one call at a time."""

    def __init__(self, library: Library, app: int | None) -> None:
        super().__init__(library, app)
        self._poll = select.poll()
        self._poll.register(self.descriptor, select.POLLIN)
        self._answers: dict[int, Response | Exception] = {}

    def wait_for(self, token: int, timeout_s: float) -> Response:
        """The answer of this call. A signal, such as that of Ctrl-C, ends the wait."""
        ends = time.monotonic() + timeout_s
        while token not in self._answers:
            left_s = ends - time.monotonic()
            if left_s <= 0:
                raise ConnectionFailed("the engine did not answer in time")
            self._poll.poll(min(left_s, 1.0) * 1000)
            self._answers.clear()
            while self._drain(self._take) == _DRAINED_AT_ONCE:
                pass
        answer = self._answers.pop(token)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _take(self, completion: Completion) -> None:
        if completion.kind == ANSWER:
            self._answers[completion.token] = response_of(completion)
