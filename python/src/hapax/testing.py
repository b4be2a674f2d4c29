"""For tests: an engine in memory whose clock skips, a real server, and the replay of exported histories.

When the package is installed, pytest has two fixtures of it:

- `hapax_app`: a `TestHapax`. Declare tasks on it, or let it stand in for your own app: `hapax_app.adopt(orders.app)`.
- `hapax_server`: a real `hapax serve` on a free port, for the time of the test; `.url` is where.

    def test_a_year_of_renewals(hapax_app):
        hapax_app.adopt(shop.app)
        charges = hapax_app.stub(shop.charge_card, lambda order: "ch_1")
        run = shop.subscription.start_sync("s-1", Order(1, 999))
        hapax_app.advance("365d")
        assert len(charges) == 12
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import ctypes
import inspect
import json
import os
import pathlib
import re
import shutil
import subprocess
import threading
from typing import TYPE_CHECKING, Any

from hapax.app import Hapax
from hapax.durations import Duration, to_seconds
from hapax.errors import NativeMissing, error_from
from hapax.transport.library import load
from hapax.transport.native import NativeTransport
from hapax.worker.replay import replay

if TYPE_CHECKING:
    from collections.abc import Callable

    from hapax.definitions import Task
    from hapax.worker import Worker


__all__ = ["Server", "TestHapax", "TestTransport", "find_program", "replay"]


class TestTransport(NativeTransport):
    """An engine in memory whose clock stands still until it is advanced."""

    __test__ = False

    def __init__(self, starts_at: str | None = None) -> None:
        self.library = load()
        if not self.library.has_test:
            raise NativeMissing("the engine of this installation has no clock for tests; install a newer one")
        options = {} if starts_at is None else {"starts_at": starts_at}
        error = ctypes.c_char_p()
        handle = self.library.test_open(json.dumps(options).encode(), ctypes.byref(error))
        if not handle:
            raise error_from(400, json.loads(error.value or b"{}"))
        self._begin(handle)

    def advance(self, duration: Duration) -> None:
        """Lets time pass; what becomes due happens at its time."""
        self.library.test_advance(self.handle, round(to_seconds(duration) * 1000))


class TestHapax(Hapax):
    """An app for tests. Its worker replays every workflow at every turn, which finds code that is not deterministic."""

    __test__ = False

    def __init__(self, starts_at: str | None = None) -> None:
        self._clock = TestTransport(starts_at)
        super().__init__("memory:", transport=self._clock)
        self._adopted: list[tuple[Hapax, Any, Any]] = []
        self._workers: list[_WorkerThread] = []

    def adopt(self, app: Hapax) -> None:
        """Lets your own app run on this engine until the end of the test."""
        self._adopted.append((app, app._transport, app.registry))
        registry = copy.copy(app.registry)
        registry.tasks = dict(app.registry.tasks)
        registry._untold = {**app.registry._told, **app.registry._untold}
        app.registry, app._transport, app._pid = registry, self._clock, os.getpid()

    def stub(self, task: Task[..., Any], function: Callable[..., Any]) -> list[dict[str, Any]]:
        """Runs `function` in place of the task's own, with the same arguments. The list gets those of each call."""
        calls: list[dict[str, Any]] = []

        def record(**arguments: Any) -> Any:
            calls.append(arguments)
            return function(**arguments)

        async def record_async(**arguments: Any) -> Any:
            calls.append(arguments)
            return await function(**arguments)

        stubbed = copy.copy(task)
        stubbed.is_async, stubbed.cpu = inspect.iscoroutinefunction(function), False
        stubbed.function = record_async if stubbed.is_async else record
        for app in (self, *(app for app, _, _ in self._adopted)):
            for name, known in app.registry.tasks.items():
                if known.name == task.name:
                    app.registry.tasks[name] = stubbed
        return calls

    def advance(self, duration: Duration) -> None:
        """Lets time pass, while tasks and workflows run: a year takes some milliseconds."""
        self._work()
        self._clock.advance(duration)

    def run_until_idle(self) -> None:
        """Runs what can run now; the clock stands still."""
        self.advance(0)

    def _work(self) -> None:
        if self._workers:
            return
        for app in (self, *(app for app, _, _ in self._adopted)):
            if app.registry.tasks or app.registry.workflows:
                self._workers.append(_WorkerThread(app))

    def close(self) -> None:
        """Ends the workers, and gives adopted apps back."""
        for worker in self._workers:
            worker.stop()
        self._workers.clear()
        for app, transport, registry in self._adopted:
            app._transport, app.registry = transport, registry
        self._adopted.clear()
        super().close()


class _WorkerThread:
    """A worker on a thread with an event loop of its own, so that a test can block."""

    def __init__(self, app: Hapax) -> None:
        self._app = app
        self._started = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._worker: Worker | None = None
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._main, name="hapax-test-worker", daemon=True)
        self._thread.start()
        self._started.wait(20)
        if self._failure is not None:
            raise self._failure

    def _main(self) -> None:
        try:
            asyncio.run(self._run())
        except BaseException as error:
            self._failure = error
        finally:
            self._started.set()

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._worker = self._app.worker(kept_runs=0, grace="1s")
        async with self._worker:
            self._started.set()
            await self._worker._stopped.wait()

    def stop(self) -> None:
        if self._loop is not None and self._worker is not None and self._thread.is_alive():
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._worker.stop)
        self._thread.join(20)


def find_program() -> str:
    """The program `hapax`: `$HAPAX_PROGRAM`, the one of this package, or the one on the PATH."""
    packaged = pathlib.Path(__file__).parent / "_native" / "hapax"
    found = os.environ.get("HAPAX_PROGRAM") or (str(packaged) if packaged.exists() else shutil.which("hapax"))
    if not found:
        raise NativeMissing("there is no program `hapax`: install the wheel for your platform, or set HAPAX_PROGRAM")
    return found


class Server:
    """A `hapax serve` on a free port."""

    def __init__(self, directory: pathlib.Path, store: str = "memory:") -> None:
        self.directory = directory
        self.store = store
        self.port = 0
        self.process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> Server:
        """Starts it, on the port that it had before, if any."""
        command = [find_program(), "serve", "--listen", f"127.0.0.1:{self.port}", "--store", self.store]
        kept = {name: value for name, value in os.environ.items() if not name.startswith("HAPAX_")}
        log = self.directory / "server.log"
        with open(log, "a") as errors:
            self.process = subprocess.Popen(
                command, cwd=self.directory, env=kept, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        match = re.search(r"listening on http://127\.0\.0\.1:(\d+)", line)
        if match is None:
            raise RuntimeError(f"the server did not start: {line}{log.read_text()}")
        self.port = int(match[1])
        return self

    def stop(self) -> None:
        """Lets it end what it does."""
        self._end("terminate")

    def kill(self) -> None:
        """Ends it as a crash would."""
        self._end("kill")

    def _end(self, how: str) -> None:
        if self.process is None:
            return
        getattr(self.process, how)()
        self.process.wait(20)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.process = None
