"""Claims by the engine's own threads, of the engine within the process or of a server: they keep leases and report
whatever Python does."""

from __future__ import annotations

import asyncio
import ctypes
import json
import logging
import time
from typing import TYPE_CHECKING, Any

from hapax._version import __version__
from hapax.codec import dump_json
from hapax.durations import to_wire
from hapax.errors import Error, error_from
from hapax.transport import library as abi
from hapax.worker.reports import refused_outcome, refused_turn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hapax.transport.native import NativeTransport
    from hapax.worker.source import Claim, Lane, Listener
    from hapax.workflow.run import Turn

_log = logging.getLogger("hapax.worker")


class NativeSource:
    """Works for the engine at `transport`: one native worker for each lane.

    A turn may say which step its code waits for alone. If that is a quick one, the engine has it run within the turn:
    the task comes to the turn's own lane, beyond its room, and then the turn comes again, with the task's end.
    """

    def __init__(self, transport: NativeTransport, name: str, lease_s: float, *, steps_in_turns: bool) -> None:
        """`steps_in_turns` is for workers that keep their runs in memory."""
        self._transport = transport
        self._library = transport.library
        self._name = name
        self._lease_s = lease_s
        self._steps_in_turns = steps_in_turns
        self._beyond_room: set[tuple[int, int]] = set()
        self._workers: list[int] = []
        self._lanes: Sequence[Lane] = ()
        self._claims: dict[tuple[int, int], Claim] = {}  # by worker and number
        self._reported: dict[tuple[int, int], tuple[str, dict[str, Any]]] = {}
        self._ended_workers = 0
        self._all_ended = asyncio.Event()
        self.last_busy = time.monotonic()

    async def begin(self, lanes: Sequence[Lane], listener: Listener) -> None:
        if not self._library.has_worker:
            raise Error(
                "the engine of this installation has no workers; install both from one release", code="OldEngine"
            )
        self._listener = listener
        self._lanes = lanes
        self._queue = self._transport.queue_of(asyncio.get_running_loop())
        types = [name for lane in lanes if lane.kind == "task" for name in lane.types]
        queues = [name for lane in lanes for name in lane.queues]
        for number, lane in enumerate(lanes):
            is_task = lane.kind == "task"
            options = {
                "queues": list(lane.queues) if is_task else sorted(set(queues)),
                "types": list(lane.types) if is_task else types,
                "workflows": [] if is_task else list(lane.types),
                "name": self._name,
                "lease": to_wire(self._lease_s),
                "sdk": {"name": "python", "version": __version__},
            }
            worker = self._library.worker_new(self._transport.handle, self._queue.handle, dump_json(options))
            if not worker:
                raise Error("the engine refused a worker; is the app closed?", code="WorkerRefused")
            self._workers.append(worker)
            self._queue.workers[worker] = lambda completion, lane=number: self._told(lane, completion)  # type: ignore[misc]
            self._credit(number, lane.room)

    def _credit(self, lane: int, more: int) -> None:
        is_task = self._lanes[lane].kind == "task"
        self._library.worker_credit(self._workers[lane], more if is_task else 0, 0 if is_task else more)

    def _told(self, lane: int, completion: abi.Completion) -> None:
        kind, number = completion.kind, completion.token
        key = (lane, number)
        if kind in (abi.TASK, abi.TURN):
            self.last_busy = time.monotonic()
            claim: Claim = json.loads(ctypes.string_at(completion.body, completion.body_size))
            claim["number"] = number
            claim["lane"] = lane
            if claim.get("continues") or (kind == abi.TASK and self._lanes[lane].kind != "task"):
                self._beyond_room.add(key)
            self._claims[key] = claim
            if not self._listener.started(lane, claim):
                self._give_back(key, kind == abi.TASK)
                self.ended(lane, claim)
        elif kind == abi.WORKER_ENDED:
            self._worker_ended(completion)
        elif kind == abi.REFUSED:
            self._refused(key, json.loads(ctypes.string_at(completion.body, completion.body_size)))
        elif key in self._claims:
            self._listener.cancelled(self._claims[key]["lease"], kind == abi.LEASE_LOST)

    def _worker_ended(self, completion: abi.Completion) -> None:
        self._ended_workers += 1
        if self._ended_workers == len(self._workers):
            self._all_ended.set()
        if completion.status != 200:
            body = json.loads(ctypes.string_at(completion.body, completion.body_size))
            self._listener.failed(error_from(completion.status or 503, body))

    def _refused(self, key: tuple[int, int], body: Mapping[str, Any]) -> None:
        """A report that the engine does not take is replaced by one that says so."""
        kind, report = self._reported.get(key, ("", {}))
        error = error_from(400, body)
        replaced = (refused_outcome if kind == "finish" else refused_turn)({"lease": "", **report}, error)
        if replaced is None:
            _log.error("a report was refused: %s", error)
            return
        del replaced["lease"]
        self._send(key, kind, replaced)

    def _send(self, key: tuple[int, int], kind: str, report: dict[str, Any]) -> None:
        self._reported[key] = (kind, report)
        data = dump_json(report)
        send = self._library.worker_finish if kind == "finish" else self._library.worker_turn
        send(self._workers[key[0]], key[1], data, len(data))

    def _give_back(self, key: tuple[int, int], is_task: bool) -> None:
        report = self._library.worker_finish if is_task else self._library.worker_turn
        report(self._workers[key[0]], key[1], None, 0)

    async def give_back(self, claim: Claim) -> None:
        self._give_back((claim["lane"], claim["number"]), is_task=False)

    async def finish(self, claim: Claim, outcome: Mapping[str, Any]) -> None:
        self._send((claim["lane"], claim["number"]), "finish", dict(outcome))

    async def turn(self, claim: Claim, turn: Turn) -> bool:
        report: dict[str, Any] = {"seen": turn.seen, "end": turn.end}
        if turn.commands:
            report["commands"] = turn.commands
        if turn.waits_for is not None and self._has_room_for_steps(claim["lane"]):
            report["waits_for"] = turn.waits_for
        self._send((claim["lane"], claim["number"]), "turn", report)
        return True  # if it was not accepted, the next claim of the run shows it

    def _has_room_for_steps(self, lane: int) -> bool:
        return self._steps_in_turns and len(self._beyond_room) < self._lanes[lane].room

    def ended(self, lane: int, claim: Claim) -> None:
        self.last_busy = time.monotonic()
        key = (lane, claim["number"])
        self._claims.pop(key, None)
        if key in self._beyond_room:
            self._beyond_room.discard(key)
        else:
            self._credit(lane, 1)
        # A refusal may still arrive; after some time it cannot.
        asyncio.get_running_loop().call_later(30, self._forget, (lane, claim["number"]))

    def _forget(self, key: tuple[int, int]) -> None:
        self._claims.pop(key, None)
        self._reported.pop(key, None)

    async def stop_claiming(self) -> None:
        for worker in self._workers:
            self._library.worker_drain(worker)

    async def close(self) -> None:
        try:
            await asyncio.wait_for(self._all_ended.wait(), self._lease_s)
        except (TimeoutError, asyncio.TimeoutError):
            _log.warning("the engine has not confirmed the last reports")
        for worker in self._workers:
            self._queue.workers.pop(worker, None)
