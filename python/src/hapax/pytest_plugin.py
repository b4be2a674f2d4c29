"""The pytest plugin: the fixtures `hapax_app` and `hapax_server`. It is there when the package is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Iterator

    from hapax.testing import Server, TestHapax


@pytest.fixture
def hapax_app() -> Iterator[TestHapax]:
    """An app in memory with a clock that skips."""
    from hapax.testing import TestHapax

    app = TestHapax()
    yield app
    app.close()


@pytest.fixture
def hapax_server(tmp_path: pathlib.Path) -> Iterator[Server]:
    """A server for the time of the test."""
    from hapax.testing import Server

    server = Server(tmp_path).start()
    yield server
    server.stop()
