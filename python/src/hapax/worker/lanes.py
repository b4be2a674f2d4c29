"""Claiming: each lane asks for what it has room for, and waits at the server until there is something."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from typing import TYPE_CHECKING, Any

from hapax._version import __version__
from hapax.durations import to_wire
from hapax.errors import Error, InvalidRequest
from hapax.ids import new_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from hapax.calls import Calls
    from hapax.worker.source import Lane, Listener

_log = logging.getLogger("hapax.worker")

_MOST = 200
_NEWER = ("types", "claim_id", "sdk", "host", "pid")
"""Members of a claim that an older server refuses."""
_PAUSES_S = (0.1, 0.3, 1.0, 3.0, 5.0)


class Claimer:
    """What all lanes of a worker say when they claim."""

    def __init__(self, calls: Calls, worker: str, lease_s: float) -> None:
        self._calls = calls
        self._worker = worker
        self._lease = to_wire(lease_s)
        self._left_out: set[str] = set()  # members that the server does not know

    @property
    def has_claim_ids(self) -> bool:
        """Whether the server answers a claim again under its id."""
        return "claim_id" not in self._left_out

    async def claim(self, request: dict[str, Any], wait_s: float) -> list[dict[str, Any]]:
        """Claims. A server that does not know a member yet is asked without it."""
        body = {"worker": self._worker, "lease": self._lease, "wait": to_wire(round(wait_s, 3)), **request}
        while True:
            for member in self._left_out:
                body.pop(member, None)
            try:
                answer = await self._calls.call("POST", "/v1/claims", body, wait_s=wait_s, tries=1)
                claims: list[dict[str, Any]] = answer.json["claims"]
                return claims
            except InvalidRequest as error:
                refused = (error.pointer or "/")[1:]
                if refused not in _NEWER or refused not in body:
                    raise
                self._left_out.add(refused)

    async def give_back(self, leases: list[str]) -> None:
        """Returns what was not started; it costs no attempt."""
        try:
            await self._calls.call("POST", "/v1/claims/return", {"leases": leases})
        except Error as error:
            _log.warning("cannot give back %d claims: %s; their leases run out", len(leases), error)


class ClaimLoop:
    """Claims for one lane, as long as it has room for more."""

    def __init__(
        self, claimer: Claimer, number: int, lane: Lane, listener: Listener, keep: Callable[[list[str]], None]
    ) -> None:
        """`keep` has leases kept, before the first of the claims runs."""
        self._claimer = claimer
        self._number = number
        self._lane = lane
        self._listener = listener
        self._keep = keep
        self._room = lane.room
        self._room_made = asyncio.Event()
        self._under_way: dict[str, Any] | None = None
        self.last_busy = time.monotonic()

    def release(self) -> None:
        """One of those that were started has ended."""
        self._room += 1
        self.last_busy = time.monotonic()
        self._room_made.set()

    async def work(self, wait_s: float) -> None:
        """Claims until it is cancelled."""
        failures = unknown = 0
        while True:
            if self._room <= 0:
                self._room_made.clear()
                await self._room_made.wait()
                continue
            try:
                claims = await self._claim(wait_s)
                failures = 0
            except Error as error:
                if not error.safe_to_retry:
                    raise
                _log.warning("cannot claim: %s; trying again", error)
                await asyncio.sleep(_PAUSES_S[min(failures, len(_PAUSES_S) - 1)])
                failures += 1
                continue
            known = self._take(claims)
            back = [claim["lease"] for claim in claims if claim["lease"] not in known]
            if back:
                await self._claimer.give_back(back)
            unknown = unknown + 1 if claims and not known else 0
            if unknown:  # only what others know: wait before asking again
                await asyncio.sleep(_PAUSES_S[min(unknown - 1, len(_PAUSES_S) - 1)])

    async def _claim(self, wait_s: float) -> list[dict[str, Any]]:
        unanswered = self._under_way  # its answer was lost: the same claim again gets what it was given
        self._under_way = {
            "queues": list(self._lane.queues),
            "kinds": [self._lane.kind],
            "types": list(self._lane.types),
            "limit": min(self._room, _MOST),
            "sdk": {"name": "python", "version": __version__},
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "claim_id": new_id() if unanswered is None else unanswered["claim_id"],
        }
        claims = await self._claimer.claim(self._under_way, wait_s)
        self._under_way = None
        return claims

    async def give_back_last(self) -> None:
        """After the loop was cancelled: what the claim that was under way may have been given is returned."""
        if self._under_way is None or not self._claimer.has_claim_ids:
            return
        try:
            claims = await self._claimer.claim(self._under_way, 0)
        except Error as error:
            _log.warning("cannot ask for the last claim: %s; its leases run out", error)
            return
        if claims:
            await self._claimer.give_back([claim["lease"] for claim in claims])

    def _take(self, claims: list[dict[str, Any]]) -> set[str]:
        known = {claim["lease"] for claim in claims if self._listener.started(self._number, claim)}
        if known:
            self._room -= len(known)
            self.last_busy = time.monotonic()
            self._keep(list(known))
        return known
