"""The machine of the figures: its facts, and how much of it other processes used."""

import datetime
import os
import pathlib
import platform
import resource
import subprocess
import time


def _first_line(path, starting_with):
    try:
        lines = pathlib.Path(path).read_text().splitlines()
    except OSError:
        return ""
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(starting_with)), "")


def _file_system(folder):
    found = subprocess.run(["df", "--output=fstype", str(folder)], capture_output=True, text=True, check=True)
    return found.stdout.split()[-1]


def fdatasyncs_per_second(folder, seconds=1.0):
    """How many times a second the disk syncs 8 KiB, one after another: the lower bound of every durable submit."""
    path = pathlib.Path(folder) / "fdatasync.probe"
    page = b"x" * 8192
    with path.open("wb") as probe:
        count, start = 0, time.monotonic()
        while time.monotonic() - start < seconds:
            os.pwrite(probe.fileno(), page, (count % 64) * len(page))
            os.fdatasync(probe.fileno())
            count += 1
        rate = count / (time.monotonic() - start)
    path.unlink()
    return round(rate)


def facts(folder, postgres, redis):
    node = subprocess.run(["node", "--version"], capture_output=True, text=True, check=False)
    memory_kib = int(_first_line("/proc/meminfo", "MemTotal").split()[0])
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        "processors": os.cpu_count(),
        "processor": _first_line("/proc/cpuinfo", "model name") or platform.machine(),
        "memory_gib": round(memory_kib / 1024**2, 1),
        "kernel": platform.release(),
        "file_system": _file_system(folder),
        "fdatasyncs_per_second": fdatasyncs_per_second(folder),
        "postgres": postgres.version(),
        "redis": redis.version() if redis else None,
        "node": node.stdout.strip().removeprefix("v"),
    }


class Noise:
    """A window of time: the share of the processors that other processes, or other guests of the hypervisor, used.

    Our own are this process, its children that ended in the window, and the servers with theirs.
    """

    def __init__(self, server_pids):
        self._server_pids = set(server_pids)
        self._start = self._ticks()

    def share(self):
        end = self._ticks()
        busy, ours, stolen, total = (after - before for before, after in zip(self._start, end))
        return round(max(0, busy - ours + stolen) / max(1, total), 3)

    def _ticks(self):
        cpu = [int(field) for field in pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        second = os.sysconf("SC_CLK_TCK")
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        own = sum(usage.ru_utime + usage.ru_stime for usage in used) * second
        return sum(cpu[:3]), own + self._server_ticks(), cpu[7], sum(cpu)

    def _server_ticks(self):
        ticks = 0
        for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rpartition(")")[2].split()
            except OSError:  # it has just ended
                continue
            pid, parent = int(stat.parent.name), int(fields[1])
            if pid in self._server_pids:
                ticks += sum(int(field) for field in fields[11:15])  # with its children that have ended
            elif parent in self._server_pids or parent == 2:  # the kernel's threads do our writing
                ticks += sum(int(field) for field in fields[11:13])
        return ticks


def wait_until_quiet(server_pids, share, seconds):
    """Whether the machine had two quiet seconds in a row within that time."""
    end, quiet = time.monotonic() + seconds, 0
    while quiet < 2:
        if time.monotonic() > end:
            return False
        noise = Noise(server_pids)
        time.sleep(1)
        quiet = quiet + 1 if noise.share() <= share else 0
    return True
