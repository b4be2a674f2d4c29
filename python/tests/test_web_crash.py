"""The Idempotency-Key middleware in a real server that is killed in the middle of its requests."""

from __future__ import annotations

import asyncio
import os
import pathlib
import signal
import sqlite3
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from hapax.sql.tables import EFFECTS
from hapax.testing import Server

from .databases import free_port

ROOT = pathlib.Path(__file__).resolve().parents[1]


class ShopServer:
    """A web server in a process of its own, with the shop's database."""

    def __init__(self, engine: Server, folder: pathlib.Path) -> None:
        self.database = folder / "shop.db"
        with sqlite3.connect(self.database) as shop:
            shop.executescript(
                "PRAGMA journal_mode=WAL; CREATE TABLE orders (id INTEGER PRIMARY KEY, key TEXT);" + EFFECTS["sqlite"]
            )
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        program = str(ROOT / "tests" / "programs" / "shop_server.py")
        arguments = [engine.url, f"shop-{uuid.uuid4()}", str(self.database), str(self.port)]
        self._command = [sys.executable, program, *arguments]
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        self.process = subprocess.Popen(self._command, env=environment)
        ends = time.monotonic() + 60
        while True:
            try:
                httpx.get(self.url)
                return
            except httpx.TransportError:
                assert time.monotonic() < ends
                time.sleep(0.05)

    def kill(self) -> int:
        assert self.process is not None
        self.process.kill()
        return self.process.wait(20)

    def orders(self) -> dict[str, int]:
        with sqlite3.connect(self.database) as shop:
            return dict(shop.execute("SELECT key, count(*) FROM orders GROUP BY key").fetchall())


@pytest.fixture
def shop(server: Server, tmp_path: pathlib.Path) -> Iterator[ShopServer]:
    running = ShopServer(server, tmp_path)
    running.start()
    yield running
    running.kill()


def until_done(shop: ShopServer, key: str) -> tuple[dict[str, Any], list[int]]:
    """The response under this key, and what was answered before."""
    before = []
    ends = time.monotonic() + 30
    while True:
        response = httpx.post(f"{shop.url}/orders", content=b"{}", headers={"Idempotency-Key": key})
        if response.status_code == 201:
            return response.json(), before
        before.append(response.status_code)
        assert time.monotonic() < ends
        time.sleep(0.05)


@pytest.mark.parametrize("key", ["die-before", "die-after"])
def test_after_the_process_died_the_retry_runs_as_attempt_2(shop: ShopServer, key: str) -> None:
    with pytest.raises(httpx.TransportError):
        httpx.post(f"{shop.url}/orders", content=b"{}", headers={"Idempotency-Key": key})
    assert shop.process is not None
    assert shop.process.wait(20) == -signal.SIGKILL
    shop.start()
    answer, before = until_done(shop, key)
    assert answer == {"order": 1, "attempt": 2}
    assert set(before) <= {409}  # until the lease of the first has run out
    assert shop.orders() == {key: 1}
    assert until_done(shop, key) == (answer, [])


def storm(shop: ShopServer, clients: int, requests: int, kills: int) -> None:
    """Each client sends each key until it has its response; the server is killed in the middle, and starts again."""
    answers: dict[str, set[str]] = {str(key): set() for key in range(requests)}
    done = 0

    async def client(http: httpx.AsyncClient) -> None:
        nonlocal done
        for key in answers:
            while True:
                try:
                    response = await http.post("/orders", content=b"{}", headers={"Idempotency-Key": key})
                except httpx.TransportError:
                    await asyncio.sleep(0.1)
                    continue
                if response.status_code == 201:
                    break
                assert response.status_code in (409, 503), response.text
                await asyncio.sleep(0.05)
            answers[key].add(response.text)
            done += 1

    async def killer() -> None:
        for number in range(1, kills + 1):
            while done < clients * requests * number // (kills + 1):
                await asyncio.sleep(0.005)
            await asyncio.to_thread(shop.kill)
            await asyncio.to_thread(shop.start)

    async def main() -> None:
        limits = httpx.Limits(max_connections=clients)
        async with httpx.AsyncClient(base_url=shop.url, limits=limits, timeout=60) as http:
            await asyncio.gather(killer(), *(client(http) for _ in range(clients)))

    asyncio.run(main())
    assert shop.orders() == dict.fromkeys(answers, 1)
    assert {key: len(texts) for key, texts in answers.items()} == dict.fromkeys(answers, 1)


def test_a_server_killed_under_64_clients_has_one_effect_and_one_response_per_key(shop: ShopServer) -> None:
    storm(shop, clients=64, requests=4, kills=1)


@pytest.mark.slow
def test_a_server_killed_again_and_again_under_64_clients_and_200_keys(shop: ShopServer) -> None:
    storm(shop, clients=64, requests=200, kills=5)
