"""procrastinate: PostgreSQL with LISTEN/NOTIFY. The key is its queueing lock, which holds until the task is taken."""

from __future__ import annotations

import contextlib
from typing import Any

import load
import procrastinate
from procrastinate import exceptions


class ProcrastinatePeer(load.Peer):
    name = "procrastinate"
    package = module = "procrastinate"
    settings = {"connections": 20, "concurrency": 100}
    keeps_results = False

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        url = options.postgres.replace("postgres://", "postgresql://", 1)
        connector = procrastinate.PsycopgConnector(conninfo=url, max_size=self.settings["connections"])
        self.app = procrastinate.App(connector=connector)

        @self.app.task(name="noop")
        async def noop(payload: dict[str, Any]) -> None:
            load.began(payload["i"])

        self.noop = noop

    async def open(self) -> None:
        await self.app.open_async()
        await self.app.schema_manager.apply_schema_async()

    async def submit(self, payload: dict[str, Any], key: str | None = None) -> Any:
        if key is None:
            return await self.noop.defer_async(payload=payload)
        with contextlib.suppress(exceptions.AlreadyEnqueued):
            return await self.noop.configure(queueing_lock=key).defer_async(payload=payload)

    def work(self) -> None:
        import asyncio

        async def main() -> None:
            async with self.app.open_async():
                await self.app.run_worker_async(concurrency=self.settings["concurrency"])

        asyncio.run(main())

    async def _count(self, where: str) -> int:
        query = f"select count(*) as count from procrastinate_jobs where {where}"
        return int((await self.app.connector.execute_query_one_async(query))["count"])

    async def total(self) -> int:
        return await self._count("true")

    async def waiting(self) -> int:
        return await self._count("status <> 'succeeded'")

    async def close(self) -> None:
        await self.app.close_async()


if __name__ == "__main__":
    load.main(ProcrastinatePeer)
