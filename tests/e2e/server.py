"""The `hapax serve` process under test."""

import os
import pathlib
import re
import select
import signal
import subprocess
import threading
import time

from client import Client
from slowdown import SLOWDOWN

BINARY = pathlib.Path(os.environ["HAPAX_BINARY"]).resolve()


def clean_environment(home):
    """The server gets no variables of the tester's environment, except those that sanitizers and the loader need."""
    kept = {name: value for name, value in os.environ.items() if name.endswith("SAN_OPTIONS") or name.startswith("LD_")}
    return {**kept, "PATH": "/usr/bin:/bin", "HOME": str(home), "LC_ALL": "C"}


class Server:
    """Runs in its own directory. `store` is a URL, by default q.db in the directory; `config` is the text of a
    hapax.toml; `wrapper` is a command that becomes the server (it must exec, because the process is ended by its
    pid)."""

    def __init__(self, directory, store=None, config=None, arguments=(), environment=None, wrapper=()):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.database = self.directory / "q.db"
        self.store = store or f"sqlite:{self.database}"
        self.arguments = list(arguments)
        self.environment = environment or {}
        self.wrapper = list(wrapper)
        if config is not None:
            path = self.directory / "test.toml"
            path.write_text(config)
            self.arguments += ["--config", str(path)]
        self.process = None
        self.port = None
        self.printed = ""  # on standard output, as far as it was read
        self.log = ""
        self._log_reader = None
        self.client = Client(lambda: self.port)

    def start(self, deadline_s=20):
        self.launch()
        self.port = self._read_port(time.monotonic() + deadline_s * SLOWDOWN)
        return self

    def launch(self):
        """Starts the process without waiting until it serves, for one that is expected to exit."""
        command = self.wrapper + [str(BINARY), "serve", "--listen", "127.0.0.1:0", "--store", self.store]
        self.process = subprocess.Popen(
            command + self.arguments,
            cwd=self.directory,
            env={**clean_environment(self.directory), **self.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._log_reader = threading.Thread(target=self._collect_log, args=(self.process.stderr,), daemon=True)
        self._log_reader.start()
        return self

    def wait_exit(self, deadline_s=20):
        """The exit code; the process ends by itself."""
        code = self.process.wait(deadline_s * SLOWDOWN)
        self._log_reader.join()
        self.process.stdout.close()
        return code

    def stop(self, how=signal.SIGTERM, deadline_s=20):
        if self.process is None or self.process.returncode is not None:
            return None
        self.process.send_signal(how)
        try:
            return self.wait_exit(deadline_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.wait_exit()
            raise

    def kill(self):
        return self.stop(signal.SIGKILL)

    def restart(self):
        self.stop()
        return self.start()

    @property
    def pid(self):
        return self.process.pid

    @property
    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def status_field(self, name):
        """A number of /proc/<pid>/status, such as Threads or VmRSS (in kB)."""
        text = pathlib.Path(f"/proc/{self.pid}/status").read_text()
        return int(re.search(rf"^{name}:\s+(\d+)", text, re.MULTILINE).group(1))

    def _collect_log(self, stream):
        for line in stream:
            self.log += line.decode(errors="replace")
        stream.close()

    def read_output(self, wait_s=0):
        """Adds the server's output so far to `printed`; False if it closed its standard output."""
        if not select.select([self.process.stdout], [], [], wait_s)[0]:
            return True
        piece = os.read(self.process.stdout.fileno(), 4096)
        self.printed += piece.decode()
        return bool(piece)

    def _read_port(self, deadline):
        self.printed = ""
        while (left := deadline - time.monotonic()) > 0:
            if not self.read_output(left):
                code = self.wait_exit()
                raise AssertionError(f"the server ended with {code} before it served: {self.printed}\n{self.log}")
            if found := re.search(r"listening on http://127\.0\.0\.1:(\d+)\n", self.printed):
                return int(found.group(1))
        self.kill()
        raise AssertionError(f"the server did not say where it listens: {self.printed}\n{self.log}")
