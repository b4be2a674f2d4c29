"""Measures Hapax next to other task queues: one machine, one PostgreSQL, one run.

`./dev peers` builds and runs it. Every round runs every measure on every peer, one after the other, so that a slow
minute of the machine affects all of them. Figures are medians of the rounds. Each run is a separate process on an empty
database. It checks that all the work was done; if not, the benchmark ends. README.md describes the measures.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys

import catalogue
import machine
import python_environments
import report
import servers

ROOT = catalogue.FOLDER.parents[1]
RUN_SECONDS = 900
PYTHON_BESIDE = ("Hapax", "Hapax in two processes", "Hapax over HTTP")


class Failed(Exception):
    pass


class Lab:
    """The servers of a run, and the measuring of a peer on them."""

    def __init__(self, options, names):
        self._options = options
        self._folder = options.dir
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)
        self._postgres, self._redis = None, {}
        try:
            self._postgres = servers.Postgres(self._folder)
            for appendfsync in sorted({peer.redis for peer in names if peer.redis}):
                self._redis[appendfsync] = servers.Redis(self._folder, appendfsync)
        except BaseException:
            self.close()
            raise

    def close(self):
        for server in [*self._redis.values(), *filter(None, [self._postgres])]:
            server.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def facts(self):
        return machine.facts(self._folder, self._postgres, next(iter(self._redis.values()), None))

    def _command(self, peer, measure, count):
        if peer.is_python:
            command = [str(python_environments.python_of(peer)), "-B", str(catalogue.FOLDER / peer.script)]
        elif peer.script:
            command = ["node", "--no-deprecation", str(catalogue.FOLDER / peer.script)]
        else:
            command = [str(self._options.programs / peer.program)]
        command += ["--measure", measure.name, "--count", str(count)]
        if peer.on_sqlite:
            command += ["--store", f"sqlite:{self._fresh_file()}"]
        elif peer.on_postgres:
            command += ["--postgres", self._postgres.fresh_database("peer")]
        else:
            self._redis[peer.redis].empty()
            command += ["--redis", str(self._redis[peer.redis].port)]
        command += peer.arguments
        if "--server" in peer.arguments:
            command.append(str(self._options.hapax))
        return command

    def _fresh_file(self):
        folder = self._folder / "sqlite"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        return folder / "peer.db"

    def _run_once(self, peer, measure, count):
        command = self._command(peer, measure, count)
        noise = machine.Noise(self._pids())
        try:
            environment = python_environments.variables(self._options.hapax) if peer.is_python else None
            done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_SECONDS, check=False, env=environment)
        except OSError as error:
            raise Failed(f"{peer.name}: {error}; ./dev peers builds and installs what is missing") from None
        except subprocess.TimeoutExpired as late:
            raise Failed(f"{peer.name}, {measure.name}: not done after {RUN_SECONDS} s: {' '.join(command)}\n{late.stderr}") from None
        if done.returncode != 0:
            raise Failed(f"{peer.name}, {measure.name}: it did not do the work: {' '.join(command)}\n{done.stderr}")
        try:
            line = json.loads(done.stdout)
            complete = line.get("unsupported") or (line["count"] == count and line["value"] > 0)
        except (ValueError, KeyError, TypeError):
            complete = False
        if not complete:
            raise Failed(f"{peer.name}, {measure.name}: it printed no figure of {count}: '{done.stdout}'\n{done.stderr}")
        return {**line, "peer": peer.name, "noise": noise.share()}

    def _pids(self):
        return [self._postgres.pid, *(redis.pid for redis in self._redis.values())]

    def run(self, peer, measure, count):
        """The line of one run; if other processes disturbed it, the least disturbed of a few runs."""
        best = None
        for _ in range(self._options.tries):
            if self._options.quiet_seconds:
                machine.wait_until_quiet(self._pids(), self._options.noise, self._options.quiet_seconds)
            line = self._run_once(peer, measure, count)
            if best is None or line["noise"] < best["noise"]:
                best = line
            if line.get("unsupported") or line["noise"] <= self._options.noise:
                break
        return best


def chosen(everything, names, what):
    if not names:
        return everything
    unknown = set(names) - {one.name for one in everything}
    if unknown:
        raise Failed(f"there is no {what} {', '.join(sorted(unknown))}; there are: {', '.join(one.name for one in everything)}")
    return tuple(one for one in everything if one.name in names)


def measure_all(options):
    everything = tuple(peer for peer in catalogue.PEERS if not options.python or peer.is_python or peer.name in PYTHON_BESIDE)
    peers = chosen(everything, options.peer, "peer")
    measures = chosen(catalogue.MEASURES, options.measure, "measure")
    for peer in peers:
        if peer.is_python:
            python_environments.make(peer)
    lab = Lab(options, peers)
    lines = []
    options.results.parent.mkdir(parents=True, exist_ok=True)
    with options.results.open("w") as kept:

        def keep(line):
            lines.append(line)
            kept.write(json.dumps(line) + "\n")
            kept.flush()

        try:
            keep({"facts": {**lab.facts(), "rounds": options.rounds, "quick": options.quick}})
            for round_number in range(1, options.rounds + 1):
                for measure in measures:
                    for peer in peers:
                        if not peer.has(measure):
                            continue
                        line = lab.run(peer, measure, catalogue.count_of(measure, peer, options.quick))
                        keep({**line, "round": round_number})
                        print(report.progress(line, round_number), file=sys.stderr, flush=True)
        finally:
            lab.close()
    return lines


def parse():
    parser = argparse.ArgumentParser(prog="./dev peers", description="Measures Hapax next to other task queues on this machine.")
    parser.add_argument("--quick", action="store_true", help="one round with small counts: does everything work? No figures to quote")
    parser.add_argument("--rounds", type=int, help="how often everything is measured (3; quick: 1)")
    parser.add_argument("--peer", action="append", metavar="NAME", help="only this one; may be given again")
    parser.add_argument("--measure", action="append", metavar="NAME", help="only this one; may be given again")
    parser.add_argument("--python", action="store_true", help="only the Python peers, and the C++ library beside them")
    parser.add_argument("--tries", type=int, default=3, help="runs of a measure that others disturb, before the best of them is taken (3)")
    parser.add_argument("--noise", type=float, default=0.1, help="share of the processors that others may use during a run (0.1)")
    parser.add_argument("--quiet-seconds", type=int, help="how long to wait for a quiet machine before a run (60; quick: 0)")
    parser.add_argument("--docs", action="store_true", help="keep the results, and write docs/performance.md and its chart from them")
    parser.add_argument("--from", dest="source", type=pathlib.Path, metavar="FILE", help="measure nothing: report these results again")
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "build" / "peers.jsonl", help="where the raw lines go")
    parser.add_argument("--dir", type=pathlib.Path, default=ROOT / "build" / "peers-data", help="of the servers' data; emptied")
    parser.add_argument("--hapax", type=pathlib.Path, default=ROOT / "build" / "bench" / "hapax", help=argparse.SUPPRESS)
    parser.add_argument("--programs", type=pathlib.Path, default=ROOT / "build" / "bench" / "bench" / "peers", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.quick and options.docs:
        parser.error("--quick makes no figures to publish: run --docs without it")
    options.rounds = options.rounds or (1 if options.quick else 3)
    options.tries = 1 if options.quick else options.tries
    if options.quiet_seconds is None:
        options.quiet_seconds = 0 if options.quick else 60
    return options


def main():
    options = parse()
    servers.end_in_order_on_sigterm()
    try:
        lines = report.read(options.source) if options.source else measure_all(options)
        summary = report.Summary(lines)
    except KeyboardInterrupt:
        print("peers: interrupted", file=sys.stderr)
        return 130
    except (Failed, servers.ServerError, report.BadResults, python_environments.NotMade) as failure:
        print(f"peers: {failure}", file=sys.stderr)
        return 2
    print(summary.text())
    if options.docs:
        report.publish(options.source or options.results, summary, ROOT)
    return 0 if summary.is_quick or summary.all_met() else 1


if __name__ == "__main__":
    sys.exit(main())
