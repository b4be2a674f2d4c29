"""Claims from a server: long polls for each lane, reports in batches, heartbeats from a process apart."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from hapax.worker.heartbeat import Heartbeat
from hapax.worker.lanes import Claimer, ClaimLoop
from hapax.worker.reports import Reports, refused_outcome, refused_turn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hapax.calls import Calls
    from hapax.transport.http import Address
    from hapax.worker.source import Claim, Lane, Listener
    from hapax.workflow.run import Turn


class RemoteSource:
    """Works for a server at `address`."""

    def __init__(self, calls: Calls, address: Address, name: str, lease_s: float, wait_s: float) -> None:
        self._calls = calls
        self._address = address
        self._name = name
        self._lease_s = lease_s
        self._wait_s = wait_s
        self._loops: list[tuple[ClaimLoop, asyncio.Task[None]]] = []
        self._ended: list[str] = []
        self._began = time.monotonic()

    async def begin(self, lanes: Sequence[Lane], listener: Listener) -> None:
        self._listener = listener
        self._finishes = Reports(self._calls, "/v1/claims/finish", "outcomes", refused_outcome)
        self._turns = Reports(self._calls, "/v1/claims/turns", "turns", refused_turn)
        self._heartbeat = Heartbeat(self._address, self._lease_s, listener.cancelled)
        self._claimer = claimer = Claimer(self._calls, self._name, self._lease_s)
        for number, lane in enumerate(lanes):
            loop = ClaimLoop(claimer, number, lane, listener, self._heartbeat.add)
            working = asyncio.create_task(loop.work(self._wait_s))
            working.add_done_callback(self._loop_ended)
            self._loops.append((loop, working))
        self._forgetting = asyncio.create_task(self._forget())

    def _loop_ended(self, working: asyncio.Task[None]) -> None:
        if not working.cancelled():
            error = working.exception()
            assert error is not None
            self._listener.failed(error)

    async def _forget(self) -> None:
        """Most tasks are over long before their first heartbeat, so it is enough to say so once a second."""
        while True:
            await asyncio.sleep(1)
            ended, self._ended = self._ended, []
            if ended:
                self._heartbeat.remove(ended)

    async def finish(self, claim: Claim, outcome: Mapping[str, Any]) -> None:
        await self._finishes.send({"lease": claim["lease"], **outcome})

    async def turn(self, claim: Claim, turn: Turn) -> bool:
        report: dict[str, Any] = {"lease": claim["lease"], "seen": turn.seen, "end": turn.end}
        if turn.commands:
            report["commands"] = turn.commands
        answer = await self._turns.send(report)
        return bool(answer.get("ok"))

    async def give_back(self, claim: Claim) -> None:
        await self._claimer.give_back([claim["lease"]])

    def ended(self, lane: int, claim: Claim) -> None:
        self._ended.append(claim["lease"])
        self._loops[lane][0].release()

    @property
    def last_busy(self) -> float:
        return max((loop.last_busy for loop, _ in self._loops), default=self._began)

    async def stop_claiming(self) -> None:
        for _, working in self._loops:
            working.cancel()
        await asyncio.gather(*(working for _, working in self._loops), return_exceptions=True)
        await asyncio.gather(*(loop.give_back_last() for loop, _ in self._loops))

    async def close(self) -> None:
        self._forgetting.cancel()
        self._heartbeat.close()
