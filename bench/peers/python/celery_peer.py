"""Celery on Redis, with Redis for its results. The key is its task id, which does not keep the second one out."""

from __future__ import annotations

from typing import Any

import celery
import load
import redis


class CeleryPeer(load.Peer):
    name = "Celery"
    package = module = "celery"
    settings = {"pool": "prefork", "processes": 2, "prefetch": 64}
    is_async = False

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self.app = celery.Celery("bench", broker=f"redis://127.0.0.1:{options.redis}/0")
        self.app.conf.update(
            result_backend=f"redis://127.0.0.1:{options.redis}/1",
            worker_prefetch_multiplier=self.settings["prefetch"],
            broker_pool_limit=32,
            task_acks_late=True,  # what a worker has that dies is not lost
        )

        @self.app.task(name="noop")
        def noop(payload: dict[str, Any]) -> dict[str, Any]:
            load.began(payload["i"])
            return {"ok": payload["i"]}

        self.noop = noop
        self.broker = redis.Redis(port=options.redis, db=0)
        self.results = redis.Redis(port=options.redis, db=1)
        self.submitted = 0

    def submit(self, payload: dict[str, Any], key: str | None = None) -> Any:
        self.submitted += 1
        return self.noop.apply_async((payload,), task_id=key)

    def work(self) -> None:
        processes = str(self.settings["processes"])
        self.app.worker_main(["worker", "--concurrency", processes, "--loglevel", "ERROR", "--without-gossip"])

    async def total(self) -> int:
        return int(self.broker.llen("celery"))

    async def waiting(self) -> int:
        return self.submitted - int(self.results.dbsize())


if __name__ == "__main__":
    load.main(CeleryPeer)
