"""The servers and worker processes of a run, all on one store."""

import pathlib
import subprocess
import sys

from server import Server, clean_environment

HERE = pathlib.Path(__file__).resolve().parent
CONFIG = """
[queues.chaos]
retention = "7d"
"""


class Cluster:
    """A server listens on another port after each restart. It writes the port into a file that clients read."""

    def __init__(self, directory, store, seed, servers=2, workers=4, late_share=0.02, lease_s=2, environment=None):
        self.directory, self.store, self.seed = pathlib.Path(directory), store, seed
        self.record = self.directory / "record"
        self.record.mkdir(parents=True)
        self.servers = [
            Server(self.directory / f"server-{n}", store=store, config=CONFIG, arguments=["--log-level", "warn"],
                   environment=environment)
            for n in range(servers)
        ]
        self.port_files = [self.directory / f"server-{n}.port" for n in range(servers)]
        self.workers = [None] * workers
        self.lives = [0] * workers
        self.late_share, self.lease_s = late_share, lease_s

    def start(self):
        for n in range(len(self.servers)):
            self.start_server(n)
        for n in range(len(self.workers)):
            self.start_worker(n)
        return self

    def start_server(self, n):
        self.servers[n].start(deadline_s=60)
        fresh = self.port_files[n].with_suffix(".fresh")
        fresh.write_text(str(self.servers[n].port))
        fresh.rename(self.port_files[n])

    def kill_server(self, n):
        self.servers[n].kill()

    def start_worker(self, n):
        self.lives[n] += 1
        life = f"{self.seed}/{n}/{self.lives[n]}"
        arguments = [self.record, f"worker-{n}", life, self.late_share, self.lease_s, *self.port_files]
        self.workers[n] = subprocess.Popen(
            [sys.executable, str(HERE / "worker.py"), *map(str, arguments)],
            env={**clean_environment(self.directory), "PYTHONDONTWRITEBYTECODE": "1"},
        )

    def kill_worker(self, n):
        if self.workers[n] is not None:
            self.workers[n].kill()
            self.workers[n].wait()

    def stop(self):
        for n in range(len(self.workers)):
            self.kill_worker(n)
        for server in self.servers:
            server.kill()

    def log(self):
        return "\n".join(f"--- {server.directory.name}\n{server.log[-3000:]}" for server in self.servers)
