"""Waiting for what must come true."""

import time

from server import SLOWDOWN


def retry_until(condition, deadline_s=30):
    end = time.monotonic() + deadline_s * SLOWDOWN
    while not (said := condition()):
        assert time.monotonic() < end, "it does not come true"
        time.sleep(0.02)
    return said
