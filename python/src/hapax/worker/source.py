"""Where a worker gets its claims from, and reports to: a server, or the engine within the process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hapax.workflow.run import Turn

Claim = dict[str, Any]
"""As `POST /v1/claims` answers it: `lease`, `attempt`, `effect_key`, `execution`; of a turn also `run` and `events`."""


class Lane(NamedTuple):
    """What is claimed together, because it shares the room that it runs in."""

    kind: str  # "task" or "workflow"
    queues: Sequence[str]
    types: Sequence[str]
    room: int


class Listener(Protocol):
    """The worker, as a source sees it. All calls are on the worker's loop."""

    def started(self, lane: int, claim: Claim) -> bool:
        """Runs a claim of this lane; False if its type is not known."""
        ...

    def cancelled(self, lease: str, lost: bool) -> None:
        """The task of this lease is to be cancelled, or the lease is lost."""
        ...

    def failed(self, error: BaseException) -> None:
        """Nothing can be claimed any more."""
        ...


class Source(Protocol):
    """Claims for a worker, keeps the leases of what it runs, and reports."""

    async def begin(self, lanes: Sequence[Lane], listener: Listener) -> None: ...

    async def finish(self, claim: Claim, outcome: Mapping[str, Any]) -> None:
        """Reports the end of a task, until it is answered."""
        ...

    async def turn(self, claim: Claim, turn: Turn) -> bool:
        """Commits a turn; whether it was accepted, as far as that is known."""
        ...

    async def give_back(self, claim: Claim) -> None:
        """Gives a turn back, unstarted."""
        ...

    def ended(self, lane: int, claim: Claim) -> None:
        """What was started has ended; its place is free."""
        ...

    @property
    def last_busy(self) -> float:
        """When something was last claimed or ended, by the monotonic clock."""
        ...

    async def stop_claiming(self) -> None: ...

    async def close(self) -> None: ...
