"""huey on Redis. The key is the task's id, which does not keep the second one out."""

from __future__ import annotations

from typing import Any

import load
from huey import RedisHuey


class HueyPeer(load.Peer):
    name = "huey"
    package = module = "huey"
    settings = {"workers": 8, "worker_type": "thread", "blocking": True}
    is_async = False

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self.huey = RedisHuey("bench", port=options.redis, blocking=True)

        @self.huey.task(name="noop")
        def noop(payload: dict[str, Any]) -> dict[str, Any]:
            load.began(payload["i"])
            return {"ok": payload["i"]}

        self.noop = noop
        self.submitted = 0

    def submit(self, payload: dict[str, Any], key: str | None = None) -> Any:
        self.submitted += 1
        task = self.noop.s(payload)
        if key is not None:
            task.id = key
        return self.huey.enqueue(task)

    def work(self) -> None:
        self.huey.create_consumer(workers=self.settings["workers"], worker_type="thread").run()

    async def total(self) -> int:
        return int(self.huey.storage.queue_size())

    async def waiting(self) -> int:
        return self.submitted - int(self.huey.storage.result_store_size())


if __name__ == "__main__":
    load.main(HueyPeer)
