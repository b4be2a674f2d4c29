"""Processes: fork, gunicorn, the end of the interpreter, signals."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

import hapax
from hapax import Hapax

from .conftest import TRANSPORTS

SOURCE = str(pathlib.Path(hapax.__file__).parents[1])


@pytest.fixture(params=TRANSPORTS)
def url(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> str:
    """A server, or a file that several processes may open."""
    return request.getfixturevalue("server").url if request.param == "http" else f"sqlite:{tmp_path / 'shared.db'}"


@pytest.fixture
def environment(url: str) -> dict[str, str]:
    return {**os.environ, "HAPAX_URL": url, "HAPAX_NAMESPACE": f"n-{uuid.uuid4()}", "PYTHONPATH": SOURCE}


def python(text: str, environment: dict[str, str], folder: pathlib.Path) -> subprocess.Popen[str]:
    path = folder / "program.py"
    path.write_text(text)
    return subprocess.Popen(
        [sys.executable, str(path)],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


WEB = """
import json, os
import hapax

app = hapax.Hapax()

@app.task
def book(order: int) -> int:
    return order

if os.environ.get("OPEN_EARLY"):
    hapax.sync(app.submit("early", idempotency_key="early"))

def web(environ, start_response):
    handle = book.options(key=environ["QUERY_STRING"]).submit_sync(456)
    start_response("200 OK", [("Content-Type", "application/json")])
    return [json.dumps([handle.id, handle.created, os.getpid()]).encode()]
"""
HOOKS = """
def post_fork(server, worker):
    import web
    web.app.after_fork()
"""


class Gunicorn:
    def __init__(self, folder: pathlib.Path, environment: dict[str, str], *arguments: str) -> None:
        (folder / "web.py").write_text(WEB)
        (folder / "hooks.py").write_text(HOOKS)
        self.path = str(folder / "web.sock")
        self.log = folder / "gunicorn.log"
        command = [sys.executable, "-m", "gunicorn", "--workers", "2", "--bind", f"unix:{self.path}", *arguments]
        with open(self.log, "w") as log:
            self.process = subprocess.Popen([*command, "web:web"], cwd=folder, env=environment, stderr=log)

    def get(self, query: str) -> tuple[int, bytes]:
        ends = time.monotonic() + 20
        while True:
            with socket.socket(socket.AF_UNIX) as connection:
                try:
                    connection.connect(self.path)
                except OSError:
                    assert time.monotonic() < ends, self.log.read_text()
                    time.sleep(0.05)
                    continue
                connection.sendall(f"GET /?{query} HTTP/1.0\r\nHost: x\r\n\r\n".encode())
                received = b""
                while data := connection.recv(65_536):
                    received += data
                head, _, body = received.partition(b"\r\n\r\n")
                return int(head.split()[1]), body

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(20)


@pytest.fixture
def gunicorn(tmp_path: pathlib.Path, environment: dict[str, str]) -> Iterator[Any]:
    pytest.importorskip("gunicorn")
    running: list[Gunicorn] = []

    def start(*arguments: str, **more: str) -> Gunicorn:
        running.append(Gunicorn(tmp_path, {**environment, **more}, *arguments))
        return running[-1]

    yield start
    for each in running:
        each.stop()


@pytest.mark.parametrize("preload", [[], ["--preload"]], ids=["each_loads", "preload"])
def test_gunicorn_s_workers_open_an_app_of_their_own(gunicorn: Any, preload: list[str]) -> None:
    web = gunicorn(*preload)
    answers = [web.get("order-456") for _ in range(20)]
    assert {status for status, _ in answers} == {200}, web.log.read_text()
    bodies = [json.loads(body) for _, body in answers]
    assert len({execution for execution, _, _ in bodies}) == 1
    assert sum(created for _, created, _ in bodies) == 1


def test_an_app_that_was_opened_before_gunicorn_forks_says_what_to_do(gunicorn: Any, url: str) -> None:
    web = gunicorn("--preload", OPEN_EARLY="1")
    status, _ = web.get("order-456")
    assert status == 500
    assert "call app.after_fork() in the post_fork hook" in web.log.read_text()


@pytest.mark.parametrize("url", ["http"], indirect=True)  # a SQLite file that was open cannot be opened in the child
def test_after_fork_opens_it_anew(gunicorn: Any) -> None:
    web = gunicorn("--preload", "--config", "hooks.py", OPEN_EARLY="1")
    assert web.get("order-456")[0] == 200, web.log.read_text()


ENDS = {
    "without_closing": "print(hapax.sync(app.submit('t')).created)",
    "in_a_blocking_wait": """
handle = hapax.sync(app.submit('t'))
threading.Thread(target=handle.wait, daemon=True).start()
time.sleep(0.2)
print(handle.created)
""",
    "with_a_call_under_way": """
async def main():
    handle = await app.submit('t')
    print(handle.created)
    waiting = asyncio.create_task(handle.result())
    await asyncio.sleep(0.1)
asyncio.run(main())
""",
    "with_a_worker_on_another_thread": """
@app.task
async def t() -> int:
    return 1
