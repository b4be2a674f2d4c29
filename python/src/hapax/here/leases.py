"""Keeps the leases of what runs in this process, from a thread that neither an event loop nor a handler can block."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hapax.durations import to_wire
from hapax.errors import Error
from hapax.transport import sync

if TYPE_CHECKING:
    from collections.abc import Callable

    from hapax.calls import Calls

_log = logging.getLogger("hapax.here")

_IDLE_S = 10.0
_AGAIN_S = 1.0
_MOST_LEASES = 500  # in one request


@dataclass
class _Kept:
    lease_s: float
    next_beat: float
    told: Callable[[bool], None]
    cancel_told: bool = False


class LeaseKeeper:
    """Sends heartbeats for the leases that it was given, each three times within its length.

    Its thread starts with the first lease, and ends when there has been none for ten seconds.
    """

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._kept: dict[str, _Kept] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False

    def keep(self, lease: str, lease_s: float, told: Callable[[bool], None]) -> None:
        """Keeps a lease until `release`. `told` is called on the keeper's thread: with False when the task is to be
        cancelled, with True when the lease is lost."""
        with self._changed:
            self._kept[lease] = _Kept(lease_s, time.monotonic() + lease_s / 3, told)
            if self._thread is None:
                self._closed = False
                self._thread = threading.Thread(target=self._run, name="hapax-leases", daemon=True)
                self._thread.start()
            self._changed.notify()

    def release(self, lease: str) -> None:
        """This lease needs no more heartbeats."""
        with self._changed:
            self._kept.pop(lease, None)

    def close(self) -> None:
        """Ends the thread. The leases that are left run out."""
        with self._changed:
            self._closed = True
            self._kept.clear()
            self._changed.notify()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(2)

    def _run(self) -> None:
        while True:
            with self._changed:
                due = self._wait_until_due()
                if due is None:
                    self._thread = None
                    return
            for lease_s in {kept.lease_s for kept in due.values()}:
                self._beat([lease for lease, kept in due.items() if kept.lease_s == lease_s], lease_s)

    def _wait_until_due(self) -> dict[str, _Kept] | None:
        """The leases whose time for a heartbeat has come; None when the thread is not needed any more."""
        idle_until = time.monotonic() + _IDLE_S
        while not self._closed:
            now = time.monotonic()
            # What is due a little later goes with the rest, so that many leases do not make many requests.
            due = {lease: kept for lease, kept in self._kept.items() if kept.next_beat <= now + kept.lease_s / 12}
            if any(kept.next_beat <= now for kept in due.values()):
                return due
            if self._kept:
                idle_until = now + _IDLE_S
            elif now >= idle_until:
                return None
            wakes = min((kept.next_beat for kept in self._kept.values()), default=idle_until)
            self._changed.wait(max(0.0, wakes - now))
        return None

    def _beat(self, leases: list[str], lease_s: float) -> None:
        for start in range(0, len(leases), _MOST_LEASES):
            batch = leases[start : start + _MOST_LEASES]
            body = {"leases": batch, "lease": to_wire(lease_s)}
            try:
                answer = sync(self._calls.call("POST", "/v1/claims/heartbeat", body, tries=1))
            except Error as error:
                _log.warning("cannot keep %d leases: %s; trying again", len(batch), error)
                self._plan(batch, min(_AGAIN_S, lease_s / 9))
                continue
            self._plan(batch, lease_s / 3)
            for each in answer.json["leases"]:
                self._tell(each["lease"], lost=not each["ok"], cancel=each.get("cancel_requested", False))

    def _plan(self, leases: list[str], after_s: float) -> None:
        with self._changed:
            for lease in leases:
                if lease in self._kept:
                    self._kept[lease].next_beat = time.monotonic() + after_s

    def _tell(self, lease: str, *, lost: bool, cancel: bool) -> None:
        with self._changed:
            kept = self._kept.get(lease)
            if kept is None or not (lost or (cancel and not kept.cancel_told)):
                return
            kept.cancel_told = True
            if lost:
                del self._kept[lease]
        kept.told(lost)
