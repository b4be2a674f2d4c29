"""A worker as a program: leases while it blocks, processes for its handlers, and how it ends."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import time
from typing import Any

import pytest

import hapax
from hapax import Hapax

from .conftest import WORKERS, environment_of

pytestmark = pytest.mark.works

PROGRAM = """
import ctypes, os, pathlib, sys, time
import asyncio
import hapax

app = hapax.Hapax(sys.argv[1], namespace="program")
log = pathlib.Path(sys.argv[2])
BLOCKS_S, LEASE = int(sys.argv[3]), sys.argv[4]


def note(what):
    with open(log, "a") as file:
        file.write(what + "\\n")


@app.task
async def blocks_the_loop() -> int:
    note("began")
    time.sleep(BLOCKS_S)
    return hapax.current().attempt


@app.task
def holds_the_gil() -> int:
    ctypes.PyDLL(None).sleep(BLOCKS_S)  # a call that does not release the GIL
    return hapax.current().attempt


@app.task(cpu=True)
def in_a_process(number: int) -> tuple[int, int]:
    hapax.current().log(f"squaring {number}")
    return os.getpid(), number * number


@app.task
async def effect() -> str:
    note(hapax.current().effect_key)
    if hapax.current().attempt == 1:
        note("ready")
        await asyncio.sleep(60)
    return hapax.current().effect_key


if __name__ == "__main__":
    app.work(lease=LEASE, processes=2)
"""


class Program:
    """A worker in a process of its own."""

    def __init__(self, url: str, directory: pathlib.Path, claims: str, blocks_s: int = 3, lease: str = "1s") -> None:
        self.log = directory / "log"
        (directory / "program.py").write_text(PROGRAM)
        self.command = [sys.executable, str(directory / "program.py"), url, str(self.log), str(blocks_s), lease]
        self.environment = environment_of(claims)
        self.app = Hapax(url, namespace="program")
        self.restart()

    def restart(self) -> None:
        self.process = subprocess.Popen(self.command, env=self.environment)

    def wait_for(self, line: str) -> None:
        ends = time.monotonic() + 20
        while time.monotonic() < ends:
            if self.log.exists() and line in self.log.read_text().splitlines():
                return
            time.sleep(0.02)
        raise AssertionError(f"the worker never wrote {line!r}")

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(20)


@pytest.fixture(params=WORKERS)
def new_program(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Any:
    """Over HTTP, and with the engine in both processes on one file."""
    is_http = request.param.startswith("http")
    url = request.getfixturevalue("server").url if is_http else f"sqlite:{tmp_path / 'program.db'}"
    running: list[Program] = []

    def start(**options: Any) -> Program:
        running.append(Program(url, tmp_path, request.param, **options))
        return running[-1]

    yield start
    for program in running:
        program.process.kill()
        program.process.wait()
        program.app.close()


@pytest.fixture
def program(new_program: Any) -> Program:
    started: Program = new_program()
    return started


def check_leases(program: Program) -> None:
    for task in ("blocks_the_loop", "holds_the_gil"):
        handle = hapax.sync(program.app.submit(task))
        assert handle.wait(timeout=90) == 1, f"{task} lost its lease"


def test_a_blocked_loop_and_a_held_gil_keep_their_leases(program: Program) -> None:
    check_leases(program)


@pytest.mark.slow
def test_a_blocked_loop_and_a_held_gil_keep_their_leases_for_30_seconds(new_program: Any) -> None:
    check_leases(new_program(blocks_s=30, lease="5s"))


def test_cpu_handlers_run_in_processes(program: Program) -> None:
    handle = hapax.sync(program.app.submit("in_a_process", {"number": 12}))
    pid, square = handle.wait(timeout=30)
    assert hapax.sync(handle.execution())["log"]["lines"] == ["squaring 12"]
    assert square == 144
    assert pid != program.process.pid


def test_a_killed_worker_is_followed_by_an_attempt_with_the_same_effect_key(program: Program) -> None:
    check_effect_key(program)


@pytest.mark.parametrize("claims", [one for one in WORKERS if one == "native"])
def test_on_one_machine_a_lease_ends_with_its_worker(tmp_path: pathlib.Path, claims: str) -> None:
    program = Program(f"sqlite:{tmp_path / 'program.db'}", tmp_path, claims, lease="600s")
    try:
        check_effect_key(program)
    finally:
        program.process.kill()
        program.process.wait()
        program.app.close()


def check_effect_key(program: Program) -> None:
    handle = hapax.sync(program.app.submit("effect"))
    program.wait_for("ready")
    program.process.kill()
    program.process.wait()
    program.restart()
    effect = handle.wait(timeout=30)
    keys = [line for line in program.log.read_text().splitlines() if line != "ready"]
    assert keys == [effect, effect]


def test_sigterm_drains_and_exits_with_0(program: Program) -> None:
    handle = hapax.sync(program.app.submit("blocks_the_loop"))
    program.wait_for("began")
    assert program.stop() == 0
    assert handle.wait(timeout=1) == 1
