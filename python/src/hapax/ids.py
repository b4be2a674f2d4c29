"""Ids of submissions: UUIDs of version 7, drawn by whoever submits."""

from __future__ import annotations

import os
import time


def new_id() -> str:
    """A new UUIDv7. Ids sort by the millisecond in which they were drawn."""
    milliseconds = time.time_ns() // 1_000_000
    random = int.from_bytes(os.urandom(10), "big")
    value = milliseconds << 80 | 0x7 << 76 | (random >> 64 & 0xFFF) << 64 | 0b10 << 62 | random & (1 << 62) - 1
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
