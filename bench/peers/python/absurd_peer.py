"""absurd: a queue of PostgreSQL functions, with its Python SDK. The key is its idempotency key."""

from __future__ import annotations

import asyncio
import pathlib
import subprocess
import sys
from typing import Any

import load
import psycopg
from absurd_sdk import AsyncAbsurd, AsyncTaskContext

QUEUE = "bench"
SCHEMA = pathlib.Path(__file__).resolve().parents[3] / "build" / "peers" / "absurd.sql"


class AbsurdPeer(load.Peer):
    name = "absurd"
    package, module = "absurd-sdk", "absurd_sdk"
    settings = {"connections": 32, "concurrency": 100, "poll_s": 0.02}

    @property
    def url(self) -> str:
        return self.options.postgres.replace("postgres://", "postgresql://", 1)

    def _make_schema(self) -> None:
        """From a file that lies there, or as its own command gets it."""
        if SCHEMA.exists():
            with psycopg.connect(self.url, autocommit=True) as connection:
                connection.execute(SCHEMA.read_text())  # type: ignore[arg-type]
            return
        command = [str(pathlib.Path(sys.executable).parent / "absurdctl"), "init", "-d", self.url]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    async def open(self) -> None:
        self._make_schema()
        self.connection = await psycopg.AsyncConnection.connect(self.url, autocommit=True)
        self.idle = [AsyncAbsurd(self.url, QUEUE) for _ in range(self.settings["connections"])]
        await self.idle[0].create_queue(QUEUE)
        self.free = asyncio.Semaphore(len(self.idle))

    async def submit(self, payload: dict[str, Any], key: str | None = None) -> Any:
        async with self.free:
            client = self.idle.pop()
            try:
                return await client.spawn("noop", payload, queue=QUEUE, idempotency_key=key)
            finally:
                self.idle.append(client)

    def work(self) -> None:
        app = AsyncAbsurd(self.url, QUEUE)

        @app.register_task("noop", queue=QUEUE)
        async def noop(params: Any, ctx: AsyncTaskContext) -> Any:
            load.began(params["i"])
            return {"ok": params["i"]}

        asyncio.run(
            app.start_worker(concurrency=self.settings["concurrency"], poll_interval=self.settings["poll_s"])
        )

    async def _count(self, where: str) -> int:
        found = await self.connection.execute(f"select count(*) from absurd.t_{QUEUE} where {where}")  # type: ignore[arg-type]
        row = await found.fetchone()
        return int(row[0]) if row else 0

    async def total(self) -> int:
        return await self._count("true")

    async def waiting(self) -> int:
        return await self._count("state <> 'completed'")


if __name__ == "__main__":
    load.main(AbsurdPeer)
