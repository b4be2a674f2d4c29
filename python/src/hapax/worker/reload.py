"""`hapax-worker --reload`: a worker in a process of its own, started again when a source file changes."""

from __future__ import annotations

import logging
import os
import pathlib
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_log = logging.getLogger("hapax.worker")

_LOOK_EVERY_S = 0.3
_NOT_OURS = {".git", "build", "node_modules", "__pycache__", ".venv", "venv"}


def changes(directory: pathlib.Path) -> dict[str, float]:
    """When each source file below the directory was changed."""
    found = {}
    for folder, folders, files in os.walk(directory):
        folders[:] = [name for name in folders if name not in _NOT_OURS]
        for name in files:
            if name.endswith(".py"):
                path = os.path.join(folder, name)
                try:
                    found[path] = os.stat(path).st_mtime
                except OSError:
                    continue  # it was just removed
    return found


def run_and_reload(arguments: Sequence[str]) -> int:
    """Works until a signal. Its exit code is that of the last worker."""
    command = [sys.executable, "-m", "hapax.worker.main", *arguments]
    child: subprocess.Popen[bytes] | None = None
    stopping = False

    def stop(number: int, frame: object) -> None:
        nonlocal stopping
        stopping = True
        if child is not None:
            child.send_signal(signal.SIGTERM)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    directory = pathlib.Path.cwd()
    while True:
        before = changes(directory)
        child = subprocess.Popen(command, start_new_session=True)
        while child.poll() is None and (stopping or changes(directory) == before):
            time.sleep(_LOOK_EVERY_S)
        if stopping:
            return child.wait()
        if child.poll() is None:
            _log.info("a source file has changed; starting again")
            child.send_signal(signal.SIGTERM)
            child.wait()
            continue
        _log.info("the worker ended with %d; waiting for a change", child.returncode)
        while not stopping and changes(directory) == before:
            time.sleep(_LOOK_EVERY_S)
        if stopping:
            return child.returncode
