"""Sends what came out of tasks and turns, everything that gathers while a request is under way in the next one."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from hapax.errors import Error, InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from hapax.calls import Calls

_log = logging.getLogger("hapax.worker")

_MOST = 200
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 5.0
_NEW_MEMBERS = ("stack", "details", "retry_after")


class Reports:
    """A queue of reports of one kind: `finish` with its `outcomes`, or `turns`."""

    def __init__(self, calls: Calls, target: str, member: str, refused: Callable[[dict[str, Any], Error], Any]) -> None:
        """`refused` makes a report that can be sent of one that the server refuses, such as a result too large."""
        self._calls = calls
        self._target = target
        self._member = member
        self._refused = refused
        self._waiting: list[tuple[dict[str, Any], asyncio.Future[dict[str, Any]]]] = []
        self._sending: asyncio.Task[None] | None = None

    def send(self, report: dict[str, Any]) -> asyncio.Future[dict[str, Any]]:
        """Sends a report; the future is its answer: `ok`, or `error: LeaseLost`. It is sent until it is answered."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[dict[str, Any]] = loop.create_future()
        self._waiting.append((report, answer))
        if self._sending is None:
            self._sending = loop.create_task(self._send_all())
        return answer

    async def _send_all(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[:_MOST], self._waiting[_MOST:]
                answers = await self._post([report for report, _ in batch])
                for (_, future), answer in zip(batch, answers):
                    if not future.done():
                        future.set_result(answer)
        finally:
            self._sending = None

    async def _post(self, reports: list[dict[str, Any]]) -> list[dict[str, Any]]:
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                answer = await self._calls.call("POST", self._target, {self._member: reports}, accept=(409,))
                answers: list[dict[str, Any]] = answer.json[self._member]
                return answers
            except Error as error:
                if not error.safe_to_retry:
                    return await self._one_by_one(reports, error)
                _log.warning("cannot report: %s; trying again", error)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    async def _one_by_one(self, reports: list[dict[str, Any]], error: Error) -> list[dict[str, Any]]:
        """A report that is refused must not affect the others."""
        if len(reports) > 1:
            return [(await self._post([report]))[0] for report in reports]
        report = reports[0]
        plain = _without_new_members(report) if isinstance(error, InvalidRequest) else report
        if plain != report:  # an older server
            return await self._post([plain])
        replacement = self._refused(report, error)
        if replacement is None:
            _log.error("the report was refused: %s", error)
            return [{"lease": report["lease"], "error": error.code, "message": error.message}]
        return await self._post([replacement])


def _without_new_members(report: dict[str, Any]) -> dict[str, Any]:
    if "error" not in report:
        return report
    kept = {name: value for name, value in report["error"].items() if name not in _NEW_MEMBERS}
    return {**report, "error": kept}


def refused_outcome(report: dict[str, Any], error: Error) -> dict[str, Any] | None:
    """A result that the server does not take fails its task for good; an error that it does not take is cut short."""
    told = report.get("error")
    if told is None:
        message = f"the result was refused: {error.message}"
        return {"lease": report["lease"], "error": {"type": error.code, "message": message, "retryable": False}}
    if set(told) == {"type", "message", "retryable"} and len(told["message"]) <= 200:
        return None
    short = {"type": told["type"][:100], "message": told["message"][:200], "retryable": told.get("retryable", True)}
    return {"lease": report["lease"], "error": short}


def refused_turn(report: dict[str, Any], error: Error) -> dict[str, Any] | None:
    """A turn that the server does not take is stuck: the code asked for something impossible."""
    if report["end"]["kind"] == "stuck":
        return None
    told = {"type": error.code, "message": f"the turn was refused: {error.message}"[:2000]}
    return {"lease": report["lease"], "seen": report["seen"], "end": {"kind": "stuck", "error": told}}
