"""`asyncio.wait` and `asyncio.as_completed` with an order, inside workflows.

Both keep what they were given in sets, whose order may differ between two runs of the same code. Inside a workflow they
go by the order of the arguments instead. Elsewhere they are asyncio's own.
"""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING, Any

from hapax.workflow.loop import WorkflowLoop

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator

_wait = asyncio.wait
_as_completed = asyncio.as_completed


class OrderedSet(set[Any]):
    """A set that is iterated in the order of its making."""

    def __init__(self, items: Iterable[Any]) -> None:
        self._order = list(dict.fromkeys(items))
        super().__init__(self._order)

    def __iter__(self) -> Iterator[Any]:
        return (item for item in self._order if item in self)

    def pop(self) -> Any:
        for item in self._order:
            if item in self:
                self.discard(item)
                return item
        raise KeyError("pop from an empty set")


def _in_workflow() -> bool:
    return isinstance(asyncio._get_running_loop(), WorkflowLoop)


@functools.wraps(_wait)
async def wait(
    fs: Iterable[Any], *, timeout: float | None = None, return_when: str = asyncio.ALL_COMPLETED
) -> tuple[set[Any], set[Any]]:
    if not _in_workflow():
        outcome: tuple[set[Any], set[Any]] = await _wait(fs, timeout=timeout, return_when=return_when)
        return outcome
    order = list(dict.fromkeys(fs))
    done, pending = await _wait(order, timeout=timeout, return_when=return_when)
    return OrderedSet(f for f in order if f in done), OrderedSet(f for f in order if f in pending)


@functools.wraps(_as_completed)
def as_completed(fs: Iterable[Awaitable[Any]], *, timeout: float | None = None) -> Any:
    if not _in_workflow():
        return _as_completed(fs, timeout=timeout)
    return _Completions([asyncio.ensure_future(f) for f in dict.fromkeys(fs)], timeout)


class _Completions:
    """What `as_completed` returns: awaitables, or with `async for` the futures themselves, as they end."""

    def __init__(self, futures: list[asyncio.Future[Any]], timeout: float | None) -> None:
        self._queue: asyncio.Queue[asyncio.Future[Any] | None] = asyncio.Queue()
        self._left = len(futures)
        self._open = list(futures)
        self._timer: Any = None
        for future in futures:
            future.add_done_callback(self._ended)
        if timeout is not None and futures:
            self._timer = asyncio.get_running_loop().call_later(timeout, self._too_late)

    def _ended(self, future: asyncio.Future[Any]) -> None:
        if future not in self._open:
            return
        self._open.remove(future)
        self._queue.put_nowait(future)
        if not self._open and self._timer is not None:
            self._timer.cancel()

    def _too_late(self) -> None:
        for future in self._open:
            future.remove_done_callback(self._ended)
            self._queue.put_nowait(None)
        self._open.clear()

    async def _next_future(self) -> asyncio.Future[Any]:
        future = await self._queue.get()
        if future is None:
            raise asyncio.TimeoutError
        return future

    async def _next_result(self) -> Any:
        return (await self._next_future()).result()

    def __iter__(self) -> Iterator[Any]:
        while self._left:
            self._left -= 1
            yield self._next_result()

    def __aiter__(self) -> _Completions:
        return self

    async def __anext__(self) -> asyncio.Future[Any]:
        if not self._left:
            raise StopAsyncIteration
        self._left -= 1
        return await self._next_future()


def install() -> None:
    """Puts both in place of asyncio's own, which they call outside of workflows."""
    replace: dict[str, Callable[..., Any]] = {"wait": wait, "as_completed": as_completed}
    for name, function in replace.items():
        for module in (asyncio, asyncio.tasks):
            setattr(module, name, function)
