"""Runs a function once; the first attempt is killed in the middle. Run as `python once.py URL`."""

from __future__ import annotations

import os
import signal
import sys

import hapax
from hapax.here import attempt

attempt.LEASE_S = 1.0
app = hapax.Hapax(sys.argv[1])


def charge(order_id: int) -> str:
    task = hapax.current()
    print("effect key", task.effect_key, flush=True)
    if task.attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return f"charged by attempt {task.attempt}"


print("result:", app.once_sync("charge-456", charge, 456))
