"""arq on Redis. The key is its job id."""

from __future__ import annotations

from typing import Any

import arq
import load
from arq.connections import RedisSettings


async def noop(ctx: Any, payload: dict[str, Any]) -> dict[str, Any]:
    load.began(payload["i"])
    return {"ok": payload["i"]}


class ArqPeer(load.Peer):
    name = "arq"
    package = module = "arq"
    settings = {"max_jobs": 100, "poll_s": 0.01}

    @property
    def redis(self) -> RedisSettings:
        return RedisSettings(port=self.options.redis)

    async def open(self) -> None:
        self.pool = await arq.create_pool(self.redis)

    async def submit(self, payload: dict[str, Any], key: str | None = None) -> Any:
        return await self.pool.enqueue_job("noop", payload, _job_id=key)

    def work(self) -> None:
        import asyncio

        asyncio.set_event_loop(asyncio.new_event_loop())
        arq.worker.Worker(
            functions=[noop],
            redis_settings=self.redis,
            max_jobs=self.settings["max_jobs"],
            poll_delay=self.settings["poll_s"],
        ).run()

    async def total(self) -> int:
        return int(await self.pool.zcard("arq:queue"))

    async def waiting(self) -> int:
        return await self.total()  # a job leaves it when it is done


if __name__ == "__main__":
    load.main(ArqPeer)
