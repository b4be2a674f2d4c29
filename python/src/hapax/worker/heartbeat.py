"""The worker's side of its heartbeats."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from hapax.transport.http import Address


class Heartbeat:
    """Keeps leases from a process of its own, see `heartbeat_process.py`. `told` hears of what is cancelled or lost, on
    the worker's loop."""

    def __init__(self, address: Address, lease_s: float, told: Callable[[str, bool], None]) -> None:
        """`told` gets a lease, and whether it is lost (or else cancelled)."""
        self._told = told
        self._loop = asyncio.get_running_loop()
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(Path(__file__).with_name("heartbeat_process.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the worker, which drains
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input = self._process.stdin.fileno()
        self._output = self._process.stdout.fileno()
        os.set_blocking(self._output, False)
        self._pending = b""
        self._loop.add_reader(self._output, self._read)
        where = {
            "host": address.host,
            "port": address.port,
            "prefix": address.prefix,
            "fixed": address.fixed,
            "tls": address.tls,
            "cafile": os.environ.get("SSL_CERT_FILE"),
            "lease_s": lease_s,
        }
        self._say(where)

    @property
    def pid(self) -> int:
        return self._process.pid

    def add(self, leases: list[str]) -> None:
        """From now on these leases are kept."""
        self._say({"add": leases})

    def remove(self, leases: list[str]) -> None:
        """These are not needed any more."""
        self._say({"remove": leases})

    def _say(self, message: dict[str, Any]) -> None:
        data = json.dumps(message).encode() + b"\n"
        with contextlib.suppress(BrokenPipeError):  # it was ended; the leases run out
            while data:
                data = data[os.write(self._input, data) :]

    def _read(self) -> None:
        try:
            data = os.read(self._output, 65_536)
        except BlockingIOError:
            return
        if not data:
            self._loop.remove_reader(self._output)
            return
        *lines, self._pending = (self._pending + data).split(b"\n")
        for line in lines:
            message = json.loads(line)
            if "lost" in message:
                self._told(message["lost"], True)
            else:
                self._told(message["cancel"], False)

    def close(self) -> None:
        """Ends the process."""
        self._loop.remove_reader(self._output)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.stdout.close()
        try:
            self._process.wait(2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
