"""The process that keeps a worker's leases, whatever the worker's own process is busy with.

A handler that holds the GIL or blocks the event loop stops everything in its process. This one has nothing to do but
heartbeats. It runs this file alone, without importing the library, and ends when its standard input does: a worker that
is killed stops keeping its leases.

It reads lines of JSON: the first says where the server is, the others `{"add": [leases]}` or `{"remove": [leases]}`. It
writes `{"cancel": lease}` and `{"lost": lease}`.
"""

from __future__ import annotations

import json
import os
import select
import socket
import sys
import time
from typing import Any

_MOST_LEASES = 500  # in one request


class Server:
    """One connection, opened again after every failure."""

    def __init__(self, where: dict[str, Any]) -> None:
        self.where = where
        self.connection: Any = None

    def post(self, target: str, body: Any) -> tuple[int, Any]:
        data = json.dumps(body).encode()
        head = (
            f"POST {self.where['prefix']}{target} HTTP/1.1\r\n{self.where['fixed']}"
            f"content-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n"
        )
        for fresh in (self.connection is None, True):
            try:
                if self.connection is None:
                    self.connection = self.connect()
                self.connection.sendall(head.encode() + data)
                return self.read()
            except OSError:
                self.close()
                if fresh:
                    raise
        raise OSError("unreachable")

    def connect(self) -> Any:
        plain = socket.create_connection((self.where["host"], self.where["port"]), timeout=10)
        if not self.where["tls"]:
            return plain
        import ssl

        context = ssl.create_default_context(cafile=self.where.get("cafile"))
        return context.wrap_socket(plain, server_hostname=self.where["host"])

    def read(self) -> tuple[int, Any]:
        received = b""
        while b"\r\n\r\n" not in received:
            received += self.more()
        head, _, body = received.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        headers = {
            name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])
        }
        while len(body) < int(headers.get("content-length", "0")):
            body += self.more()
        if headers.get("connection", "").lower() == "close":
            self.close()
        return int(lines[0].split(" ")[1]), json.loads(body)

    def more(self) -> bytes:
        data: bytes = self.connection.recv(65_536)
        if not data:
            raise ConnectionResetError("the server closed the connection")
        return data

    def close(self) -> None:
        if self.connection is not None:
            self.connection.close()
            self.connection = None


def say(message: dict[str, Any]) -> None:
    os.write(1, json.dumps(message).encode() + b"\n")


def beat(server: Server, leases: dict[str, bool], lease_s: float) -> None:
    """Extends all leases. What is lost or cancelled is said once."""
    held = list(leases)
    for start in range(0, len(held), _MOST_LEASES):
        body = {"leases": held[start : start + _MOST_LEASES], "lease": f"{round(lease_s * 1000)}ms"}
        status, answer = server.post("/v1/claims/heartbeat", body)
        if status != 200:
            continue
        for each in answer["leases"]:
            lease = each["lease"]
            if lease not in leases:
                continue
            if not each["ok"]:
                del leases[lease]
                say({"lost": lease})
            elif each.get("cancel_requested") and not leases[lease]:
                leases[lease] = True
                say({"cancel": lease})


def main() -> None:
    pending = b""
    where: dict[str, Any] | None = None
    server: Server | None = None
    leases: dict[str, bool] = {}  # and whether its cancel was said
    interval_s, next_beat = 20.0, time.monotonic() + 20.0
    while True:
        ready, _, _ = select.select([0], [], [], max(0.0, next_beat - time.monotonic()) if leases else None)
        if ready:
            data = os.read(0, 65_536)
            if not data:
                return
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                message = json.loads(line)
                if where is None:
                    where, server = message, Server(message)
                    interval_s = message["lease_s"] / 3
                    continue
                if not leases:
                    next_beat = time.monotonic() + interval_s
                for lease in message.get("add", ()):
                    leases[lease] = False
                for lease in message.get("remove", ()):
                    leases.pop(lease, None)
        if where is not None and server is not None and leases and time.monotonic() >= next_beat:
            try:
                beat(server, leases, where["lease_s"])
                next_beat = time.monotonic() + interval_s
            except (OSError, ValueError, KeyError):
                server.close()
                next_beat = time.monotonic() + min(1.0, interval_s / 3)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(0)
