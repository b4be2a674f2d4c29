"""The command `hapax-worker`."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import uuid
from typing import Any

import pytest

import hapax
from hapax import Hapax
from hapax.testing import Server

ORDERS = """
import hapax

app = hapax.Hapax()

@app.task(queue="payments", timeout="30s")
async def charge(order_id: int) -> str:
    return f"VERSION {order_id}"

@app.cron("0 9 * * *")
@app.workflow
async def daily(ctx: hapax.Context) -> str:
    await ctx.signal("go")
    return await ctx.run(charge, 1)
"""


class Command:
    def __init__(self, server: Server, directory: pathlib.Path) -> None:
        self.directory = directory
        self.app = Hapax(server.url, namespace=f"command-{uuid.uuid4()}")
        self.environment = {
            **os.environ,
            "HAPAX_URL": server.url,
            "HAPAX_NAMESPACE": self.app.namespace or "",
            "PYTHONPATH": str(pathlib.Path(hapax.__file__).parents[1]),
        }
        self.write("one")

    def write(self, version: str) -> None:
        (self.directory / "orders.py").write_text(ORDERS.replace("VERSION", version))

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "hapax.worker.main", *arguments]
        return subprocess.Popen(
            command,
            cwd=self.directory,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *arguments: str) -> tuple[int, str]:
        started = self.start(*arguments)
        out, _ = started.communicate(timeout=60)
        return started.returncode, out

    def charge(self, order: int, timeout: str = "30s") -> Any:
        return hapax.sync(self.app.submit("charge", {"order_id": order})).wait(timeout=timeout)


@pytest.fixture
def command(server: Server, tmp_path: pathlib.Path) -> Command:
    return Command(server, tmp_path)


def test_it_works_until_idle(command: Command) -> None:
    handle = hapax.sync(command.app.submit("charge", {"order_id": 7}, options=hapax.SubmitOptions(queue="payments")))
    code, out = command.run("orders:app", "--until-idle", "300ms")
    assert code == 0, out
    assert handle.wait(timeout=1) == "one 7"


def test_check_compares_with_the_server(command: Command) -> None:
    code, out = command.run("orders:app", "--check")
    assert code == 1, out
    assert "does not have it yet" in out
    command.run("orders:app", "--until-idle", "100ms")
    code, out = command.run("orders:app", "--check")
    assert code == 0, out
    assert "task      charge  queue payments" in out
    assert "next 20" in out


def test_replay_finds_code_that_does_not_fit(command: Command) -> None:
    started = hapax.sync(command.app.call("POST", "/v1/workflows", {"type": "daily", "workflow_id": "d-1"}))
    assert started["created"]
    command.run("orders:app", "--until-idle", "300ms")
    code, out = command.run("replay", "orders:app", "--type", "daily")
    assert (code, out) == (0, "ok     daily  d-1\n")
    changed = (command.directory / "orders.py").read_text().replace('ctx.signal("go")', 'ctx.sleep("1h")')
    (command.directory / "orders.py").write_text(changed)
    code, out = command.run("replay", "orders:app", "--type", "daily")
    assert code == 1
    assert "NonDeterminism: step 1: expected wait_signal 'go', found sleep" in out
    assert "orders.py:" in out


def test_replay_of_exported_files(command: Command) -> None:
    hapax.sync(command.app.call("POST", "/v1/workflows", {"type": "daily", "workflow_id": "d-2"}))
    command.run("orders:app", "--until-idle", "300ms")
    exported = hapax.sync(command.app.workflow_handle("d-2").export())
    (command.directory / "d-2.json").write_text(exported)
    code, out = command.run("replay", "orders:app", "d-2.json", "--url", "http://127.0.0.1:1")
    assert (code, out) == (0, "ok     daily  d-2\n"), "no engine is needed"
    (command.directory / "bad.json").write_text('{"type": "daily"}')
    code, out = command.run("replay", "orders:app", "bad.json")
    assert code == 2
    assert 'bad.json: this is no exported history: it has no "workflow_id"' in out


def await_working(worker: subprocess.Popen[str]) -> None:
    """Until it says that it works, or works again."""
    assert worker.stdout is not None
    assert any("working on" in line for line in worker.stdout)


def test_reload_starts_again_with_the_new_code(command: Command) -> None:
    worker = command.start("orders:app", "--reload", "--queues", "default,payments")
    try:
        await_working(worker)
        assert command.charge(1) == "one 1"
        command.write("two")
        await_working(worker)
        assert command.charge(2) == "two 2"
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(30) == 0
    finally:
        worker.kill()
        worker.communicate()


@pytest.mark.parametrize("name", ["nothing:app", "orders:nothing", "os:path"])
def test_a_wrong_name_is_an_error(command: Command, name: str) -> None:
    code, out = command.run(name)
    assert code == 2
    assert out.startswith(f"hapax-worker: {name}: ")
