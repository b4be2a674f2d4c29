"""Durations: `"30s"`, `timedelta(seconds=30)` and `30` (seconds) mean the same."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from typing import Union

Duration = Union[str, timedelta, int, float]
"""A length of time: text such as `"500ms"`, `"30s"`, `"5m"`, `"12h"`, `"7d"`; a timedelta; or seconds."""

_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_TEXT = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?\s*$")


def to_seconds(duration: Duration) -> float:
    """The duration in seconds; ValueError if it is none."""
    if isinstance(duration, timedelta):
        seconds = duration.total_seconds()
    elif isinstance(duration, str):
        match = _TEXT.match(duration)
        if not match or (match[2] is None and float(match[1]) != 0):
            raise ValueError(f'{duration!r} is no duration; write "500ms", "30s", "5m", "12h" or "7d"')
        seconds = float(match[1]) * _UNITS_S[match[2] or "s"]
    else:
        seconds = float(duration)
    if not 0 <= seconds < float("inf"):
        raise ValueError(f"a duration cannot be negative or endless: {duration!r}")
    return seconds


def to_wire(duration: Duration) -> str:
    """The duration as the API writes it. Text is passed on as it is."""
    if isinstance(duration, str):
        return duration
    milliseconds = round(to_seconds(duration) * 1000)
    return f"{milliseconds // 1000}s" if milliseconds % 1000 == 0 else f"{milliseconds}ms"


def time_to_wire(time: datetime) -> str:
    """RFC 3339 in UTC. A datetime without a time zone is refused: nobody can know which instant it means."""
    if time.tzinfo is None or time.utcoffset() is None:
        raise ValueError(f"{time!r} has no time zone; use datetime.now(timezone.utc) or .astimezone()")
    return time.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def time_from_wire(text: str) -> datetime:
    """The instant that an RFC 3339 text means."""
    fixed = text[:-1] + "+00:00" if text[-1:] in "zZ" else text
    # Before 3.11, fromisoformat takes three or six digits of a second only.
    fixed = re.sub(r"\.(\d+)", lambda match: "." + match[1][:6].ljust(6, "0"), fixed)
    time = datetime.fromisoformat(fixed)
    if time.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    return time
