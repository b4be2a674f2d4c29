"""DBOS Transact for Python: PostgreSQL, durable workflows. A task is a queued workflow of one step, its key the id."""

from __future__ import annotations

import threading
from typing import Any

import load
from dbos import DBOS, DBOSClient

QUEUE = "noop_queue"


@DBOS.step()
def only(number: int) -> dict[str, Any]:
    load.began(number)
    return {"ok": number}


@DBOS.workflow()
def noop(payload: dict[str, Any]) -> dict[str, Any]:
    return only(payload["i"])


@DBOS.step()
async def add(number: int) -> int:
    return number + 1


@DBOS.workflow()
async def three_steps(payload: dict[str, Any]) -> int:
    number: int = payload["i"]
    for _ in range(3):
        number = await add(number)
    return number


class DbosPeer(load.Peer):
    name = "DBOS for Python"
    package = module = "dbos"
    settings = {"pool": 20, "worker_concurrency": 100, "poll_s": 0.05}
    is_async = False

    def _launch(self) -> None:
        config = {
            "name": "hapax-bench",
            "system_database_url": self.url,
            "sys_db_pool_size": self.settings["pool"],
            "application_version": "1",
            "log_level": "ERROR",
        }
        DBOS(config=config)  # type: ignore[arg-type]
        DBOS.launch()

    @property
    def url(self) -> str:
        return self.options.postgres.replace("postgres://", "postgresql://", 1)

    async def open(self) -> None:
        self._launch()
        poll = self.settings["poll_s"]
        await DBOS.register_queue_async(
            QUEUE, worker_concurrency=self.settings["worker_concurrency"], polling_interval_sec=poll
        )
        if self.options.measure != "workflow":
            DBOS.destroy()
        self.client = DBOSClient(system_database_url=self.url, system_database_pool_size=self.settings["pool"])
        import psycopg

        self.connection = psycopg.connect(self.url, autocommit=True)

    def submit(self, payload: dict[str, Any], key: str | None = None) -> Any:
        options: Any = {"queue_name": QUEUE, "workflow_name": "noop", "app_version": "1"}
        if key is not None:
            options["workflow_id"] = key
        return self.client.enqueue(options, payload)

    def work(self) -> None:
        self._launch()
        threading.Event().wait()

    def _count(self, where: str) -> int:
        row = self.connection.execute(f"select count(*) from dbos.workflow_status where {where}").fetchone()
        return int(row[0]) if row else 0

    async def total(self) -> int:
        return self._count("true")

    async def waiting(self) -> int:
        return self._count("status <> 'SUCCESS'")

    async def run_workflow(self, payload: dict[str, Any], key: str) -> Any:
        from dbos import SetWorkflowID

        with SetWorkflowID(key):
            handle = await DBOS.start_workflow_async(three_steps, payload)
        return await handle.get_result()


if __name__ == "__main__":
    load.main(DbosPeer)
