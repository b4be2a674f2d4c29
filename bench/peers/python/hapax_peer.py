"""Hapax from Python: the engine in the process, or with `--server` over HTTP to a `hapax serve` on the PostgreSQL."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import subprocess
import tempfile
from typing import Any

import load

import hapax


class HapaxPeer(load.Peer):
    package = module = "hapax"
    settings = {"concurrency": 64}

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self.name = "Hapax from Python, over HTTP" if options.server or options.url else "Hapax from Python"
        self.app = hapax.Hapax(options.url or options.postgres)
        self.exits = contextlib.AsyncExitStack()
        self.server: subprocess.Popen[str] | None = None

        @self.app.task
        async def noop(payload: dict[str, Any]) -> dict[str, Any]:
            load.began(payload["i"])
            return {"ok": payload["i"]}

        @self.app.task
        async def add(number: int) -> int:
            return number + 1

        @self.app.workflow
        async def three_steps(ctx: hapax.Context, payload: dict[str, Any]) -> int:
            number: int = payload["i"]
            for _ in range(3):
                number = await ctx.run(add, number)
            return number

        self.noop, self.three_steps = noop, three_steps

    async def open(self) -> None:
        if self.options.server:
            folder = tempfile.mkdtemp()
            command = [self.options.server, "serve", "--listen", "127.0.0.1:0", "--store", self.options.postgres]
            kept = {name: value for name, value in os.environ.items() if not name.startswith("HAPAX_")}
            self.server = subprocess.Popen(command, cwd=folder, env=kept, stdout=subprocess.PIPE, text=True)
            assert self.server.stdout is not None
            match = re.search(r"listening on (http://\S+:\d+)", self.server.stdout.readline())
            assert match, "the server did not start"
            self.app.url = self.options.url = match[1]
            load.sys.argv += ["--url", match[1]]  # for the worker
        await self.app.call("GET", "/v1/tasks?limit=1")

    async def submit(self, payload: dict[str, Any], key: str | None = None) -> Any:
        task = self.noop if key is None else self.noop.options(key=key)
        return await task.submit(payload)

    def work(self) -> None:
        self.app.work()

    async def waiting(self) -> int:
        queue = await self.app.call("GET", "/v1/queues/default")
        return int(queue["pending"] + queue["running"])

    async def total(self) -> int:
        found, cursor = 0, ""
        while True:
            page = await self.app.call("GET", f"/v1/tasks?limit=1000{cursor}")
            found += len(page["executions"])
            if not page["next_cursor"]:
                return found
            cursor = f"&cursor={page['next_cursor']}"

    async def begin_workflows(self) -> None:
        await self.exits.enter_async_context(self.app.worker())

    async def run_workflow(self, payload: dict[str, Any], key: str) -> Any:
        return await (await self.three_steps.start(key, payload)).result()

    async def close(self) -> None:
        await self.exits.aclose()
        if self.server is not None:
            self.server.terminate()
            await asyncio.to_thread(self.server.wait)


if __name__ == "__main__":
    load.main(HapaxPeer)
