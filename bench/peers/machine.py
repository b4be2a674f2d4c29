"""The machine of the figures: its facts, and how much of it other processes used."""

import dataclasses
import datetime
import os
import pathlib
import platform
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


@dataclasses.dataclass(frozen=True)
class Used:
    """Processor time so far, in ticks."""

    by_process: dict  # of the processes that are not ours: their own, and of their children that have ended
    ours: float
    shared: float  # interrupts and the kernel's threads: they work for whoever asked
    stolen: float  # by other guests of the hypervisor


def foreign_ticks(start, end):
    """What others used between the two. Interrupts and the kernel's threads count in proportion."""
    own = of_ended = 0.0
    for process, (ticks, ended) in end.by_process.items():
        before = start.by_process.get(process, (0.0, 0.0))
        own += ticks - before[0]
        of_ended += ended - before[1]
    # Who has ended meanwhile is told by its parent, with what it had used before.
    known = sum(sum(ticks) for process, ticks in start.by_process.items() if process not in end.by_process)
    foreign = own + max(0.0, of_ended - known)
    ours, shared = end.ours - start.ours, end.shared - start.shared
    of_shared = shared * foreign / (foreign + ours) if foreign > 0 else 0.0
    return foreign + of_shared + end.stolen - start.stolen


class Noise:
    """A window of time: the share of the processors that other processes, or other guests of the hypervisor, used.

    Ours are this process, the servers, and all their descendants. The others are counted one by one. What is left of
    the busy time without ours would be wrong: the kernel samples the one and measures the other, and small loads vanish
    in the difference.
    """

    def __init__(self, server_pids):
        self._roots = {os.getpid(), *server_pids}
        self._began, self._start = time.monotonic(), self._used()

    def share(self):
        end, elapsed = self._used(), time.monotonic() - self._began
        total = max(1.0, elapsed * os.cpu_count() * os.sysconf("SC_CLK_TCK"))
        return round(foreign_ticks(self._start, end) / total, 3)

    def _used(self):
        cpu = [int(field) for field in pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        processes = _processes()
        ours, kernel, by_process = 0.0, 0.0, {}
        for pid, (parent, began, ticks, ended) in processes.items():
            if parent == 2 or pid == 2:
                kernel += ticks
            elif self._is_ours(pid, processes):
                ours += ticks + ended
            else:
                by_process[pid, began] = (ticks, ended)
        return Used(by_process, ours, kernel + cpu[5] + cpu[6], cpu[7])

    def _is_ours(self, pid, processes):
        while pid in processes and pid not in self._roots:
            pid = processes[pid][0]
        return pid in self._roots


def _processes():
    """By pid: parent, time of start, ticks used, and ticks of its children that have ended."""
    found = {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        times = [int(field) for field in fields[11:15]]
        found[int(stat.parent.name)] = (int(fields[1]), fields[19], sum(times[:2]), sum(times[2:]))
    return found


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
