"""PostgreSQL and Redis servers for a benchmark: each on a free port, in its own directory, ended by its pid."""

import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess
import time

START_SECONDS = 60
STOP_SECONDS = 60


class ServerError(Exception):
    pass


def end_in_order_on_sigterm():
    """Lets SIGTERM unwind this process as Ctrl-C does, so that its servers are stopped."""

    def unwind(_signal, _frame):
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, unwind)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def postgres_folder():
    """The folder of the newest PostgreSQL's programs."""
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1].parent
    on_path = shutil.which("initdb")
    if on_path:
        return pathlib.Path(on_path).parent
    raise ServerError("there is no PostgreSQL here: apt-get install postgresql")


class _Server:
    """A child process with its own log."""

    name = "server"

    def __init__(self, command, log, stop_signal, as_user=()):
        self._log = log
        self._stop_signal = stop_signal
        # It ends with this process, however this process ends.
        command = ["setpriv", *as_user, "--pdeathsig", stop_signal.name.removeprefix("SIG"), *command]
        with log.open("w") as out:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)

    @property
    def pid(self):
        return self._process.pid

    def _await(self, is_ready):
        end = time.monotonic() + START_SECONDS
        while not is_ready():
            if self._process.poll() is not None or time.monotonic() > end:
                self.stop()
                raise ServerError(f"{self.name} did not start; its log says:\n{self._log.read_text(errors='replace')}")
            time.sleep(0.05)

    def stop(self):
        if self._process.poll() is not None:
            return
        self._process.send_signal(self._stop_signal)
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Postgres(_Server):
    """A cluster as initdb leaves it: its default configuration, fsync and synchronous_commit on."""

    name = "PostgreSQL"

    def __init__(self, folder):
        self._programs = postgres_folder()
        self.port = free_port()
        data = folder / "postgres"
        as_user = []
        data.mkdir(parents=True)
        if os.geteuid() == 0:  # it refuses to run as root
            user = pwd.getpwnam("postgres")
            os.chown(data, user.pw_uid, user.pw_gid)
            as_user = ["--reuid=postgres", "--regid=postgres", "--init-groups"]
        initdb = ["setpriv", *as_user, str(self._programs / "initdb"), "-D", str(data), "-U", "postgres", "-A", "trust", "-E", "UTF8"]
        made = subprocess.run([*initdb, "--locale=C.UTF-8"], capture_output=True, text=True, check=False)
        if made.returncode != 0:
            raise ServerError(
                f"initdb failed in {data}:\n{made.stderr}"
                "If it says that the folder cannot be reached, choose another one with --dir: the user postgres has to get there."
            )
        command = [str(self._programs / "postgres"), "-D", str(data), "-p", str(self.port)]
        command += ["-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={data}"]
        super().__init__(command, folder / "postgres.log", signal.SIGINT, as_user)
        self._await(lambda: self._ask("postgres", "select 1").returncode == 0)

    def url(self, database="postgres"):
        return f"postgres://postgres@127.0.0.1:{self.port}/{database}"

    def _ask(self, database, statement):
        command = [str(self._programs / "psql"), "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", self.url(database)]
        return subprocess.run([*command, "-c", statement], capture_output=True, text=True, check=False)

    def run(self, statement, database="postgres"):
        """The result of the statement, as psql prints it."""
        answer = self._ask(database, statement)
        if answer.returncode != 0:
            raise ServerError(f"PostgreSQL refused '{statement}': {answer.stderr.strip()}")
        return answer.stdout.strip()

    def fresh_database(self, name):
        """The URL of an empty database of that name."""
        self.run(f"drop database if exists {name} with (force)")
        self.run(f"create database {name}")
        return self.url(name)

    def version(self):
        return self.run("show server_version").split()[0]


class Redis(_Server):
    """Append-only, flushed as `appendfsync` says, nothing ever evicted."""

    name = "Redis"

    def __init__(self, folder, appendfsync):
        program = shutil.which("redis-server")
        if not program:
            raise ServerError("there is no redis-server here: apt-get install redis-server")
        self.port = free_port()
        data = folder / f"redis-{appendfsync}"
        data.mkdir(parents=True)
        command = [program, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(data), "--save", ""]
        command += ["--appendonly", "yes", "--appendfsync", appendfsync, "--maxmemory-policy", "noeviction"]
        super().__init__(command, folder / f"redis-{appendfsync}.log", signal.SIGTERM)
        self._await(self._is_ready)

    def empty(self):
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as connection:
            connection.sendall(b"FLUSHALL\r\n")
            if not connection.recv(64).startswith(b"+OK"):
                raise ServerError("Redis could not be emptied")

    def _is_ready(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(64).startswith(b"+PONG")
        except OSError:
            return False

    @staticmethod
    def version():
        said = subprocess.run(["redis-server", "--version"], capture_output=True, text=True, check=True).stdout
        return said.split("v=")[1].split()[0]
