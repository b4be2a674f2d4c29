"""One attempt of a task: the handler runs on the loop, on a thread or in a process, and its end becomes an outcome."""

from __future__ import annotations

import asyncio
import contextvars
import os
import traceback
from typing import TYPE_CHECKING, Any

from hapax.context import CURRENT, TaskContext
from hapax.errors import FinalError, InvalidInput, RetryLater, Snooze

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from concurrent.futures import Executor

    from hapax.definitions import Task

Outcome = dict[str, Any]
"""What `POST /v1/claims/finish` takes, without its lease: `result`, `error`, `snooze`, or nothing."""

MOST_STACK = 16 * 1024


def stack_of(error: BaseException) -> str:
    """The traceback, its end if it is long: that is where the error is."""
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__)).encode("utf-8", "replace")
    return text[-MOST_STACK:].decode("utf-8", "ignore")


def failure(error: BaseException) -> Outcome:
    """The outcome of a handler that raised."""
    if isinstance(error, Snooze):
        return {"snooze": f"{round(error.after_s * 1000)}ms"}
    told: dict[str, Any] = {
        "type": type(error).__name__,
        "message": str(error)[:8000] or type(error).__name__,
        "retryable": not isinstance(error, (FinalError, InvalidInput)),
        "stack": stack_of(error),
    }
    if isinstance(error, RetryLater):
        told["retry_after"] = f"{round(error.after_s * 1000)}ms"
    if isinstance(error, InvalidInput):
        told["message"] = error.message
        if error.pointer:
            told["details"] = {"pointer": error.pointer}
    if isinstance(error, FinalError) and error.details is not None:
        told["details"] = error.details
    return {"error": told}


def cancelled() -> Outcome:
    """The outcome of a handler that stopped because it was cancelled."""
    return {
        "error": {"type": "Cancelled", "message": "the handler stopped because it was cancelled", "retryable": True}
    }


def success(task: Task[Any, Any], result: Any) -> Outcome:
    """The outcome of a handler that returned. A result without a JSON form fails the task for good."""
    if result is None:
        return {}
    try:
        encoded = task.signature.encode_result(result)
    except InvalidInput as error:
        return failure(error)
    return {} if encoded is None else {"result": encoded}


def arguments_of(task: Task[Any, Any], context: TaskContext) -> dict[str, Any]:
    """The arguments of the handler, by name."""
    arguments = task.signature.decode(context.execution.get("input"))
    if task.signature.context_parameter is not None:
        arguments[task.signature.context_parameter] = context
    return arguments


async def run_attempt(task: Task[Any, Any], context: TaskContext, threads: Executor, processes: Processes) -> Outcome:
    """Runs the handler to its end. Only a worker that is being ended at once cancels it from outside."""
    try:
        if task.cpu:
            return await processes.run(task, context)
        arguments = arguments_of(task, context)
        if task.is_async:
            CURRENT.set(context)
            return success(task, await task.function(**arguments))
        # The thread gets the context variables of this task: those of tracing, for example.
        variables = contextvars.copy_context()
        work: Callable[[], Outcome] = lambda: variables.run(_run_on_thread, task, context, arguments)  # noqa: E731
        return await asyncio.get_running_loop().run_in_executor(threads, work)
    except asyncio.CancelledError:
        if context.cancelled:
            return cancelled()
        raise
    except Exception as error:
        return failure(error)


def _run_on_thread(task: Task[Any, Any], context: TaskContext, arguments: dict[str, Any]) -> Outcome:
    if context.cancelled:
        return cancelled()
    CURRENT.set(context)
    try:
        return success(task, task.function(**arguments))
    except Exception as error:
        return cancelled() if context.cancelled else failure(error)


class Processes:
    """Processes for handlers with `cpu=True`, started when the first one is needed."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pool: Any = None

    async def run(self, task: Task[Any, Any], context: TaskContext) -> Outcome:
        import multiprocessing
        from concurrent.futures import ProcessPoolExecutor
        from concurrent.futures.process import BrokenProcessPool

        if self._pool is None:
            # A forked child would share the parent's connections.
            spawning = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(
                self._limit, mp_context=spawning, initializer=_end_with, initargs=(os.getpid(),)
            )
        claim = {
            "execution": dict(context.execution),
            "attempt": context.attempt,
            "effect_key": context.effect_key,
            "lease": context.lease,
        }
        module, name = task.function.__module__, task.function.__qualname__
        try:
            outcome: Outcome
            outcome, said = await asyncio.get_running_loop().run_in_executor(
                self._pool, _run_in_process, module, name, claim
            )
        except BrokenProcessPool as error:
            self._pool = None
            message = f"the process of the handler ended: {error}"
            return {"error": {"type": "ProcessDied", "message": message, "retryable": True}}
        for note in said:
            if context._report is not None:
                context._report(note)
        return outcome

    def close(self) -> None:
        """What runs may end; nothing new begins."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def kill(self) -> None:
        """Ends what runs."""
        for process in list((getattr(self._pool, "_processes", None) or {}).values()):
            process.kill()


def _end_with(parent: int) -> None:
    """Ends this process with the worker, however that ends. Its pipes do not tell: it holds both of their ends."""
    import ctypes
    import signal

    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _run_in_process(module: str, name: str, claim: Mapping[str, Any]) -> tuple[Outcome, list[dict[str, Any]]]:
    """The outcome, and what the handler said."""
    import importlib

    said: list[dict[str, Any]] = []
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
        context = TaskContext(claim)
        context._report = said.append
        CURRENT.set(context)
        return success(found, found.function(**arguments_of(found, context))), said
    except Exception as error:
        return failure(error), said
