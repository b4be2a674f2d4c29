"""Ids of submissions: UUIDs of version 7, drawn by whoever submits."""

from __future__ import annotations

import os
import threading
import time

_RANDOM_BITS = 74

_lock = threading.Lock()
_latest = (0, 0)  # of this process: the millisecond and the random bits


def _after_fork() -> None:
    """Another thread of the parent may hold the lock for ever."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def new_id() -> str:
    """A new UUIDv7. Those that a process draws sort in the order in which they were drawn."""
    global _latest
    drawn = int.from_bytes(os.urandom(10), "big") & (1 << _RANDOM_BITS) - 1
    with _lock:
        milliseconds, random = max(time.time_ns() // 1_000_000, _latest[0]), drawn
        if milliseconds == _latest[0]:
            # By a random step: a process that was forked goes on from the same place.
            random = _latest[1] + 1 + (drawn & 0xFFFFFFFF)
        if random >> _RANDOM_BITS:
            milliseconds, random = milliseconds + 1, drawn
        _latest = (milliseconds, random)
    value = milliseconds << 80 | 0x7 << 76 | (random >> 62) << 64 | 0b10 << 62 | random & (1 << 62) - 1
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
