"""The test's own PostgreSQL: in its own directory, on a socket in it, ended with the test."""

import contextlib
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import tempfile
import urllib.parse

# Small, but durable.
SETTINGS = """
listen_addresses = ''
max_connections = 100
shared_buffers = 64MB
fsync = on
synchronous_commit = on
log_min_messages = warning
"""


def _bin():
    """The newest PostgreSQL that Debian's packages have installed."""
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda p: int(p.parts[-3]))
    assert found, "there is no PostgreSQL; install Debian's package postgresql"
    return found[-1].parent


class Postgres:
    """Runs as the user postgres if the test runs as root, because PostgreSQL refuses to run as root."""

    def __init__(self):
        self.user = "postgres" if os.geteuid() == 0 else None
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="hapax-chaos-pg-"))
        if self.user:
            account = pwd.getpwnam(self.user)
            os.chown(self.home, account.pw_uid, account.pw_gid)
        self.data, self.sockets, self.log = self.home / "data", self.home, self.home / "log"
        self.role = "postgres"

    def create(self):
        self._run("initdb", "-D", self.data, "-U", self.role, "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C")
        self.configure(SETTINGS + f"unix_socket_directories = '{self.sockets}'\n")
        return self

    def create_as_standby_of(self, primary):
        """A standby of the primary. After promotion it has no standby itself."""
        self._run("pg_basebackup", "-D", self.data, "-R", "-X", "stream", "-c", "fast", "-U", primary.role,
                  "-h", primary.sockets)
        self.configure(f"unix_socket_directories = '{self.sockets}'\nsynchronous_standby_names = ''\n"
                       f"primary_conninfo = 'host={primary.sockets} user={primary.role} application_name=standby'\n")
        return self

    def configure(self, lines):
        with open(self.data / "postgresql.auto.conf", "a") as file:
            file.write(lines)

    def start(self):
        self._control("start", "-l", self.log)
        return self

    def stop(self, mode="immediate"):
        """fast: ends sessions and writes everything; immediate: like a crash."""
        self._control("stop", "-m", mode)

    def restart(self, mode):
        self.stop(mode)
        self.start()

    def freeze(self):
        """Stops all of its processes where they are; clients wait."""
        for pid in self._processes():
            os.kill(pid, signal.SIGSTOP)

    def thaw(self):
        for pid in self._processes():
            with contextlib.suppress(ProcessLookupError):  # a process whose client is gone ends as soon as it continues
                os.kill(pid, signal.SIGCONT)

    def _processes(self):
        """The pids, beginning with the postmaster."""
        first = int((self.data / "postmaster.pid").read_text().split()[0])
        found = [first]
        for status in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                parent = int(status.read_text().rpartition(")")[2].split()[1])
            except OSError:  # it has ended
                continue
            if parent == first:
                found.append(int(status.parent.name))
        return found

    def dump(self, database="hapax"):
        """A backup of the database, for restore()."""
        file = self.home / "dump"
        self._run("pg_dump", "-h", self.sockets, "-U", self.role, "-Fc", "-f", file, database)
        return file

    def restore(self, file, database="hapax"):
        """Restores a backup in place of the current database."""
        self._run("pg_restore", "-h", self.sockets, "-U", self.role, "--clean", "--if-exists", "-d", database, file)

    def promote(self):
        self._control("promote")

    def reload(self):
        self._control("reload")

    def ask(self, sql, database="postgres"):
        return self._run("psql", "-h", self.sockets, "-U", self.role, "-d", database, "-Atqc", sql).strip()

    def url(self, *others, database="hapax"):
        """Names this server, and the others to try if it takes no writes."""
        hosts = ",".join(str(server.sockets) for server in (self, *others))
        return f"postgres://{self.role}@/{database}?host={urllib.parse.quote(hosts, safe='/,')}"

    def close(self):
        if (self.data / "postmaster.pid").exists():
            self.thaw()
            self.stop()
        shutil.rmtree(self.home)

    def _control(self, action, *arguments):
        self._run("pg_ctl", action, "-w", "-t", "60", "-D", self.data, *arguments)

    def _run(self, program, *arguments):
        command = [str(_bin() / program), *map(str, arguments)]
        # Into a file, because a server started by pg_ctl keeps its standard output open.
        with tempfile.TemporaryFile() as output:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd="/",
                                  user=self.user, group=self.user, env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"}, check=False)
            output.seek(0)
            text = output.read().decode(errors="replace")
        log = self.log.read_text(errors="replace")[-2000:] if done.returncode and self.log.exists() else ""
        assert done.returncode == 0, f"{' '.join(command)}: {text}\n{log}"
        return text
