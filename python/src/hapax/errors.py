"""What can go wrong, as one closed family.

`Error` is what a call of the library raises; its subclasses are the answers that programs handle. `ExecutionError` is
how a task or workflow ended, raised by `handle.result()`. The exceptions that handlers raise to say something to the
engine, such as `FinalError` and `RetryLater`, are at the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hapax._version import __version__
from hapax.durations import Duration, to_seconds

if TYPE_CHECKING:
    from collections.abc import Mapping


class Error(Exception):
    """The server, the store or this library refused a call.

    `code` is the API's word for it (`IdempotencyConflict`), `message` a sentence, and `body` the API's whole answer.
    `safe_to_retry` says that the same call may be made again, and cannot happen twice.
    """

    default_code = "Error"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        safe_to_retry: bool = False,
        body: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code or self.default_code
        self.message = message
        self.safe_to_retry = safe_to_retry
        self.body: Mapping[str, Any] = body or {}

    def __str__(self) -> str:
        return self.message if self.code == type(self).__name__ else f"{self.code}: {self.message}"


class InvalidRequest(Error):
    """The request is wrong; nothing was changed. `pointer` is the JSON Pointer of the wrong member, if there is one."""

    default_code = "InvalidRequest"

    @property
    def pointer(self) -> str | None:
        """The JSON Pointer of the wrong member."""
        return self.body.get("pointer")


class InvalidInput(InvalidRequest):
    """A value does not fit its annotation: an argument, a result, or the input that a handler got."""

    default_code = "InvalidInput"


class UnsupportedAnnotation(Error, TypeError):
    """A parameter or result is annotated with a type that has no JSON form. Raised at decoration."""

    default_code = "UnsupportedAnnotation"


class NotFound(Error):
    """There is no such task, workflow, activity or identity."""

    default_code = "NotFound"


class Unauthorized(Error):
    """The server wants another token, or the token does not allow this call."""

    default_code = "Unauthorized"


class IdempotencyConflict(Error):
    """The key is in use for another type or input; or the request key for another operation."""

    default_code = "IdempotencyConflict"

    @property
    def existing_id(self) -> str | None:
        """The execution that has the key."""
        return self.body.get("existing_execution_id")

    @property
    def input_hash(self) -> str | None:
        """The hash of the input that was refused."""
        return self.body.get("input_hash")

    @property
    def existing_input_hash(self) -> str | None:
        """The hash of the input that the key was used with."""
        return self.body.get("existing_input_hash")


class TaskAlreadyExists(Error):
    """With `on_duplicate="error"`: the key has a task, which is not completed."""

    default_code = "TaskAlreadyExists"

    @property
    def existing_id(self) -> str | None:
        """The execution that has the key."""
        return self.body.get("existing_execution_id")

    @property
    def status(self) -> str | None:
        """Its status."""
        return self.body.get("status")


class TaskAlreadyCompleted(TaskAlreadyExists):
    """With `on_duplicate="error"`: the key has a completed task, with its `result`."""

    default_code = "TaskAlreadyCompleted"

    @property
    def result(self) -> Any:
        """Its result, as JSON."""
        return self.body.get("result")

    @property
    def completed_at(self) -> str | None:
        """When it was completed, as RFC 3339."""
        return self.body.get("completed_at")


class WorkflowAlreadyExists(TaskAlreadyExists):
    """The workflow id has a workflow, which is not completed."""

    default_code = "WorkflowAlreadyExists"


class WorkflowAlreadyCompleted(TaskAlreadyCompleted):
    """With `on_duplicate="error"`: the workflow id has a completed workflow."""

    default_code = "WorkflowAlreadyCompleted"


class RequestInProgress(Error):
    """Another call under this request key is still running."""

    default_code = "RequestInProgress"


class RequestFailedBefore(Error):
    """The operation under this request key failed before; `earlier` is that failure."""

    default_code = "RequestFailedBefore"

    @property
    def earlier(self) -> Mapping[str, Any]:
        """The error that the operation ended with."""
        earlier: Mapping[str, Any] = self.body.get("earlier") or {}
        return earlier


class UpdateRefused(Error):
    """The workflow's handler of this update raised: `type` is the class of that exception, `message` its text. It is
    the answer for good."""

    default_code = "UpdateRefused"

    @property
    def type(self) -> str | None:
        """The class of what the handler raised."""
        return self.body.get("type")


class LeaseLost(Error):
    """Another worker has this task by now, or it is closed. What this worker does for it no longer counts."""

    default_code = "LeaseLost"


class StoreUnavailable(Error):
    """The store or the server does not answer. The same call may be made again, `retry_after` seconds later."""

    default_code = "StoreUnavailable"

    @property
    def retry_after(self) -> float:
        """After how many seconds to try again."""
        return float(self.body.get("retry_after", 1))


class Timeout(Error, TimeoutError):
    """A wait came to its end before the task or workflow did. It goes on; wait again."""

    default_code = "Timeout"


class ForkError(Error):
    """The app was opened before `fork()`: its threads and connections belong to the parent process."""

    default_code = "ForkError"


class OldServer(Error):
    """The server does not have what this call needs: it is older than this package."""

    default_code = "OldServer"


class NativeMissing(Error):
    """This URL needs the engine inside the process, which this installation does not have."""

    default_code = "NativeMissing"


class BatchError(Error):
    """Some submissions of `submit_many` were refused. `outcomes` has a handle or an `Error` for each, in order."""

    default_code = "BatchError"

    def __init__(self, outcomes: list[Any]) -> None:
        refused = [outcome for outcome in outcomes if isinstance(outcome, Error)]
        super().__init__(f"{len(refused)} of {len(outcomes)} submissions were refused; the first: {refused[0]}")
        self.outcomes = outcomes


_BY_CODE: dict[str, type[Error]] = {
    cls.default_code: cls
    for cls in (
        InvalidRequest,
        InvalidInput,
        IdempotencyConflict,
        TaskAlreadyExists,
        TaskAlreadyCompleted,
        WorkflowAlreadyExists,
        WorkflowAlreadyCompleted,
        RequestInProgress,
        RequestFailedBefore,
        UpdateRefused,
        LeaseLost,
        StoreUnavailable,
    )
}
_NO_ROUTE = {"RouteNotFound", "MethodNotAllowed"}
_SAFE_TO_RETRY = {"StoreUnavailable", "ShuttingDown", "Overloaded", "OutcomeUnknown", "RequestInProgress"}


def error_from(status: int, body: Any, retry_after: str | None = None) -> Error:
    """The exception for an error answer of the API."""
    members: dict[str, Any] = body if isinstance(body, dict) else {}
    code = members.get("error") or f"Http{status}"
    message = members.get("message") or f"the server answered with status {status}"
    if retry_after is not None:
        members = {**members, "retry_after": float(retry_after)}
    found = _BY_CODE.get(code)
    if code in _NO_ROUTE:
        found = OldServer
        message += f" If the path is right, the server is older than hapax {__version__} for Python: upgrade it first."
    elif found is None:
        if status == 503:
            found = StoreUnavailable
        elif status in (401, 403):
            found = Unauthorized
        elif status == 404:
            found = NotFound
        elif status in (400, 413, 415, 421):
            found = InvalidRequest
        else:
            found = Error
    return found(message, code=code, safe_to_retry=code in _SAFE_TO_RETRY, body=members)


class ExecutionError(Exception):
    """How a task or workflow ended without a result.

    `execution` is the execution as the API shows it; `type` and `message` are those of its last error.
    """

    def __init__(self, message: str = "", *, execution: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.execution: Mapping[str, Any] = execution or {}

    @property
    def error(self) -> Mapping[str, Any]:
        """The last error: `type`, `message`, and `stack` and `details` if they were given."""
        error: Mapping[str, Any] = self.execution.get("error") or {}
        return error

    @property
    def type(self) -> str | None:
        """The type of the last error, often the class of an exception."""
        return self.error.get("type")


class TaskFailed(ExecutionError):
    """The task failed for good."""


class TaskCancelled(ExecutionError):
    """The task was cancelled."""


class TaskTimedOut(ExecutionError):
    """The task ran out of time."""


class WorkflowFailed(TaskFailed):
    """The workflow failed. Raise it in a workflow to fail it with a message of yours."""


class WorkflowCancelled(TaskCancelled):
    """The workflow was cancelled."""


class WorkflowTimedOut(TaskTimedOut):
    """The workflow ran out of time."""


def ended(execution: Mapping[str, Any]) -> ExecutionError:
    """The exception for a closed execution that is not completed."""
    workflow = execution.get("kind") == "workflow"
    status = execution["status"]
    error = execution.get("error") or {}
    name = execution.get("workflow_id") if workflow else execution.get("id")
    what = error.get("message") or f"it was {status.replace('_', ' ')}"
    kinds: dict[str, type[ExecutionError]] = {
        "failed": WorkflowFailed if workflow else TaskFailed,
        "cancelled": WorkflowCancelled if workflow else TaskCancelled,
        "timed_out": WorkflowTimedOut if workflow else TaskTimedOut,
    }
    kind = f"{error['type']}: " if error.get("type") else ""
    return kinds[status](f"{execution.get('type')} {name}: {kind}{what}", execution=execution)


class FinalError(Exception):
    """Raised by a handler: the task fails now and is not tried again. `details` is any JSON value to keep with it."""

    def __init__(self, message: str = "", *, details: Any = None) -> None:
        super().__init__(message)
        self.details = details


class RetryLater(Exception):
    """Raised by a handler: the attempt has failed; try again after this time."""

    def __init__(self, message: str = "try again later", *, after: Duration) -> None:
        super().__init__(message)
        self.after_s = to_seconds(after)


class Snooze(Exception):
    """Raised by a handler: there is nothing to do yet; run it again after this time. It costs no attempt."""

    def __init__(self, *, after: Duration) -> None:
        super().__init__(f"again after {after}")
        self.after_s = to_seconds(after)


class StepFailed(Exception):
    """A step of a workflow ended without a result. `status` is `failed`, `cancelled` or `timed_out`."""

    def __init__(self, what: str, status: str, error: Mapping[str, Any] | None = None) -> None:
        self.error: Mapping[str, Any] = error or {}
        super().__init__(f"{what} {status}: {self.error.get('message')}" if error else f"{what} {status}")
        self.status = status

    @property
    def type(self) -> str | None:
        """The type of its error, often the class of an exception; None if it was cancelled or timed out."""
        return self.error.get("type")
