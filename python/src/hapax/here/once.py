"""`app.once`: a function that runs here, once for its key."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import inspect
from typing import TYPE_CHECKING, Any, NamedTuple

from hapax.context import CURRENT, TaskContext
from hapax.definitions import Task
from hapax.errors import Error, InvalidInput, InvalidRequest, LeaseLost, TaskCancelled, ended
from hapax.handles import Handle
from hapax.here.attempt import AGAIN_AT_ONCE, submit_here
from hapax.ids import new_id
from hapax.signature import Signature, has_input
from hapax.tracing import handling
from hapax.transport import is_blocking, outside_sync, sync
from hapax.worker.attempts import cancelled, failure

if TYPE_CHECKING:
    from collections.abc import Callable

    from hapax.app import Hapax
    from hapax.here.attempt import Attempt

ONCE_QUEUE = "once"
"""Where these tasks are kept. No worker claims from it, unless it is told to: they run where `once` is called."""

_LOOK_S = 1
"""How often a caller who waits asks whether the one who runs it has died."""


class _Once(NamedTuple):
    """What one call of `once` is about."""

    request: dict[str, Any]
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    signature: Signature


async def once(
    app: Hapax, key: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """The result of `function` under this key: it runs here, unless it has run or runs somewhere."""
    call = _call_of(key, function, args, kwargs)
    while True:
        receipt, attempt = await submit_here(app, {**call.request, "id": new_id()})
        if attempt is not None:
            with handling(app, attempt.context) as attempt.on_end:
                return await _run(call, attempt)
        running = CURRENT.get(None)
        if running is not None and running.id == receipt.id:
            raise InvalidRequest(
                f"the function under the key {key!r} calls once with its own key, and would wait forever"
            )
        if receipt.result_expired:
            raise Error(
                f"the function under the key {key!r} has run; its result is not kept any more", code="ResultExpired"
            )
        closed, result = await _look(Handle(app.calls, receipt.id, call.signature.decode_result))
        if closed:
            return result


def _call_of(key: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Once:
    plain = function.function if isinstance(function, Task) else function
    if is_blocking() and inspect.iscoroutinefunction(plain):
        raise InvalidRequest(f"{plain.__qualname__} is async; use `await app.once(…)`")
    if isinstance(function, Task):
        request = {**AGAIN_AT_ONCE, "queue": ONCE_QUEUE, **function.options(key=key).request(args, kwargs)}
        if "concurrency_key" in request:
            raise InvalidRequest("a task with a concurrency_key waits for its turn at a worker; app.once cannot run it")
        return _Once(request, plain, args, kwargs, function.signature)
    name = getattr(function, "__name__", "<lambda>")
    if name == "<lambda>":
        raise InvalidRequest("app.once knows what runs by its name; give it a function with `def`")
    signature = _signature_of(function)
    request = {**AGAIN_AT_ONCE, "queue": ONCE_QUEUE, "type": name, "idempotency_key": key}
    value = signature.encode(args, kwargs)
    if has_input(value):
        request["input"] = value
    return _Once(request, function, args, kwargs, signature)


@functools.lru_cache(maxsize=256)
def _signature_of(function: Callable[..., Any]) -> Signature:
    return Signature(function, TaskContext, {})


async def _look(handle: Handle[Any]) -> tuple[bool, Any]:
    """Waits a moment for the end of the attempt that runs elsewhere; whether it ended, and its result."""
    answer = await handle._calls.call("GET", handle._path("result") + f"?wait={_LOOK_S}s", wait_s=_LOOK_S)
    return (True, handle._result_of(answer.json)) if answer.status == 200 else (False, None)


async def _run(call: _Once, attempt: Attempt) -> Any:
    work = functools.partial(call.function, *call.args, **call.kwargs)
    if call.signature.context_parameter is not None:
        arguments = call.signature.parameters.bind(*call.args, **call.kwargs).arguments
        arguments[call.signature.context_parameter] = attempt.context
        work = functools.partial(call.function, **arguments)
    if not inspect.iscoroutinefunction(call.function):
        if is_blocking():
            return await _run_plain(call, attempt, work)
        # All of it on a thread: if the caller stops waiting, the function still ends under its lease and is reported.
        variables = contextvars.copy_context()
        on_thread = functools.partial(variables.run, lambda: sync(_run_plain(call, attempt, work)))
        return await asyncio.get_running_loop().run_in_executor(None, on_thread)
    return await _run_async(call, attempt, work)


async def _run_plain(call: _Once, attempt: Attempt, work: Callable[[], Any]) -> Any:
    token = CURRENT.set(attempt.context)
    try:
        with outside_sync():
            value = work()
    except BaseException as error:
        await _report_failure(attempt, error)
        raise
    finally:
        CURRENT.reset(token)
    return await _succeed(call, attempt, value)


async def _run_async(call: _Once, attempt: Attempt, work: Callable[[], Any]) -> Any:
    loop = asyncio.get_running_loop()
    token = CURRENT.set(attempt.context)
    running = asyncio.ensure_future(work())
    CURRENT.reset(token)

    def stop() -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(running.cancel)

    attempt.on_cancel(stop)
    try:
        value = await running
    except BaseException as error:
        running.cancel()
        await _report_failure(attempt, error)
        if isinstance(error, asyncio.CancelledError) and attempt.context.cancelled:
            return await _told_to_stop(call, attempt)
        raise
    return await _succeed(call, attempt, value)


async def _report_failure(attempt: Attempt, error: BaseException) -> None:
    if attempt.context.cancelled:
        outcome = cancelled()
    elif isinstance(error, asyncio.CancelledError):
        outcome = {"error": {"type": "CallerCancelled", "message": "its caller was cancelled", "retryable": True}}
    else:
        outcome = failure(error)
    if "error" in outcome:
        await attempt.fail(outcome["error"])
    else:
        await attempt.end(outcome, patience_s=5)


async def _told_to_stop(call: _Once, attempt: Attempt) -> Any:
    """The task was cancelled, or another attempt began because this one lost its lease: that one counts."""
    if attempt.context.lease_lost:
        return await _of_the_other(call, attempt)
    raise TaskCancelled(f"{call.signature.name} was cancelled", execution=attempt.context.execution)


async def _succeed(call: _Once, attempt: Attempt, value: Any) -> Any:
    outcome: dict[str, Any] = {}
    if value is not None:
        try:
            encoded = call.signature.encode_result(value)
        except InvalidInput as error:
            await attempt.fail(failure(error)["error"])
            raise
        if encoded is not None:
            outcome["result"] = encoded
    if await attempt.end(outcome):
        return value
    return await _of_the_other(call, attempt)


async def _of_the_other(call: _Once, attempt: Attempt) -> Any:
    """The lease was lost. The end of the attempt that took over is the one that counts, for this caller too."""
    handle: Handle[Any] = Handle(attempt.calls, attempt.context.id, call.signature.decode_result)
    while True:
        execution = await handle.execution()
        if execution["status"] == "completed":
            return call.signature.decode_result(execution.get("result"))
        if execution["status"] in ("failed", "cancelled", "timed_out"):
            raise ended(execution)
        if execution["status"] != "running":
            raise LeaseLost(
                f"{call.signature.name} lost its lease while it ran (attempt {attempt.context.attempt}), so its result "
                "was not stored; call once again for the result of the attempt that counts"
            )
        closed, result = await _look(handle)
        if closed:
            return result
