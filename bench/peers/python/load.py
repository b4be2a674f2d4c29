"""The measures of the Python peers, the same for every one of them.

A peer's program makes one object and hands it to `main`, which runs the measure of the command line, checks that the
work was done, and prints one line of JSON. Started with `--work FIFO` it is the worker, in a process of its own: its
handlers say when they began by `began(i)`.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import importlib.metadata
import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

WARM_UP = 200
IDLE_SECONDS = 10
IMPORTS = 9
PATIENCE_S = 600
_threads = ThreadPoolExecutor(4)  # the loop's own may be the peer's, which ends it
_RECORD = struct.Struct("=qd")
_fifo = -1


def began(number: int) -> None:
    """A handler has begun. The clock is the same for all processes of the machine."""
    os.write(_fifo, _RECORD.pack(number, time.monotonic()))


def payload_of(number: int) -> dict[str, Any]:
    """About 100 bytes of JSON."""
    return {"i": number, "user": f"user-{number:07}", "action": "resize", "note": "x" * 40}


def key_of(number: int) -> str:
    return f"order-2026-11-15-{number:09}"


class Peer:
    """What a peer can do. A method that stays as it is here is one that the peer does not have."""

    name = ""
    package = ""  # on PyPI
    module = ""  # to import
    settings: dict[str, Any] = {}
    keeps_results = True
    is_async = True  # else `submit` is a plain function, called on threads

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options

    async def open(self) -> None:
        """Connects, and makes the schema; the database is empty."""

    def submit(self, payload: dict[str, Any], key: str | None = None) -> Any:
        """One task, durable when it returns."""
        raise NotImplementedError

    def work(self) -> None:
        """A worker, until it is killed."""
        raise NotImplementedError

    async def total(self) -> int:
        """How many tasks the store has, done or not."""
        raise NotImplementedError

    async def waiting(self) -> int:
        """How many of them are not done."""
        raise NotImplementedError

    async def begin_workflows(self) -> None:
        """A worker for workflows in this process."""

    async def run_workflow(self, payload: dict[str, Any], key: str) -> Any:
        """One workflow of three steps, from its start to its result."""
        raise NotImplementedError

    async def close(self) -> None: ...


async def in_flight(peer: Peer, first: int, last: int, keyed: bool = True) -> None:
    """Submits the numbers of [first, last), 32 at once."""
    numbers = iter(range(first, last))
    if peer.is_async:

        async def lane() -> None:
            for number in numbers:
                await peer.submit(payload_of(number), key_of(number) if keyed else None)

        await asyncio.gather(*(lane() for _ in range(peer.options.in_flight)))
        return
    lock = threading.Lock()

    def thread() -> None:
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            peer.submit(payload_of(number), key_of(number) if keyed else None)

    with ThreadPoolExecutor(peer.options.in_flight) as threads:
        for each in [threads.submit(thread) for _ in range(peer.options.in_flight)]:
            each.result()


async def on_thread(work: Callable[[], None]) -> None:
    await asyncio.get_running_loop().run_in_executor(_threads, work)


def expect(what: str, got: Any, wanted: Any) -> None:
    if got != wanted:
        raise SystemExit(f"{what}: {got}, where it should be {wanted}")


def rate(count: int, unit: str, seconds: float) -> dict[str, Any]:
    return {"unit": unit, "count": count, "seconds": seconds, "value": count / seconds}


class WorkerProcess:
    """The peer's worker in a process of its own, and what its handlers say."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.folder = tempfile.TemporaryDirectory()
        path = os.path.join(self.folder.name, "fifo")
        os.mkfifo(path)
        self.reader = os.open(path, os.O_RDWR)  # so that nobody sees an end
        self.began: dict[int, float] = {}
        self.news = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()
        command = [sys.executable, *sys.argv, "--work", path]
        self.log = open(os.path.join(self.folder.name, "log"), "w+")
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log, start_new_session=True)

    def _read(self) -> None:
        pending = b""
        while True:
            pending += os.read(self.reader, 65_536)
            whole = len(pending) // _RECORD.size * _RECORD.size
            with self.news:
                for number, at in _RECORD.iter_unpack(pending[:whole]):
                    self.began.setdefault(number, at)
                self.news.notify_all()
            pending = pending[whole:]

    def wait_for(self, is_there: Callable[[], bool]) -> None:
        with self.news:
            ends = time.monotonic() + PATIENCE_S
            while not is_there():
                if self.process.poll() is not None or time.monotonic() > ends:
                    self.log.seek(0)
                    raise SystemExit(f"the worker did not do its work:\n{self.log.read()[-4000:]}")
                self.news.wait(1)

    def tree(self) -> list[int]:
        """The pids of the worker and of its children."""
        pids, found = [self.process.pid], []
        while pids:
            pid = pids.pop()
            found.append(pid)
            for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
                pids += [int(child) for child in task.read_text().split()]
        return found

    def stop(self) -> None:
        for pid in reversed(self.tree()):
            try:
                os.kill(pid, 9)
            except ProcessLookupError:
                pass
        self.process.wait()


async def submit_key(peer: Peer, count: int) -> dict[str, Any]:
    await in_flight(peer, -WARM_UP, 0)
    begin = time.perf_counter()
    await in_flight(peer, 0, count)
    figure = rate(count, "tasks/s", time.perf_counter() - begin)
    expect("tasks in the store", await peer.total(), count + WARM_UP)
    return figure


