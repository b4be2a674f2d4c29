"""Dramatiq on Redis. It has no keys, and no results unless a middleware keeps them; here it keeps none."""

from __future__ import annotations

import threading
from typing import Any

import dramatiq
import load
from dramatiq.brokers.redis import RedisBroker
from dramatiq.worker import Worker


class DramatiqPeer(load.Peer):
    name = "Dramatiq"
    package = module = "dramatiq"
    settings = {"threads": 8, "keys": "none"}
    keeps_results = False
    is_async = False

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self.broker = RedisBroker(port=options.redis)
        dramatiq.set_broker(self.broker)

        @dramatiq.actor(actor_name="noop")
        def noop(payload: dict[str, Any]) -> None:
            load.began(payload["i"])

        self.noop = noop

    def submit(self, payload: dict[str, Any], key: str | None = None) -> Any:
        return self.noop.send(payload)

    def work(self) -> None:
        Worker(self.broker, worker_threads=self.settings["threads"]).start()
        threading.Event().wait()

    async def total(self) -> int:
        return int(self.broker.client.hlen("dramatiq:default.msgs"))

    async def waiting(self) -> int:
        return await self.total()  # until it is acknowledged


if __name__ == "__main__":
    load.main(DramatiqPeer)
