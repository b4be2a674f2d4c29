"""Servers and apps for the tests.

The program is `$HAPAX_PROGRAM`, else that of the build directory, else `hapax` on the PATH. Every test that uses the
fixture `app` runs once for each transport that is there.
"""

from __future__ import annotations

import os
import pathlib
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hapax import Hapax
from hapax.testing import Server
from hapax.transport.library import Library

pytest_plugins = ["hapax.pytest_plugin"]
ROOT = pathlib.Path(__file__).resolve().parents[2]


def use_built_program() -> None:
    built = ROOT / "build" / "test" / "hapax"
    if "HAPAX_PROGRAM" not in os.environ and built.exists():
        os.environ["HAPAX_PROGRAM"] = str(built)


use_built_program()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all tests; each app has a namespace of its own on it."""
    running = Server(tmp_path_factory.mktemp("server")).start()
    yield running
    running.stop()


@pytest.fixture
def own_server(tmp_path: pathlib.Path) -> Iterator[Server]:
    """A server that the test may kill; it keeps its data in a file."""
    running = Server(tmp_path, f"sqlite:{tmp_path / 'own.db'}").start()
    yield running
    running.stop()


def find_library() -> str | None:
    """The C library: `$HAPAX_LIBRARY`, else that of the build directory."""
    named = os.environ.get("HAPAX_LIBRARY")
    built = ROOT / "build" / "test" / "libhapax_capi.so"
    return named or (str(built) if built.exists() else None)


LIBRARY = find_library()
if LIBRARY:
    os.environ["HAPAX_LIBRARY"] = LIBRARY
TRANSPORTS = ["http", "native"] if LIBRARY else ["http"]
# With the engine, a worker of a server claims through it; `http` is all in Python.
WORKERS = ["http", "http_with_engine", "native"] if LIBRARY else ["http"]


def environment_of(worker: str) -> dict[str, str]:
    """For a program whose worker claims that way."""
    return {**os.environ, "HAPAX_LIBRARY": ""} if worker == "http" else dict(os.environ)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A library without workers runs the tests that need none."""
    if LIBRARY is None or Library(pathlib.Path(LIBRARY)).has_worker:
        return
    left = [item for item in items if "native" in item.name and item.get_closest_marker("works")]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item not in left]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Tests with a worker run on every way to claim."""
    if "new_app" in metafunc.fixturenames:
        works = any(metafunc.definition.iter_markers("works"))
        metafunc.parametrize("new_app", WORKERS if works else TRANSPORTS, indirect=True)


@pytest.fixture
def new_app(request: pytest.FixtureRequest) -> Iterator[Callable[[], Hapax]]:
    """Makes apps on one engine: several of them see the same tasks."""
    apps: list[Hapax] = []
    transport: Any = None
    if request.param.startswith("http"):
        from hapax.transport.http import HttpTransport

        url, namespace = request.getfixturevalue("server").url, f"test-{uuid.uuid4()}"
        if request.param == "http":
            transport = HttpTransport(url, headers={"hapax-namespace": namespace})
    else:
        from hapax.transport.native import NativeTransport

        url, namespace, transport = "memory:", None, NativeTransport("memory:")

    def make() -> Hapax:
        app = Hapax(url, namespace=namespace, transport=transport)
        apps.append(app)
        return app

    yield make
    for app in apps:
        app.close()


@pytest.fixture
def app(new_app: Callable[[], Hapax]) -> Hapax:
    return new_app()
