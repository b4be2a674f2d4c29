"""A wrong URL, no server, something else than a server, a missing wheel, fork."""

from __future__ import annotations

import compileall
import datetime
import multiprocessing
import os
import pathlib
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

import hapax
from hapax import Hapax
from hapax.testing import Server
from hapax.transport import library


def answer(listener: socket.socket, text: bytes) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        connection.recv(65_536)
        connection.sendall(text)
        connection.close()


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made


def url_of(listener: socket.socket) -> str:
    return f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_a_wrong_url_says_what_to_write() -> None:
    with pytest.raises(hapax.InvalidRequest, match="sqlite:FILE"):
        Hapax("redis://localhost")


def test_a_missing_engine_says_which_wheel_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HAPAX_LIBRARY", raising=False)
    monkeypatch.setattr(library, "find", lambda: None)
    library.load.cache_clear()
    try:
        with pytest.raises(hapax.NativeMissing, match="manylinux"):
            hapax.sync(Hapax("sqlite:orders.db").submit("t"))
    finally:
        library.load.cache_clear()


def test_no_server_is_an_error_that_is_safe_to_retry(listener: socket.socket) -> None:
    url = url_of(listener)
    listener.close()
    with pytest.raises(hapax.StoreUnavailable, match="there is no Hapax server") as caught:
        hapax.sync(Hapax(url).submit("t"))
    assert caught.value.safe_to_retry


@pytest.mark.parametrize("text", [b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n<html", b"SSH-2.0-x\r\n\r\n"])
def test_something_else_than_a_server_is_told_apart(listener: socket.socket, text: bytes) -> None:
    threading.Thread(target=answer, args=(listener, text), daemon=True).start()
    with pytest.raises(hapax.Error, match=r"no answer of a Hapax server|does not speak HTTP"):
        hapax.sync(Hapax(url_of(listener)).submit("t"))


def test_an_old_server_is_named(listener: socket.socket) -> None:
    body = b'{"error":"RouteNotFound","message":"There is no route at this path."}'
    text = b"HTTP/1.1 404 Not Found\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)
    threading.Thread(target=answer, args=(listener, text), daemon=True).start()
    app = Hapax(url_of(listener))
    with pytest.raises(hapax.OldServer, match="upgrade it first") as caught:
        hapax.sync(app.workflow_handle("w").update("more", 1, request_key="k"))
    assert caught.value.code == "RouteNotFound"


def test_a_time_without_a_zone_is_refused_before_anything_is_sent(app: Hapax) -> None:
    naive = datetime.datetime(2026, 3, 1)

    @app.task
    async def remind(at: datetime.datetime) -> None: ...

    with pytest.raises(hapax.InvalidRequest, match="has no time zone") as caught:
        remind.options(run_at=naive).submit_sync(naive.astimezone())
    assert caught.value.pointer == "/run_at"
    with pytest.raises(hapax.InvalidInput, match="has no time zone") as wrong:
        remind.submit_sync(naive)
    assert wrong.value.pointer == "/at"
    with pytest.raises(hapax.InvalidRequest, match="500ms"):
        remind.options(timeout="soon").submit_sync(naive.astimezone())
    with pytest.raises(hapax.InvalidRequest, match="negative"):
        remind.options(delay=-1).submit_sync(naive.astimezone())
    assert hapax.sync(app.call("GET", "/v1/tasks"))["executions"] == []


def test_a_server_that_comes_back_is_found_again(own_server: Server) -> None:
    app = Hapax(own_server.url)
    first = hapax.sync(app.submit("t", idempotency_key="k"))
    own_server.kill()
    own_server.start()
    again = hapax.sync(app.submit("t", idempotency_key="k"))
    assert again.id == first.id
    assert not again.created


def use_in_child(app: Hapax, results: multiprocessing.Queue[str]) -> None:
    try:
        hapax.sync(app.submit("t", idempotency_key="k"))
    except hapax.ForkError as error:
        results.put(error.code)
    app.after_fork()
    results.put(str(hapax.sync(app.submit("t", idempotency_key="k")).created))


def test_an_app_opened_before_a_fork_says_what_to_do(app: Hapax) -> None:
    assert hapax.sync(app.submit("t", idempotency_key="k")).created
    forking = multiprocessing.get_context("fork")
    results: multiprocessing.Queue[str] = forking.Queue()
    child = forking.Process(target=use_in_child, args=(app, results))
    child.start()
    assert results.get(timeout=20) == "ForkError"
    # The child opens anew: a server has the task, an engine in memory is a new one.
    assert results.get(timeout=20) == ("True" if app.url == "memory:" else "False")
    child.join(20)
    assert not hapax.sync(app.submit("t", idempotency_key="k")).created  # the parent's connection still works


def cpu_s(environment: dict[str, str], program: str) -> float:
    """The processor time of a fresh interpreter that runs this."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)


def test_import_takes_no_longer_than_six_starts_of_an_interpreter(tmp_path: pathlib.Path) -> None:
    """60 ms where a bare start takes 10 ms. A ratio of processor times, so that a busy machine does not fail it."""
    installed = tmp_path / "hapax"  # with its bytecode, as pip installs it
    shutil.copytree(pathlib.Path(hapax.__file__).parent, installed, ignore=shutil.ignore_patterns("__pycache__"))
    assert compileall.compile_dir(installed, quiet=1)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    bare, importing = [], []
    for _ in range(11):
        bare.append(cpu_s(environment, "pass"))
        importing.append(cpu_s(environment, "import hapax"))
    start_s, with_import_s = statistics.median(bare), statistics.median(importing)
    took = f"a bare start takes {start_s * 1000:.0f} ms, import hapax {(with_import_s - start_s) * 1000:.0f} ms more"
    print(took)
    assert with_import_s - start_s <= 6 * start_s, took


def test_import_opens_nothing() -> None:
    program = (
        "import sys; before = set(sys.modules); import hapax; hapax.Hapax('http://127.0.0.1:1'); "
        "print(sorted({'asyncio', 'ssl', 'http.client', 'sqlite3', 'pydantic'} & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert out.stdout == "[]\n"
