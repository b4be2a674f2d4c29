"""Tasks and workflows: functions that an app knows by name."""

from __future__ import annotations

import copy
import inspect
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from hapax.ids import new_id
from hapax.options import Deadline, Identity, OnDuplicate, Retry, Reuse, SubmitOptions, TypeOptions
from hapax.receipt import Explanation
from hapax.signature import Signature, has_input
from hapax.transport import sync

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from typing_extensions import Self

    from hapax.app import Hapax
    from hapax.durations import Duration
    from hapax.handles import Handle, WorkflowHandle

P = ParamSpec("P")
R = TypeVar("R")


class Call(Generic[R]):
    """A submission that has not been made: a task with its options and its input."""

    def __init__(self, app: Hapax, request: dict[str, Any], decode: Callable[[Any], R]) -> None:
        self._app = app
        self.request = request
        self.decode = decode

    async def submit(self) -> Handle[R]:
        """Makes it."""
        return await self._app._submit(self)


class Task(Generic[P, R]):
    """A function that runs as a task. `@app.task` makes it; calling it runs the function here and now."""

    def __init__(
        self,
        app: Hapax,
        function: Callable[..., Any],
        name: str,
        signature: Signature,
        declared: TypeOptions,
        aliases: Sequence[str] = (),
        *,
        cpu: bool = False,
    ) -> None:
        self._app = app
        self.function = function
        self.name = name
        self.signature = signature
        self.declared = declared
        self.aliases = tuple(aliases)
        self.cpu = cpu
        self.is_async = inspect.iscoroutinefunction(function)
        self._options = SubmitOptions()
        self.__doc__ = function.__doc__
        self.__name__ = getattr(function, "__name__", name)
        self.__wrapped__ = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<Task {self.name}>"

    @property
    def queue(self) -> str:
        """Where the tasks of this type wait, as far as the code says."""
        return self.declared.queue or "default"

    def options(
        self,
        *,
        key: str | None = None,
        scope: str | None = None,
        identity: Identity | None = None,
        identity_fields: Sequence[str] | None = None,
        reuse: Reuse | None = None,
        on_duplicate: OnDuplicate | None = None,
        idempotency_ttl: Duration | None = None,
        queue: str | None = None,
        priority: int | None = None,
        run_at: datetime | None = None,
        delay: Duration | None = None,
        retry: Retry | None = None,
        timeout: Duration | None = None,
        deadline: Deadline | None = None,
        concurrency_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        tags: Sequence[str] | None = None,
        id: str | None = None,
    ) -> Self:
        """The same task with options for its next submissions.

        - `key` is your name for the intent: the same key, within `scope`, is the same task. `idempotency_ttl` is how
          long it counts.
        - `identity` says which submissions without a key are the same: `"strict"` those of the same input,
          `"contextual"` those of the same `identity_fields` (JSON Pointers), `"always_unique"` none.
        - `reuse` says when a submission creates a new task in place of the one it finds: if that failed, was cancelled
          or timed out (`"allow_failed"`, the default), never (`"reject"`), if it is closed (`"allow_closed"`), always
          (`"replace"`, which cancels an open one). Otherwise it is a duplicate, and gets the task that is there;
          `on_duplicate="error"` raises `TaskAlreadyExists` or `TaskAlreadyCompleted` instead.
        - `queue`, `priority` (-1000 to 1000, higher is first), `run_at` or `delay`, and `concurrency_key` say where and
          when it runs; `retry`, `timeout` (of an attempt) and `deadline` (of all) how often and how long.
        - `headers` and `tags` travel with it. `id` is the id of the submission, drawn here if you give none.
        """
        other = copy.copy(self)
        other._options = self._options.merged(
            key=key,
            scope=scope,
            identity=identity,
            identity_fields=identity_fields,
            reuse=reuse,
            on_duplicate=on_duplicate,
            idempotency_ttl=idempotency_ttl,
            queue=queue,
            priority=priority,
            run_at=run_at,
            delay=delay,
            retry=retry,
            timeout=timeout,
            deadline=deadline,
            concurrency_key=concurrency_key,
            headers=headers,
            tags=tags,
            id=id,
        )
        return other

    def request(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The body of a submission with these arguments, without an id."""
        request = {"type": self.name, **self._options.to_wire()}
        value = self.signature.encode(args, kwargs)
        if has_input(value):
            request["input"] = value
        return request

    def of(self, *args: P.args, **kwargs: P.kwargs) -> Call[R]:
        """The submission as a value, for `app.submit_many` and `app.submit_in`."""
        request = self.request(args, kwargs)
        request.setdefault("id", new_id())
        return Call(self._app, request, self.signature.decode_result)

    async def submit(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Submits the task; a worker runs it. The handle has the receipt and waits for the result."""
        return await self._app._submit(self.of(*args, **kwargs))

    def submit_sync(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """As `submit`, for code without an event loop."""
        return sync(self._app._submit(self.of(*args, **kwargs)))

    async def explain(self, *args: P.args, **kwargs: P.kwargs) -> Explanation:
        """What this submission would be answered with, without making it."""
        return await self._app._explain(path_parts=("tasks",), request=self.of(*args, **kwargs).request)

    def handle(self, execution_id: str) -> Handle[R]:
        """A handle of a task of this type that was submitted elsewhere."""
        return self._app._handle(execution_id, self.signature.decode_result)


class Workflow(Generic[P, R]):
    """A durable function. `@app.workflow` makes it."""

    def __init__(
        self,
        app: Hapax,
        function: Callable[..., Any],
        name: str,
        signature: Signature,
        queue: str | None,
        aliases: Sequence[str] = (),
    ) -> None:
        self._app = app
        self.function = function
        self.name = name
        self.signature = signature
        self.aliases = tuple(aliases)
        self.is_async = inspect.iscoroutinefunction(function)
        self.declared_queue = queue
        self.child_id: str | None = None
        self._options = SubmitOptions(queue=queue)
        self.__doc__ = function.__doc__
        self.__name__ = getattr(function, "__name__", name)
        self.__wrapped__ = function

    def __repr__(self) -> str:
        return f"<Workflow {self.name}>"

    @property
    def queue(self) -> str:
        """Where the workflows of this type wait for a worker."""
        return self.declared_queue or "default"

    def options(
        self,
        *,
        reuse: Reuse | None = None,
        on_duplicate: OnDuplicate | None = None,
        idempotency_ttl: Duration | None = None,
        queue: str | None = None,
        priority: int | None = None,
        run_at: datetime | None = None,
        delay: Duration | None = None,
        timeout: Duration | None = None,
        deadline: Deadline | None = None,
        concurrency_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        tags: Sequence[str] | None = None,
        id: str | None = None,
        child_id: str | None = None,
    ) -> Self:
        """The same workflow with options for its next starts. `timeout` is that of one turn; `child_id` is the workflow
        id if another workflow runs it as a step."""
        other = copy.copy(self)
        other.child_id = child_id or self.child_id
        other._options = self._options.merged(
            reuse=reuse,
            on_duplicate=on_duplicate,
            idempotency_ttl=idempotency_ttl,
            queue=queue,
            priority=priority,
            run_at=run_at,
            delay=delay,
            timeout=timeout,
            deadline=deadline,
            concurrency_key=concurrency_key,
            headers=headers,
            tags=tags,
            id=id,
        )
        return other

    def request(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The body of a start with these arguments, without a workflow id."""
        request = {"type": self.name, **self._options.to_wire()}
        value = self.signature.encode(args, kwargs)
        if has_input(value):
            request["input"] = value
        return request

    def _start_request(self, workflow_id: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        request = {**self.request(args, kwargs), "workflow_id": workflow_id}
        request.setdefault("id", new_id())
        return request

    async def start(self, workflow_id: str, /, *args: P.args, **kwargs: P.kwargs) -> WorkflowHandle[R]:
        """Starts it, once per workflow id: a second start finds the first."""
        return await self._app._start(self._start_request(workflow_id, args, kwargs), self.signature.decode_result)

    def start_sync(self, workflow_id: str, /, *args: P.args, **kwargs: P.kwargs) -> WorkflowHandle[R]:
        """As `start`, for code without an event loop."""
        request = self._start_request(workflow_id, args, kwargs)
        return sync(self._app._start(request, self.signature.decode_result))

    async def explain(self, workflow_id: str, /, *args: P.args, **kwargs: P.kwargs) -> Explanation:
        """What this start would be answered with, without making it."""
        request = self._start_request(workflow_id, args, kwargs)
        return await self._app._explain(path_parts=("workflows",), request=request)

    def handle(self, workflow_id: str) -> WorkflowHandle[R]:
        """A handle of a workflow of this type that was started elsewhere."""
        return self._app._workflow_handle(workflow_id, self.signature.decode_result)