async def drain(peer: Peer, count: int) -> dict[str, Any]:
    """From the first task's start to the last one's stored end; how long a worker takes to start does not count."""
    await in_flight(peer, 0, count, keyed=False)
    expect("waiting tasks", await peer.waiting(), count)
    worker = WorkerProcess(peer.options)
    await on_thread(lambda: worker.wait_for(lambda: len(worker.began) >= count))
    while await peer.waiting() > 0:
        await asyncio.sleep(0.005)
    seconds = time.monotonic() - min(worker.began.values())
    worker.stop()
    return {**rate(count, "tasks/s", seconds), "keeps_results": peer.keeps_results}


async def latency(peer: Peer, count: int) -> dict[str, Any]:
    worker = WorkerProcess(peer.options)
    milliseconds = []

    async def submit(number: int) -> None:
        if peer.is_async:
            await peer.submit(payload_of(number))
        else:
            peer.submit(payload_of(number))

    await submit(-1)
    await on_thread(lambda: worker.wait_for(lambda: -1 in worker.began))
    for number in range(count + 20):
        await asyncio.sleep(0.02 + 0.08 * random.random())
        submitted = time.monotonic()
        await submit(number)
        await on_thread(lambda: worker.wait_for(lambda number=number: number in worker.began))
        milliseconds.append(1000 * (worker.began[number] - submitted))
    worker.stop()
    values = sorted(milliseconds[20:])
    p50, p99 = values[len(values) // 2], values[min(len(values) - 1, int(len(values) * 0.99))]
    return {"unit": "ms", "count": count, "value": p50, "p50": p50, "p99": p99}


async def workflow(peer: Peer, count: int) -> dict[str, Any]:
    await peer.begin_workflows()

    async def run(first: int, last: int) -> None:
        numbers = iter(range(first, last))

        async def lane() -> None:
            for number in numbers:
                expect("the result", await peer.run_workflow(payload_of(number), key_of(number)), number + 3)

        await asyncio.gather(*(lane() for _ in range(peer.options.in_flight)))

    await run(-50, 0)
    begin = time.perf_counter()
    await run(0, count)
    return rate(count, "workflows/s", time.perf_counter() - begin)


def cpu_seconds(pids: list[int]) -> float:
    ticks = 0
    for pid in pids:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def resident_mib(pids: list[int]) -> float:
    pages = sum(int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids)
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


async def idle(peer: Peer, count: int) -> dict[str, Any]:
    """A worker with nothing to do, after its first task: the memory of all its processes, and the share of a core."""
    worker = WorkerProcess(peer.options)
    await peer.submit(payload_of(0)) if peer.is_async else peer.submit(payload_of(0))
    await on_thread(lambda: worker.wait_for(lambda: 0 in worker.began))
    await asyncio.sleep(2)
    pids = worker.tree()
    before = cpu_seconds(pids)
    await asyncio.sleep(IDLE_SECONDS)
    cpu = (cpu_seconds(pids) - before) / IDLE_SECONDS
    mib = resident_mib(pids)
    worker.stop()
    return {"unit": "MiB", "count": count, "value": mib, "cpu_percent": 100 * cpu, "processes": len(pids)}


async def import_ms(peer: Peer, count: int) -> dict[str, Any]:
    code = f"import time; t = time.perf_counter(); import {peer.module}; print(time.perf_counter() - t)"
    seconds = []
    for _ in range(IMPORTS):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        seconds.append(float(done.stdout))
    return {"unit": "ms", "count": count, "value": 1000 * sorted(seconds)[IMPORTS // 2]}


MEASURES: dict[str, tuple[Callable[[Peer, int], Awaitable[dict[str, Any]]], str]] = {
    "submit_key": (submit_key, "submit"),
    "drain": (drain, "work"),
    "latency": (latency, "work"),
    "workflow": (workflow, "run_workflow"),
    "idle": (idle, "work"),
    "import": (import_ms, "submit"),
}


def version_of(peer: Peer) -> str:
    try:
        return importlib.metadata.version(peer.package)
    except importlib.metadata.PackageNotFoundError:  # it is used from its folder
        return str(importlib.import_module(peer.module).__version__)


async def measure(peer: Peer, name: str, count: int) -> dict[str, Any]:
    line = {"peer": peer.name, "version": version_of(peer), "measure": name}
    run, needs = MEASURES[name]
    if getattr(type(peer), needs) is getattr(Peer, needs):
        return {**line, "unsupported": True}
    if name == "import":
        return {**line, **await run(peer, count), "settings": peer.settings}
    await peer.open()
    line = {**line, **await run(peer, count), "settings": peer.settings}
    await peer.close()
    return line


def main(make: Callable[[argparse.Namespace], Peer]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--measure", choices=MEASURES, required=True)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--in-flight", type=int, default=32)
    parser.add_argument("--postgres", default="", help="the URL of an empty database")
    parser.add_argument("--redis", type=int, default=0, help="the port")
    parser.add_argument("--server", default="", help="of Hapax over HTTP: the program")
    parser.add_argument("--url", default="", help="of Hapax's worker: the server's")
    parser.add_argument("--work", default="", help="be the worker; its handlers write there")
    options = parser.parse_args()
    peer = make(options)
    if options.work:
        global _fifo
        _fifo = os.open(options.work, os.O_WRONLY)
        peer.work()
        return
    line = asyncio.run(measure(peer, options.measure, options.count))
    print(json.dumps(line), flush=True)
    os._exit(0)  # some peers keep threads that do not end
