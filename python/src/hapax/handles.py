"""Handles: what a program holds of a task or workflow that it has submitted."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, overload

from hapax.calls import path
from hapax.codec import dump_json
from hapax.codec.build import ANY
from hapax.durations import Duration, to_seconds, to_wire
from hapax.errors import Timeout, ended
from hapax.transport import sync

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hapax.calls import Calls
    from hapax.receipt import Receipt

R = TypeVar("R", covariant=True)
T = TypeVar("T")

CLOSED = ("completed", "failed", "cancelled", "timed_out")
_LONGEST_WAIT_S = 30.0


def _decode_answer(name: str, type: Any, answer: Any) -> Any:
    from hapax.codec import Mismatch, codec_of
    from hapax.signature import invalid

    try:
        return None if answer is None else codec_of(type).decode(answer)
    except Mismatch as mismatch:
        raise invalid(f"the answer to the update {name!r}", mismatch) from None


def key_header(key: str | None, headers: Mapping[str, str] | None = None) -> dict[str, str]:
    """The headers of a control operation. A structured string keeps every character of the key."""
    out = dict(headers or {})
    if key is not None:
        escaped = key.replace("\\", "\\\\").replace('"', '\\"')
        plain = all(" " <= character <= "~" for character in key)
        out["idempotency-key"] = f'"{escaped}"' if plain else key
    return out


class Handle(Generic[R]):
    """A task: its id, its receipt, and its result once it has one."""

    _kind = "task"

    def __init__(
        self,
        calls: Calls,
        execution_id: str,
        decode: Callable[[Any], R],
        receipt: Receipt | None = None,
    ) -> None:
        self._calls = calls
        self._decode = decode
        self._receipt = receipt
        self.id = execution_id

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}>"

    @property
    def receipt(self) -> Receipt:
        """What the submission was answered with. A handle made from an id alone has none."""
        if self._receipt is None:
            raise AttributeError("this handle was made from an id, without submitting anything")
        return self._receipt

    @property
    def created(self) -> bool:
        """Whether this submission created the task, rather than finding it."""
        return self.receipt.created

    def _path(self, *more: str) -> str:
        return path("tasks", self.id, *more)

    async def result(self, timeout: Duration | None = None) -> R:
        """Waits for the result.

        Raises `TaskFailed`, `TaskCancelled` or `TaskTimedOut` if it ended without one, and `hapax.Timeout` if it has
        not ended after `timeout`.
        """
        receipt = self._receipt
        if receipt is not None and receipt.has_result:
            return self._decode(receipt.execution.get("result"))
        ends = None if timeout is None else time.monotonic() + to_seconds(timeout)
        while True:
            left = _LONGEST_WAIT_S if ends is None else max(0.0, min(_LONGEST_WAIT_S, ends - time.monotonic()))
            target = self._path("result") + f"?wait={to_wire(round(left, 3))}"
            answer = await self._calls.call("GET", target, wait_s=left)
            if answer.status == 200:
                return self._result_of(answer.json)
            if ends is not None and time.monotonic() >= ends:
                raise Timeout(f"{self!r} has not ended within {timeout}; it goes on")

    def _result_of(self, body: Mapping[str, Any]) -> R:
        if body["status"] != "completed":
            raise ended(body.get("execution") or body)
        return self._decode(body.get("result"))

    def wait(self, timeout: Duration | None = None) -> R:
        """As `result`, for code without an event loop. Ctrl-C ends the wait."""
        return sync(self.result(timeout))

    async def execution(self) -> Mapping[str, Any]:
        """The execution as it is now, as the API shows it."""
        answer: Mapping[str, Any] = (await self._calls.call("GET", self._path())).json
        return answer

    async def status(self) -> str:
        """`pending`, `running`, `suspended`, `completed`, `failed`, `cancelled` or `timed_out`."""
        status: str = (await self.execution())["status"]
        return status

    async def why(self) -> Mapping[str, Any]:
        """Why it does not run: `state`, `sentences`, and `because` with a code for each reason."""
        answer: Mapping[str, Any] = (await self._calls.call("GET", self._path("why"))).json
        return answer

    async def _control(self, operation: tuple[str, ...], key: str, body: Any = None) -> Mapping[str, Any]:
        answer = await self._calls.call("POST", self._path(*operation), body, headers=key_header(key))
        answered: Mapping[str, Any] = answer.json
        return answered

    async def cancel(self, *, request_key: str) -> Mapping[str, Any]:
        """Cancels it, once per request key. A running handler hears of it and has a grace to stop."""
        return await self._control(("cancel",), request_key)

    async def retry(self, *, request_key: str) -> Mapping[str, Any]:
        """Gives a failed, cancelled or timed-out task new attempts, once per request key."""
        return await self._control(("retry",), request_key)


class WorkflowHandle(Handle[R]):
    """A workflow, by its workflow id. If it continues as new, the handle follows."""

    _kind = "workflow"

    def __init__(
        self,
        calls: Calls,
        workflow_id: str,
        decode: Callable[[Any], R],
        receipt: Receipt | None = None,
    ) -> None:
        super().__init__(calls, receipt.id if receipt else "", decode, receipt)
        self.workflow_id = workflow_id

    def __repr__(self) -> str:
        return f"<WorkflowHandle {self.workflow_id}>"

    def _path(self, *more: str) -> str:
        return path("workflows", self.workflow_id, *more)

    async def signal(self, name: str, payload: Any = None, *, request_key: str) -> Mapping[str, Any]:
        """Delivers a signal, once per request key. It waits if the workflow does not wait for it yet."""
        body = {} if payload is None else {"payload": ANY.encode(payload)}
        return await self._control(("signals", name), request_key, body)

    async def cancel(
        self,
        *,
        request_key: str,
        mode: Literal["now", "request"] = "now",
        reason: Any = None,
        grace: Duration | None = None,
    ) -> Mapping[str, Any]:
        """Cancels it, once per request key: at once, with its open steps and children.

        With `mode="request"` its code is asked to end instead: it gets a CancelledError before its next step, or where
        it waits for something else than tasks, and may answer with compensation. `reason` is any JSON value for it to
        read; after `grace` it is closed in any case.
        """
        if mode == "now" and reason is None and grace is None:
            return await self._control(("cancel",), request_key)
        body: dict[str, Any] = {"mode": mode}
        if reason is not None:
            body["reason"] = ANY.encode(reason)
        if grace is not None:
            body["grace"] = to_wire(grace)
        return await self._control(("cancel",), request_key, body)

    @overload
    async def update(
        self, name: str, payload: Any = None, *, request_key: str, timeout: Duration | None = None
    ) -> Any: ...
    @overload
    async def update(
        self, name: str, payload: Any, type: type[T], *, request_key: str, timeout: Duration | None = None
    ) -> T: ...
    async def update(
        self, name: str, payload: Any = None, type: Any = Any, *, request_key: str, timeout: Duration | None = None
    ) -> Any:
        """A signal with an answer, once per request key: what the workflow's handler of that name (`ctx.on`) returns,
        as `type`.

        Said again under its key it gets the same answer. Raises `UpdateRefused` if the handler raised, `hapax.Timeout`
        if there is no answer after `timeout`, and `hapax.Error` with the code `WorkflowClosed` if there will be none.
        """
        body = {} if payload is None else {"payload": ANY.encode(payload)}
        ends = None if timeout is None else time.monotonic() + to_seconds(timeout)
        while True:
            left = _LONGEST_WAIT_S if ends is None else max(0.0, min(_LONGEST_WAIT_S, ends - time.monotonic()))
            target = self._path("updates", name) + f"?wait={to_wire(round(left, 3))}"
            answer = await self._calls.call("POST", target, body, headers=key_header(request_key), wait_s=left)
            if answer.status == 200:
                return _decode_answer(name, type, answer.json.get("result"))
            if ends is not None and time.monotonic() >= ends:
                raise Timeout(f"{self!r} has not answered within {timeout}; ask again under the same key")

    async def values(self) -> Mapping[str, Any]:
        """The values that the workflow has published, by name."""
        values: Mapping[str, Any] = (await self._calls.call("GET", self._path("values"))).json["values"]
        return values

    async def history(self) -> list[Mapping[str, Any]]:
        """The events of the latest run."""
        return await self._history("")

    async def _history(self, run: str) -> list[Mapping[str, Any]]:
        events: list[Mapping[str, Any]] = []
        after: int | None = 0
        while after is not None:
            page = (await self._calls.call("GET", self._path("history") + f"?{run}after={after}")).json
            events += page["events"]
            after = page["next_after"]
        return events

    async def export(self) -> str:
        """The history of the latest run with its type and input, for `hapax.testing.replay`: what `hapax history
        --export` writes."""
        run = await self.execution()
        return dump_json(
            {
                "workflow_id": self.workflow_id,
                "execution_id": run["id"],
                "type": run["type"],
                "status": run["status"],
                "input": dump_json(run.get("input")).decode(),
                "created_at": run["created_at"],
                "events": await self._history(f"run={run['id']}&"),
            }
        ).decode()

    async def resume(self, *, request_key: str) -> Mapping[str, Any]:
        """Lets a failed, cancelled or timed-out workflow go on from its last completed step, once per request key."""
        return await self._control(("resume",), request_key)

    async def fork(
        self, *, request_key: str, from_step: int | None = None, workflow_id: str | None = None
    ) -> Mapping[str, Any]:
        """Starts a new workflow with what this one had before `from_step`, once per request key."""
        body: dict[str, Any] = {}
        if from_step is not None:
            body["from_step"] = from_step
        if workflow_id is not None:
            body["workflow_id"] = workflow_id
        return await self._control(("fork",), request_key, body)

    async def retry(self, *, request_key: str) -> Mapping[str, Any]:
        """A workflow is resumed, not retried."""
        return await self.resume(request_key=request_key)
