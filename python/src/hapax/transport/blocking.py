"""The library's coroutines for callers without an event loop.

Every operation is written once, as a coroutine that awaits nothing but the transport and `pause`. `sync` runs such a
coroutine in blocking mode: the transport then answers before it returns, so the coroutine never suspends.
"""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine, Generator

R = TypeVar("R")


class _Mode(threading.local):
    blocking = False


_mode = _Mode()


def is_blocking() -> bool:
    """Whether the current thread runs a coroutine by `sync`."""
    return _mode.blocking


async def pause(seconds: float) -> None:
    """Sleeps in either mode."""
    if _mode.blocking:
        time.sleep(seconds)  # noqa: ASYNC251
        return
    import asyncio

    await asyncio.sleep(seconds)


@contextlib.contextmanager
def outside_sync() -> Generator[None, None, None]:
    """While the caller's own code runs in the middle of a `sync`: what it does is none of the call's business."""
    before, _mode.blocking = _mode.blocking, False
    try:
        yield
    finally:
        _mode.blocking = before


def sync(call: Coroutine[Any, Any, R]) -> R:
    """Runs a call of this library to its end, in code without an event loop.

        answer = hapax.sync(app.cancel_workflow("order-456", request_key="cancel-456"))

    It blocks the thread. On a thread that runs an event loop, await the call instead.
    """
    before, _mode.blocking = _mode.blocking, True
    try:
        call.send(None)
    except StopIteration as done:
        result: R = done.value
        return result
    finally:
        _mode.blocking = before
    call.close()
    raise RuntimeError("hapax.sync runs calls of this library only; use asyncio.run for your own coroutines")