async def work():
    async with app.worker(grace=0):
        began.set()
        await asyncio.sleep(3600)
began = threading.Event()
threading.Thread(target=lambda: asyncio.run(work()), daemon=True).start()
began.wait()
print(hapax.sync(app.submit('t')).wait(timeout=20) == 1)
""",
}


@pytest.mark.parametrize("name", ENDS)
def test_the_interpreter_ends_in_order(
    name: str, url: str, environment: dict[str, str], tmp_path: pathlib.Path
) -> None:
    text = f"import asyncio, threading, time\nimport hapax\napp = hapax.Hapax()\n{ENDS[name]}"
    child = python(text, environment, tmp_path)
    out, errors = child.communicate(timeout=60)
    assert (child.returncode, out, errors) == (0, "True\n", "")


def test_multiprocessing_children_use_an_app_that_was_not_opened(
    url: str, environment: dict[str, str], tmp_path: pathlib.Path
) -> None:
    text = """
import multiprocessing
import hapax
app = hapax.Hapax()
def submit(number):
    return hapax.sync(app.submit("t", {"n": 1}, idempotency_key="k")).created
if __name__ == "__main__":
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(4) as pool:
            print(sum(pool.map(submit, range(16), chunksize=1)))
"""
    out, errors = python(text, environment, tmp_path).communicate(timeout=60)
    assert (out, errors) == ("1\n0\n", "")


@pytest.mark.parametrize("wait", ["handle.wait()", "asyncio.run(handle.result())"], ids=["sync", "async"])
def test_ctrl_c_ends_a_wait(wait: str, url: str, environment: dict[str, str], tmp_path: pathlib.Path) -> None:
    text = f"""
import asyncio, hapax
app = hapax.Hapax()
handle = hapax.sync(app.submit("t"))
print("waiting", flush=True)
try:
    {wait}
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    child = python(text, environment, tmp_path)
    assert child.stdout is not None
    assert child.stdout.readline() == "waiting\n"
    time.sleep(0.3)
    began = time.monotonic()
    child.send_signal(signal.SIGINT)
    out, errors = child.communicate(timeout=20)
    assert (out, errors) == ("interrupted\n", "")
    assert time.monotonic() - began < 5


WORKER = """
import os, pathlib, time
import hapax
app = hapax.Hapax()

@app.task
def on_a_thread() -> None:
    pathlib.Path("began").write_text("")
    time.sleep(600)

@app.task
async def on_the_loop() -> None:
    pathlib.Path("began").write_text("")
    time.sleep(600)

@app.task(cpu=True)
def in_a_process() -> None:
    pathlib.Path("began").write_text(str(os.getpid()))
    time.sleep(600)
"""


class Worker:
    """`hapax-worker` with a handler that does not end."""

    def __init__(self, task: str, environment: dict[str, str], folder: pathlib.Path, *arguments: str) -> None:
        (folder / "slow.py").write_text(WORKER)
        self.began = folder / "began"
        command = [sys.executable, "-m", "hapax.worker.main", "slow:app", *arguments]
        self.process = subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.DEVNULL)
        app = Hapax(environment["HAPAX_URL"], namespace=environment["HAPAX_NAMESPACE"])
        hapax.sync(app.submit(task))
        app.close()
        ends = time.monotonic() + 30
        while not self.began.exists():
            assert time.monotonic() < ends, "the handler did not begin"
            time.sleep(0.02)


@pytest.mark.parametrize("task", ["on_a_thread", "on_the_loop", "in_a_process"])
@pytest.mark.works
def test_a_second_signal_ends_at_once(task: str, url: str, environment: dict[str, str], tmp_path: pathlib.Path) -> None:
    worker = Worker(task, environment, tmp_path)
    began = time.monotonic()
    worker.process.terminate()
    time.sleep(0.3)
    assert worker.process.poll() is None  # it drains
    worker.process.terminate()
    assert worker.process.wait(20) == 128 + signal.SIGTERM
    assert time.monotonic() - began < 10


@pytest.mark.works
def test_draining_ends_after_the_grace(url: str, environment: dict[str, str], tmp_path: pathlib.Path) -> None:
    worker = Worker("on_a_thread", environment, tmp_path, "--grace", "300ms", "--lease", "2s")
    began = time.monotonic()
    worker.process.terminate()
    assert worker.process.wait(30) == 0
    assert time.monotonic() - began < 15


def is_running(pid: int) -> bool:
    try:
        return ") Z " not in pathlib.Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False


@pytest.mark.works
def test_a_killed_worker_takes_its_processes_with_it(
    url: str, environment: dict[str, str], tmp_path: pathlib.Path
) -> None:
    worker = Worker("in_a_process", environment, tmp_path)
    while not worker.began.read_text():
        time.sleep(0.01)
    process = int(worker.began.read_text())
    assert is_running(process)
    worker.process.kill()
    worker.process.wait()
    ends = time.monotonic() + 10
    while is_running(process):
        assert time.monotonic() < ends, "the process of the handler lives on"
        time.sleep(0.02)
