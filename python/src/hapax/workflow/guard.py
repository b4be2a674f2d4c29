"""Catches what a replay cannot repeat, while a turn runs on this thread.

A profile function sees every call into C, however the code came by the function (`from time import time` too). It costs
the turn some time and other threads nothing. Logging may look at the clock; so may this library.
"""

from __future__ import annotations

import builtins
import contextlib
import datetime
import gc
import os
import random
import socket
import sys
import time
from typing import TYPE_CHECKING, Any

from hapax.workflow.errors import NotInWorkflow

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from types import FrameType

_TIME = "use `ctx.now()`"
_TASK = "make it a task, and `await ctx.run(task, …)`"
_SLEEP = "use `await asyncio.sleep(…)` or `await ctx.sleep(…)`: a durable timer"
_RANDOM = "use `ctx.random()` or `ctx.uuid()`, or a random.Random with a seed of your own"

_module_random = getattr(random, "_inst")  # noqa: B009 - typeshed does not know it


def _forbidden() -> dict[Any, tuple[str, str]]:
    """What is caught: how to call it in a message, and what to do instead."""
    found: dict[Any, tuple[str, str]] = {
        time.sleep: ("time.sleep", _SLEEP),
        datetime.datetime.now: ("datetime.now", _TIME),
        datetime.datetime.today: ("datetime.today", _TIME),
        datetime.date.today: ("date.today", _TIME),
        os.urandom: ("os.urandom (uuid4, secrets)", _RANDOM),
        _module_random.random: ("random", _RANDOM),
        _module_random.getrandbits: ("random", _RANDOM),
        builtins.open: ("open", _TASK),
        builtins.input: ("input", "use `await ctx.signal(…)`"),
        os.open: ("os.open", _TASK),
        os.fork: ("os.fork", _TASK),
        socket.socket.connect: ("a socket", _TASK),
    }
    for owner, name in ((datetime.datetime, "utcnow"), (os, "system")):  # by name: type checkers warn of them
        found[getattr(owner, name)] = (name, _TIME if name == "utcnow" else _TASK)
    for name in ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns"):
        found[getattr(time, name)] = (f"time.{name}", _TIME)
    import _socket
    import _thread

    found[_socket.getaddrinfo] = ("the network", _TASK)
    found[_thread.start_new_thread] = ("a thread", _TASK)
    joinable = getattr(_thread, "start_joinable_thread", None)
    if joinable is not None:
        found[joinable] = ("a thread", _TASK)
    with contextlib.suppress(ImportError, AttributeError):
        import _posixsubprocess

        found[_posixsubprocess.fork_exec] = ("a process", _TASK)
    with contextlib.suppress(ImportError):
        import _uuid  # type: ignore[import-not-found,unused-ignore]

        found[_uuid.generate_time_safe] = ("uuid1", _RANDOM)
    return found


_FORBIDDEN = _forbidden()
_MAY = (
    "logging",
    "hapax",
    "linecache",
    "tokenize",
    "traceback",
    "warnings",
    "importlib",
    "_frozen_importlib",
    "asyncio",
)


def _may(module: str) -> bool:
    return module.partition(".")[0] in _MAY


@contextlib.contextmanager
def guarded(report: Callable[[NotInWorkflow], None]) -> Generator[None, None, None]:
    """Within it, what is forbidden raises NotInWorkflow in the code, and is reported even if the code catches that."""
    forbidden = _FORBIDDEN

    def watch(frame: FrameType, event: str, called: Any) -> None:
        if event != "c_call":
            return
        try:
            found = forbidden.get(called)
        except TypeError:  # not hashable
            return
        if found is None or _may(frame.f_globals.get("__name__", "")):
            return
        if _is_interruption(frame):
            return
        name, instead = found
        code = place(frame)
        error = NotInWorkflow(f"{name} at {code}: a replay would not get the same; {instead}")
        report(error)
        raise error

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        yield
    finally:
        sys.setprofile(before)


def _is_interruption(frame: FrameType | None) -> bool:
    """Whether the garbage collector called this, at a moment that has nothing to do with the code."""
    callbacks = {getattr(callback, "__code__", None) for callback in gc.callbacks}
    while frame is not None:
        if frame.f_code in callbacks or frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False


def is_code_of_workflow(frame: FrameType) -> bool:
    """Whether the frame is neither of this library nor of the standard library."""
    module = frame.f_globals.get("__name__", "").partition(".")[0]
    return module != "hapax" and module not in sys.stdlib_module_names


def place(frame: FrameType | None) -> str:
    """file:line of the nearest frame that is code of the workflow, not of a library below it."""
    first = frame
    while frame is not None and not is_code_of_workflow(frame):
        frame = frame.f_back
    chosen = frame or first
    return f"{chosen.f_code.co_filename}:{chosen.f_lineno}" if chosen else "an unknown place"
