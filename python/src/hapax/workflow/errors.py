"""What stops a turn rather than the workflow: the run stays suspended for a fixed worker."""

from __future__ import annotations

import asyncio


class Stuck(Exception):
    """The turn cannot go on. The workflow is not failed: it continues once a worker has the right code."""

    @property
    def type(self) -> str:
        return type(self).__name__


class NonDeterminism(Stuck):
    """The code asks for something else than the history has at this step."""


class NothingToWaitFor(Stuck):
    """The code waits, and nothing is open that could ever wake it."""


class NotInWorkflow(Stuck):
    """The code did something that a replay cannot repeat: a clock, a random number, a file, the network, a thread."""


class WorkflowBlocked(Stuck):
    """A turn did not end: the code computes or blocks for too long."""


class UnknownType(Stuck):
    """This worker has no workflow of that name."""


class RunDropped(asyncio.CancelledError):
    """The run is no longer kept in memory. Nothing can be asked for any more; its history is safe."""


class ContinueAsNew(BaseException):
    """Ends this run and begins the next one. Raised by `ctx.continue_as_new`."""

    def __init__(self, input: object) -> None:
        super().__init__("continue as new")
        self.input = input
