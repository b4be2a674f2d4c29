"""The handlers of a workflow's updates.

An update is a signal of a name of its own; its answer is a value that is published under its request key. A handler
keeps a wait for its signal open. So the history alone says where in the code each update is answered.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from typing import TYPE_CHECKING, Any

from hapax.codec import Mismatch
from hapax.errors import InvalidInput, InvalidRequest
from hapax.signature import codec_for, hints_of
from hapax.workflow.errors import ContinueAsNew, Stuck

if TYPE_CHECKING:
    from collections.abc import Callable

    from hapax.codec import Codec
    from hapax.workflow.run import Run

SIGNAL = "hapax.update:"
ANSWER = "hapax.answer:"
_LONGEST_NAME = 200  # bytes


class Handler:
    """A function that takes the question, or nothing, and returns the answer. Its annotations are resolved once."""

    def __init__(self, name: str, function: Callable[..., Any], names: dict[str, Any], *, may_wait: bool) -> None:
        if not name.strip() or len(name.encode()) > _LONGEST_NAME:
            raise InvalidRequest(f"an update's name must have 1 to {_LONGEST_NAME} bytes, and not be blank: {name!r}")
        self.name = name
        self.function = function
        self.is_async = inspect.iscoroutinefunction(function)
        if self.is_async and not may_wait:
            raise InvalidRequest(f"the update {name!r}: the handler of a plain workflow is a plain function, too")
        parameters = list(inspect.signature(function).parameters.values())
        if len(parameters) > 1:
            raise InvalidRequest(f"the update {name!r}: its handler takes the question, or nothing")
        what = f"the update {name!r}"
        hints = hints_of(function, what, names)
        self._question: Codec | None = None
        if parameters:
            self._question = codec_for(hints.get(parameters[0].name, Any), what, names)
            self._has_default = parameters[0].default is not inspect.Parameter.empty
        self._answer = codec_for(hints.get("return", Any), what, names)

    def call(self, question: Any) -> Any:
        """What the function returns, or the coroutine that it is."""
        if self._question is None or (question is None and self._has_default):
            return self.function()
        try:
            return self.function(self._question.decode(question))
        except Mismatch as mismatch:
            raise InvalidInput(f"the update {self.name!r}: {mismatch}") from None

    def encode(self, answer: Any) -> dict[str, Any]:
        """The answer as it is published."""
        if answer is None:
            return {}
        try:
            return {"result": self._answer.encode(answer)}
        except Mismatch as mismatch:
            raise InvalidInput(f"the answer to the update {self.name!r}: {mismatch}") from None


class Updates:
    """The handlers of one run. Updates are answered one after the other, in the order in which they came."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._handlers: dict[str, Handler] = {}
        self._came: deque[tuple[Handler, Any]] = deque()
        self.is_answering = False

    def add(self, name: str, function: Callable[..., Any], names: dict[str, Any], *, may_wait: bool) -> None:
        """From now on the function answers updates of that name, those that came earlier too."""
        self._run.history.check_usable()
        if name in self._handlers:
            raise InvalidRequest(f"the update {name!r} has a handler already")
        handler = self._handlers[name] = Handler(name, function, names, may_wait=may_wait)
        if self._run.thread is not None:
            self._run.thread.may_be_interrupted = True
        self._wait_for_next(handler)

    def _wait_for_next(self, handler: Handler) -> None:
        signal = SIGNAL + handler.name
        self._run.history.ask(
            "wait_signal", signal, {"name": signal}, waiter=lambda event: self._take(handler, event.get("value"))
        )

    def _take(self, handler: Handler, update: Any) -> None:
        if self._run.thread is not None:
            self._run.thread.interrupt(lambda: self._answer_on_thread(handler, update))
            return
        self._came.append((handler, update))
        if not self.is_answering:
            self.is_answering = True
            self._run.loop.create_task(self._answer_all())

    async def _answer_all(self) -> None:
        while self._came:
            handler, update = self._came.popleft()
            try:
                await self._answer(handler, update)
            except Stuck as error:
                self._run.history.stuck = self._run.history.stuck or error
                return
        self.is_answering = False

    async def _answer(self, handler: Handler, update: Any) -> None:
        if is_update(update):
            try:
                result = handler.call(update.get("payload"))
                answer = handler.encode(await result if handler.is_async else result)
            except Stuck:
                raise
            except asyncio.CancelledError as error:
                if self._run.history.dropped:
                    raise
                answer = refusal(error)
            except (Exception, ContinueAsNew) as error:
                answer = refusal(error)
            self._publish(update["request_key"], answer)
        self._wait_for_next(handler)

    def _answer_on_thread(self, handler: Handler, update: Any) -> None:
        """For a plain workflow."""
        self.is_answering = True
        if is_update(update):
            try:
                answer = handler.encode(handler.call(update.get("payload")))
            except Stuck:
                raise
            except (Exception, ContinueAsNew) as error:
                answer = refusal(error)
            self._publish(update["request_key"], answer)
        self.is_answering = False
        self._wait_for_next(handler)

    def _publish(self, request_key: str, answer: dict[str, Any]) -> None:
        name = ANSWER + request_key
        self._run.history.ask("publish", name, {"name": name, "value": answer})


def is_update(value: Any) -> bool:
    """Whether the signal has what an update has: no other one can be answered."""
    key = value.get("request_key") if isinstance(value, dict) else None
    return isinstance(key, str) and bool(key)


def refusal(error: BaseException) -> dict[str, Any]:
    """The answer for a handler that raised."""
    if isinstance(error, ContinueAsNew):
        message = "the handler of an update cannot continue as new; let the workflow's own code do it"
        return {"error": {"type": "InvalidRequest", "message": message}}
    return {"error": {"type": type(error).__name__, "message": str(error)}}
