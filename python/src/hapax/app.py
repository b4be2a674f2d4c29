"""The app: what a program opens, declares its functions with, and submits through."""

from __future__ import annotations

import atexit
import os
import weakref
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeVar, cast, overload
from urllib.parse import urlsplit

from hapax.calls import Calls, path
from hapax.codec.build import ANY
from hapax.context import TaskContext
from hapax.declaring import Declaring
from hapax.definitions import Call, Task, Workflow
from hapax.durations import Duration, to_seconds
from hapax.errors import BatchError, Error, ForkError, InvalidRequest, error_from
from hapax.handles import Handle, WorkflowHandle
from hapax.ids import new_id
from hapax.options import SubmitOptions
from hapax.receipt import Explanation, Receipt
from hapax.registry import Registry
from hapax.tracing import submitting
from hapax.transport import sync

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
    from types import TracebackType

    from typing_extensions import Self

    from hapax.here.leases import LeaseKeeper
    from hapax.sql.relay import RelayThread
    from hapax.tracing import Tracing
    from hapax.transport import Transport
    from hapax.worker import Worker

P = ParamSpec("P")
R = TypeVar("R")

_BATCH = 1000


class Hapax(Declaring):
    """A durable queue and workflow engine.

    `url` says where it lives: `sqlite:orders.db`, `memory:`, `postgres://…` and `s3://…` run within this process,
    `http(s)://…` is a `hapax serve`. Without one it is `$HAPAX_URL`, else `sqlite:hapax.db`. Nothing is opened and no
    thread is started before the first call.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        namespace: str | None = None,
        transport: Transport | None = None,
    ) -> None:
        self.url = url or os.environ.get("HAPAX_URL") or "sqlite:hapax.db"
        self._token = token or os.environ.get("HAPAX_TOKEN")
        self.namespace = namespace or os.environ.get("HAPAX_NAMESPACE")
        self._transport = transport
        self._has_own_transport = transport is not None
        self._pid = os.getpid() if transport is not None else 0
        self.registry = Registry()
        self.calls = Calls(self._open)
        self._keeper: LeaseKeeper | None = None
        self.tracing: Tracing | None = None
        _check_url(self.url)

    def __repr__(self) -> str:
        return f"<Hapax {self.url}>"

    # Opening and closing

    def _open(self) -> Transport:
        if self._transport is None:
            from hapax.transport.open import open_transport

            self._transport = open_transport(self.url, self._token, self.namespace)
            self._pid = os.getpid()
            _close_at_exit(self)
        elif self._pid != os.getpid():
            raise ForkError(
                "this app was opened before fork(), so its connections and threads belong to the parent process. "
                "Open it after the fork: with gunicorn call app.after_fork() in the post_fork hook, with "
                "multiprocessing at the start of the child, or use the start method 'spawn'"
            )
        return self._transport

    def _leases(self) -> LeaseKeeper:
        if self._keeper is None:
            from hapax.here.leases import LeaseKeeper

            self._keeper = LeaseKeeper(self.calls)
        return self._keeper

    def _open_for_worker(self) -> Transport | None:
        """A transport that only a worker uses, if there is a better one than the app's."""
        from hapax.transport.http import HttpTransport
        from hapax.transport.open import open_for_worker

        if self._has_own_transport or not isinstance(self._open(), HttpTransport):
            return None
        return open_for_worker(self.url, self._token, self.namespace)

    def after_fork(self) -> None:
        """In a child process: forgets what the parent opened, without touching it. The next call opens anew."""
        if self._pid != os.getpid():
            self._transport = None
            self._keeper = None

    def close(self) -> None:
        """Ends connections and threads. The app can be used again, and then opens anew."""
        keeper, self._keeper = self._keeper, None
        if keeper is not None and self._pid == os.getpid():
            keeper.close()
        transport, self._transport = self._transport, None
        if transport is not None and self._pid == os.getpid():
            transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Submitting

    async def send_event(
        self, type: str, data: Any = None, *, source: str, id: str | None = None, subject: str | None = None
    ) -> Mapping[str, Any]:
        """Sends a CloudEvent. The same `id` again starts nothing. The answer says what was started."""
        event: dict[str, Any] = {"specversion": "1.0", "type": type, "source": source, "id": id or new_id()}
        if subject is not None:
            event["subject"] = subject
        if data is not None:
            event["data"] = ANY.encode(data)
        headers = {"content-type": "application/cloudevents+json"}
        answer: Mapping[str, Any] = (await self.call("POST", "/v1/events", event, headers=headers))["events"][0]
        return answer

    async def call(self, method: str, target: str, body: Any = None, **options: Any) -> Any:
        """Any call of the HTTP API, as `("GET", "/v1/queues")`; the JSON of its answer."""
        await self.registry.tell_all(self.calls)
        return (await self.calls.call(method, target, body, **options)).json

    async def _submit(self, call: Call[R]) -> Handle[R]:
        await self.registry.tell_all(self.calls)
        with submitting(self, call.request["type"], call.request.get("queue")) as traced:
            answer = await self.calls.call("POST", "/v1/tasks", traced.carried(call.request))
            receipt = Receipt.from_wire(answer.json)
            traced.answered(receipt.id, receipt.created)
        return Handle(self.calls, receipt.id, call.decode, receipt)

    async def _start(self, request: dict[str, Any], decode: Callable[[Any], R]) -> WorkflowHandle[R]:
        await self.registry.tell_all(self.calls)
        with submitting(self, request["type"], request.get("queue")) as traced:
            answer = await self.calls.call("POST", "/v1/workflows", traced.carried(request))
            receipt = Receipt.from_wire(answer.json)
            traced.answered(receipt.id, receipt.created)
        return WorkflowHandle(self.calls, request["workflow_id"], decode, receipt)

    async def _explain(self, path_parts: tuple[str, ...], request: dict[str, Any]) -> Explanation:
        await self.registry.tell_all(self.calls)
        try:
            answer = await self.calls.call("POST", path(*path_parts), {**request, "dry_run": True})
        except Error as error:
            if error.safe_to_retry:
                raise
            return Explanation(None, error)
        return Explanation(Receipt.from_wire(answer.json), None)

    @overload
    async def submit_many(self, calls: Iterable[Call[R]]) -> list[Handle[R]]: ...
    @overload
    async def submit_many(self, calls: Iterable[Call[R]], *, return_errors: bool) -> list[Handle[R] | Error]: ...
    async def submit_many(self, calls: Iterable[Call[R]], *, return_errors: bool = False) -> Any:
        """Submits many at once, up to 1,000 in a request, each with its own outcome, in order.

        If some are refused it raises `BatchError`, which has all outcomes; with `return_errors=True` it returns them.
        """
        await self.registry.tell_all(self.calls)
        waiting = list(calls)
        outcomes: list[Handle[R] | Error] = []
        for start in range(0, len(waiting), _BATCH):
            batch = waiting[start : start + _BATCH]
            with submitting(self, f"{len(batch)} tasks") as traced:
                body = {"tasks": [traced.carried(call.request) for call in batch]}
                answer = await self.calls.call("POST", "/v1/tasks/batch", body)
            for call, receipt in zip(batch, answer.json["receipts"]):
                if "error" in receipt:
                    outcomes.append(error_from(409, receipt))
                else:
                    made = Receipt.from_wire(receipt)
                    outcomes.append(Handle(self.calls, made.id, call.decode, made))
        if not return_errors and any(isinstance(outcome, Error) for outcome in outcomes):
            raise BatchError(outcomes)
        return outcomes

    async def submit(
        self,
        type: str,
        input: Any = None,
        *,
        idempotency_key: str | None = None,
        idempotency_ttl_days: float | None = None,
        options: SubmitOptions | None = None,
    ) -> Handle[Any]:
        """Submits a task of any type by its name, with any JSON value as its input."""
        chosen = (options or SubmitOptions()).merged(
            key=idempotency_key,
            idempotency_ttl=None if idempotency_ttl_days is None else idempotency_ttl_days * 86_400,
        )
        request = {"type": type, "id": new_id(), **chosen.to_wire()}
        if input is not None:
            request["input"] = ANY.encode(input)
        return await self._submit(Call(self, request, ANY.decode))

    async def submit_in(self, connection: Any, call: Call[R]) -> Handle[R]:
        """Submits inside your own transaction: the task exists if and only if you commit.

        It writes a row of the table `hapax_outbox` (`hapax outbox --sql postgres` prints it) through your connection of
        sqlite3, psycopg 3, asyncpg, SQLAlchemy or Django, and a relay submits it: `app.relay()`, or `hapax-worker
        --relay`. The handle's id is good after the commit. With a synchronous driver `hapax.sync(app.submit_in(…))`
        works without an event loop.
        """
        from hapax.sql.outbox import submit_in

        return await submit_in(self, connection, call)

    async def start_in(
        self, connection: Any, workflow: Workflow[P, R], workflow_id: str, /, *args: P.args, **kwargs: P.kwargs
    ) -> WorkflowHandle[R]:
        """Starts a workflow inside your own transaction, as `submit_in` submits a task."""
        from hapax.sql.outbox import start_in

        return await start_in(self, connection, workflow, workflow_id, args, kwargs)

    def relay(self, *, every: Duration = "200ms") -> RelayThread:
        """Moves what the declared outboxes have to the engine, on a thread: `with app.relay(): ...`.

        Any number of processes may do so at once. `every` is how often an empty outbox is looked at.
        """
        from hapax.sql.relay import RelayThread

        if not self.registry.outboxes:
            raise InvalidRequest("this app has no outbox; declare a function that connects to it with @app.outbox")
        return RelayThread(self, self.registry.outboxes, to_seconds(every))

    @overload
    async def once(self, key: str, function: Task[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    async def once(
        self,
        key: str,
        function: Callable[Concatenate[TaskContext, P], Awaitable[R]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> R: ...
    @overload
    async def once(self, key: str, function: Callable[P, Awaitable[R]], /, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    async def once(
        self, key: str, function: Callable[Concatenate[TaskContext, P], R], /, *args: P.args, **kwargs: P.kwargs
    ) -> R: ...
    @overload
    async def once(self, key: str, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R: ...
    async def once(self, key: str, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Runs `function` here, once for its key, and returns its result; later calls get that result.

        Of callers at the same time, in any process, one runs it and the others wait for the result. If it raises, its
        caller gets the exception, and the next call runs it again, under the same `hapax.current().effect_key`; after
        a `FinalError` the next call begins anew. If its process dies, another call runs it once the lease has run out
        (30 s). Other arguments under the same key raise `IdempotencyConflict`. An async function runs on this loop, a
        plain one on a thread. A task's `.options(…)` count.
        """
        from hapax.here.once import once

        return await once(self, key, function, args, kwargs)

    @overload
    def once_sync(self, key: str, function: Task[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    def once_sync(
        self, key: str, function: Callable[Concatenate[TaskContext, P], R], /, *args: P.args, **kwargs: P.kwargs
    ) -> R: ...
    @overload
    def once_sync(self, key: str, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R: ...
    def once_sync(self, key: str, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """As `once`, for code without an event loop; `function` is a plain one, and runs on this thread."""
        from hapax.here.once import once

        return sync(once(self, key, function, args, kwargs))

    async def enqueue(
        self, task: Task[..., R] | str, /, *args: Any, task_id: str | None = None, **kwargs: Any
    ) -> Handle[R]:
        """Submits a task with its arguments; `task_id` is its idempotency key."""
        if isinstance(task, str):
            named = self.registry.tasks.get(task)
            if named is None:
                return cast("Handle[R]", await self.submit(task, kwargs or None, idempotency_key=task_id))
            task = named
        return await task.options(key=task_id).submit(*args, **kwargs)

    async def start_workflow(
        self, workflow: Workflow[..., R], /, *args: Any, workflow_id: str, **kwargs: Any
    ) -> WorkflowHandle[R]:
        """Starts a workflow, once per `workflow_id`."""
        return await workflow.start(workflow_id, *args, **kwargs)

    # Finding and controlling

    def _handle(self, execution_id: str, decode: Callable[[Any], R]) -> Handle[R]:
        return Handle(self.calls, execution_id, decode)

    def _workflow_handle(self, workflow_id: str, decode: Callable[[Any], R]) -> WorkflowHandle[R]:
        return WorkflowHandle(self.calls, workflow_id, decode)

    def handle(self, execution_id: str) -> Handle[Any]:
        """A handle of any task, by its id; its result is plain JSON. `task.handle(id)` is the typed one."""
        return Handle(self.calls, execution_id, lambda value: value)

    def workflow_handle(self, workflow_id: str) -> WorkflowHandle[Any]:
        """A handle of any workflow, by its workflow id; its result is plain JSON."""
        return WorkflowHandle(self.calls, workflow_id, lambda value: value)

    async def cancel_workflow(
        self,
        workflow_id: str,
        *,
        request_key: str,
        mode: Literal["now", "request"] = "now",
        reason: Any = None,
        grace: Duration | None = None,
    ) -> Mapping[str, Any]:
        """Cancels a workflow, once per request key; `WorkflowHandle.cancel` has the options."""
        return await self.workflow_handle(workflow_id).cancel(
            request_key=request_key, mode=mode, reason=reason, grace=grace
        )

    async def resume_workflow(self, workflow_id: str, *, request_key: str) -> Mapping[str, Any]:
        """Lets a closed workflow go on, once per request key."""
        return await self.workflow_handle(workflow_id).resume(request_key=request_key)

    async def fork_workflow(
        self,
        workflow_id: str,
        *,
        request_key: str,
        from_step: int | None = None,
        new_workflow_id: str | None = None,
    ) -> Mapping[str, Any]:
        """Starts a new workflow from a step of this one, once per request key."""
        return await self.workflow_handle(workflow_id).fork(
            request_key=request_key, from_step=from_step, workflow_id=new_workflow_id
        )

    async def cancel_task(self, execution_id: str, *, request_key: str) -> Mapping[str, Any]:
        """Cancels a task, once per request key."""
        return await self.handle(execution_id).cancel(request_key=request_key)

    async def retry_task(self, execution_id: str, *, request_key: str) -> Mapping[str, Any]:
        """Gives a closed task new attempts, once per request key."""
        return await self.handle(execution_id).retry(request_key=request_key)

    # Working

    def worker(
        self,
        *,
        queues: Sequence[str] | None = None,
        concurrency: int = 64,
        threads: int = 8,
        processes: int | None = None,
        lease: Duration = "60s",
        grace: Duration = "30s",
        until_idle: Duration | None = None,
        kept_runs: int = 1000,
        name: str | None = None,
    ) -> Worker:
        """A worker beside your own code: `async with app.worker(): ...`. `Worker` has the options."""
        from hapax.worker import Worker

        return Worker(
            self,
            queues=queues,
            concurrency=concurrency,
            threads=threads,
            processes=processes,
            lease=lease,
            grace=grace,
            until_idle=until_idle,
            kept_runs=kept_runs,
            name=name,
        )

    def work(
        self,
        *,
        queues: Sequence[str] | None = None,
        concurrency: int = 64,
        threads: int = 8,
        processes: int | None = None,
        lease: Duration = "60s",
        grace: Duration = "30s",
        until_idle: Duration | None = None,
        kept_runs: int = 1000,
        name: str | None = None,
    ) -> None:
        """Works until Ctrl-C or SIGTERM, or until there was nothing to do for `until_idle`. It blocks."""
        from hapax.worker.worker import run_blocking

        run_blocking(
            lambda: self.worker(
                queues=queues,
                concurrency=concurrency,
                threads=threads,
                processes=processes,
                lease=lease,
                grace=grace,
                until_idle=until_idle,
                kept_runs=kept_runs,
                name=name,
            )
        )


_opened: weakref.WeakSet[Hapax] = weakref.WeakSet()


def _close_at_exit(app: Hapax) -> None:
    """The engine's threads end before the interpreter does."""
    if not _opened:
        atexit.unregister(_close_opened)
        atexit.register(_close_opened)
    _opened.add(app)


def _close_opened() -> None:
    for app in list(_opened):
        app.close()


def _check_url(url: str) -> None:
    scheme = urlsplit(url).scheme
    if scheme not in ("memory", "sqlite", "postgres", "postgresql", "s3", "http", "https"):
        raise InvalidRequest(
            f"{url!r} is no URL of an engine; use sqlite:FILE, memory:, postgres://…, s3://… or http(s)://HOST:PORT"
        )
