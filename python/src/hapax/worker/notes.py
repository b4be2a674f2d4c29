"""What running handlers have to say: progress and log lines, sent with a heartbeat of their lease."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from hapax.durations import to_wire
from hapax.errors import Error

if TYPE_CHECKING:
    from hapax.calls import Calls

_log = logging.getLogger("hapax.worker")

_GATHERED_S = 0.1
_TRIES = 8


class Notes:
    """Gathers what handlers say and sends it soon, at the latest before the end of their attempt is reported."""

    def __init__(self, calls: Calls, lease_s: float) -> None:
        self._calls = calls
        self._lease = to_wire(lease_s)
        self._waiting: dict[str, dict[str, Any]] = {}  # by lease
        self._refused: dict[str, int] = {}
        self._said: set[str] = set()
        self._lock = asyncio.Lock()
        self._sending: asyncio.Task[None] | None = None

    def add(self, lease: str, note: dict[str, Any]) -> None:
        """On the worker's loop: `progress`, of which the last one counts, or lines of `log`."""
        self._said.add(lease)
        self._merge(lease, note)
        if self._sending is None:
            self._sending = asyncio.get_running_loop().create_task(self._send_all())

    def _merge(self, lease: str, later: dict[str, Any]) -> None:
        earlier = self._waiting.get(lease, {})
        both = {**earlier, **later}
        if "log" in earlier and "log" in later:
            both["log"] = earlier["log"] + later["log"]
        self._waiting[lease] = both

    async def _send_all(self) -> None:
        try:
            while self._waiting:
                await self._send()
                await asyncio.sleep(_GATHERED_S)
        finally:
            self._sending = None

    async def _send(self) -> None:
        async with self._lock:
            batch, self._waiting = self._waiting, {}
            if not batch:
                return
            leases = [{"lease": lease, **note} for lease, note in batch.items()]
            try:
                answer = await self._calls.call(
                    "POST", "/v1/claims/heartbeat", {"leases": leases, "lease": self._lease}, accept=(409,)
                )
            except Error as error:
                _log.warning("cannot send what handlers said: %s", error)
                refused = set(batch) if error.safe_to_retry else set()
            else:
                # A step within its turn has no lease before the turn is stored: it is asked again.
                refused = {each["lease"] for each in answer.json["leases"] if not each["ok"]}
            for lease in refused:
                self._refused[lease] = self._refused.get(lease, 0) + 1
                if self._refused[lease] < _TRIES:
                    later = self._waiting.pop(lease, {})
                    self._waiting[lease] = batch[lease]
                    self._merge(lease, later)

    async def flush(self, lease: str) -> None:
        """Returns when all that the handler of this lease has said is sent."""
        if lease not in self._said:
            return
        for _ in range(_TRIES):
            await self._send()
            if lease not in self._waiting:
                break
            await asyncio.sleep(_GATHERED_S / 2)
        self._said.discard(lease)
        self._waiting.pop(lease, None)
        self._refused.pop(lease, None)
