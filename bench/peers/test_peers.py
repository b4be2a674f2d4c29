"""The calculations of bench/peers, and that it rejects a peer that did not do the work.

Run as `/usr/bin/python3 -m pytest bench/peers` from anywhere.
"""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import catalogue
import chart
import machine
import python_environments
import report
import run

FACTS = {
    "date": "2026-11-16", "processors": 2, "processor": "a processor", "memory_gib": 4, "kernel": "6", "file_system": "ext4",
    "fdatasyncs_per_second": 4000, "postgres": "15", "redis": "7", "node": "22", "rounds": 3, "quick": False,
}  # fmt: skip


def line(peer, measure, value, **more):
    return {"peer": peer, "version": "1", "measure": measure, "unit": "tasks/s", "count": 1, "value": value, "noise": 0.01, **more}


def summary(*lines):
    return report.Summary([{"facts": FACTS}, *lines])


def verdict(found, against):
    return next(one for one in found.verdicts() if one.target.against == against)


def test_a_figure_is_the_median_of_its_rounds():
    assert summary(*(line("pg-boss", "bulk", value) for value in (5, 900, 7))).median("bulk", "pg-boss") == 7


def test_a_ratio_is_against_the_best_peer_on_postgresql():
    found = summary(line("pg-boss", "bulk", 100), line("DBOS", "bulk", 50), line("BullMQ on Redis, always", "bulk", 999),
                    line("Hapax", "bulk", 150), line("Hapax over HTTP", "bulk", 800))  # fmt: skip
    best = verdict(found, "best on PostgreSQL")
    assert (best.best, best.ratio, best.met) == ("pg-boss", 1.5, True)


def test_a_drain_is_compared_apart_with_those_that_keep_results_and_those_that_do_not():
    found = summary(line("pg-boss", "drain", 100, keeps_results=True), line("graphile-worker", "drain", 200, keeps_results=False),
                    line("Hapax", "drain", 220, keeps_results=True))  # fmt: skip
    assert verdict(found, "best that keeps results").met
    assert not verdict(found, "best that drops results").met
    assert not found.all_met()


def test_a_shorter_latency_is_the_better_one():
    found = summary(line("pg-boss", "latency", 4, p50=4, p99=8), line("BullMQ on Redis, always", "latency", 2, p50=2, p99=12),
                    line("Hapax", "latency", 1, p50=1, p99=16))  # fmt: skip
    p50, p99 = (one for one in found.verdicts() if one.target.measure == "latency")
    assert (p50.best, p50.ratio, p50.met) == ("BullMQ on Redis, always", 2, True)
    assert (p99.best, p99.ratio, p99.met) == ("pg-boss", 0.5, False)


def test_a_long_workflow_is_compared_with_a_short_one_of_hapax_itself():
    found = summary(line("DBOS", "long_workflow", 900, of_short=100), line("Hapax", "long_workflow", 60, of_short=100))
    own = verdict(found, "its own of 100 steps")
    assert (own.best_value, own.ratio, own.met) == (100, 0.6, False)


def test_hapax_from_python_is_compared_with_the_python_peers_and_with_the_c_library():
    found = summary(line("Celery", "drain", 100), line("absurd", "drain", 120), line("pg-boss", "drain", 5000),
                    line("Hapax", "drain", 3000), line("Hapax from Python", "drain", 600))  # fmt: skip
    peer, library = verdict(found, "best Python peer"), verdict(found, "the C++ library")
    assert (peer.best, peer.ratio, peer.met) == ("absurd", 5, True)
    assert (library.best, library.ratio, library.met) == ("Hapax", 0.2, False)


def test_a_limit_is_a_figure_of_its_own():
    found = summary(line("Hapax from Python", "idle", 50, cpu_percent=0.0))
    memory, processor = verdict(found, "40 MiB"), verdict(found, "1 % of a core")
    assert (memory.ratio, memory.met, processor.met) == (0.8, False, True)
    assert found.table()[1][1] == "50.0 / 0.0 %"


def test_every_python_peer_has_a_program_and_exact_versions():
    for peer in catalogue.PEERS:
        if peer.is_python:
            assert (catalogue.FOLDER / peer.script).exists()
            if not peer.is_hapax:
                wanted = (python_environments.REQUIREMENTS / f"{peer.environment}.txt").read_text().splitlines()
                assert wanted
                assert all("==" in each for each in wanted)


def test_a_way_to_use_hapax_is_compared_with_the_embedded_one_on_the_same_store():
    found = summary(line("Hapax", "bulk", 100), line("Hapax over HTTP", "bulk", 59), line("Hapax from C", "bulk", 81),
                    line("Hapax on SQLite", "bulk", 10), line("Hapax on SQLite over HTTP", "bulk", 7))  # fmt: skip
    assert [(one.target.subject, one.ratio, one.met) for one in found.verdicts()] == [
        ("Hapax over HTTP", 0.59, False),
        ("Hapax on SQLite over HTTP", 0.7, True),
        ("Hapax from C", 0.81, True),
    ]


def test_a_latency_over_http_may_be_half_as_long_again():
    found = summary(line("Hapax", "latency", 2, p50=2, p99=3), line("Hapax over HTTP", "latency", 3, p50=3, p99=9))
    assert [(one.target.subject, one.met) for one in found.verdicts()] == [("Hapax over HTTP", True)]


def test_the_processor_time_of_each_side_is_shown():
    found = summary(line("Hapax", "bulk", 1, client_cpu_us=20), line("Hapax over HTTP", "bulk", 1, client_cpu_us=5, server_cpu_us=30))
    assert found.cpu_table()[1:] == [["Hapax", "20.0"], ["Hapax over HTTP", "5.00 + 30.0"]]
    assert "5.00 + 30.0" in found.markdown()


def test_what_a_peer_does_not_have_is_a_dash_and_no_verdict():
    found = summary({"peer": "pg-boss", "version": "1", "measure": "workflow", "unsupported": True, "noise": 0},
                    line("DBOS", "workflow", 140))  # fmt: skip
    assert found.table()[1][1] == "–"
    assert not found.verdicts()


def test_the_page_and_the_chart_show_every_peer_that_was_measured():
    found = summary(*(line(peer.name, "bulk", 1000 + place) for place, peer in enumerate(catalogue.PEERS)))
    drawn = xml.etree.ElementTree.fromstring(chart.draw(found))
    names = [text.text for text in drawn.iter("{http://www.w3.org/2000/svg}text")]
    for peer in catalogue.PEERS:
        assert (peer.name in names) != peer.is_python
        assert f"| {peer.name} |" in found.markdown()


@pytest.mark.parametrize("value, text", [(1.234, "1.23"), (45.67, "45.7"), (789.4, "789"), (7894, "7,890"), (123456, "123,000")])
def test_figures_are_shown_with_the_digits_that_count(value, text):
    assert report.shown(value) == text


class StandIn(run.Lab):
    """A lab without servers, in which a peer is any program."""

    def __init__(self, program):  # no servers are started
        self._program = program
        self._options = argparse.Namespace(tries=1, noise=1, quiet_seconds=0)

    def _command(self, peer, measure, count):
        return [sys.executable, "-c", self._program]

    def _pids(self):
        return [os.getpid()]


@pytest.mark.parametrize(
    "program, complaint",
    [
        ("import sys; sys.exit('results in the store: 1999, where it should be 2000')", "results in the store: 1999"),
        ("print('done')", "no figure"),
        ("""print('{"count": 1999, "value": 5}')""", "no figure of 2000"),
        ("", "no figure"),
    ],
)
def test_a_peer_that_did_not_do_the_work_ends_the_run(program, complaint):
    with pytest.raises(run.Failed, match=complaint):
        StandIn(program).run(catalogue.PEERS[0], catalogue.MEASURES[3], 2000)


def test_a_peer_that_did_it_is_filed_under_its_name():
    program = f"print({json.dumps(json.dumps(line('any', 'drain', 5, count=2000)))})"
    found = StandIn(program).run(catalogue.PEERS[0], catalogue.MEASURES[3], 2000)
    assert (found["peer"], found["value"]) == (catalogue.PEERS[0].name, 5)


# A peer in memory, which may lose one task, or one result.
IN_MEMORY_PEER = """
import {{ measure }} from '{load}';
const tasks = new Map();
const put = (payload) => payload.i === {lost} || tasks.set(payload.i, {{ payload, done: false }});
measure({{
  peer: 'in memory', version: '1', settings: {{}},
  open() {{}}, settle() {{}}, close() {{}},
  submit: (payload) => put(payload),
  bulk: (payloads) => payloads.forEach(put),
  worker(mode, on_task) {{
    setImmediate(() => tasks.forEach((task) => {{
      on_task(task.payload);
      task.done = task.payload.i !== {without_result};
    }}));
    return () => {{}};
  }},
  total: () => tasks.size,
  completed: () => tasks.size,
  results: () => [...tasks.values()].filter((task) => task.done).length,
}});
"""


def run_in_memory(tmp_path, measure, lost=None, without_result=None):
    script = tmp_path / "peer.mjs"
    numbers = {"lost": "null" if lost is None else lost, "without_result": "null" if without_result is None else without_result}
    script.write_text(IN_MEMORY_PEER.format(load=(catalogue.FOLDER / "load.mjs").as_uri(), **numbers))
    command = ["node", str(script), "--measure", measure, "--count", "200", "--batch", "100"]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("measure", ["submit_key", "submit_duplicate", "bulk", "drain"])
def test_a_measure_believes_a_peer_that_has_every_task(tmp_path, measure):
    done = run_in_memory(tmp_path, measure)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["count"] == 200


@pytest.mark.parametrize("measure", ["submit_key", "submit_duplicate", "bulk", "drain"])
def test_a_measure_finds_the_one_task_that_a_peer_has_lost(tmp_path, measure):
    done = run_in_memory(tmp_path, measure, lost=77)
    assert done.returncode != 0
    assert "where it should be" in done.stderr
    assert done.stdout == ""


def test_a_drain_finds_the_one_result_that_a_peer_has_lost(tmp_path):
    done = run_in_memory(tmp_path, "drain", without_result=77)
    assert done.returncode != 0
    assert "results in the store: 199, where it should be 200" in done.stderr


# ---- the meter of what others use


def used(others, ours=0.0, shared=0.0, stolen=0.0):
    return machine.Used(others, ours, shared, stolen)


def test_others_are_counted_one_by_one_with_those_that_ended_meanwhile():
    start = used({"shell": (10, 0), "compiler": (50, 0)})
    end = used({"shell": (11, 80), "newcomer": (7, 0)})  # the compiler used 30 more, and has ended

    assert machine.foreign_ticks(start, end) == 1 + 30 + 7


def test_interrupts_count_in_proportion_and_stolen_time_as_a_whole():
    start, end = used({"a": (0, 0)}), used({"a": (100, 0)}, ours=300, shared=40, stolen=5)

    assert machine.foreign_ticks(start, end) == 100 + 10 + 5
    assert machine.foreign_ticks(used({}), used({}, ours=300, shared=40)) == 0


@pytest.fixture
def foreign_load():
    """A process that computes all the time and is no descendant of this one: its pid."""
    endless = "while True: pass"
    started = subprocess.run(
        ["sh", "-c", '"$0" -c "$1" >/dev/null 2>&1 & echo $!', sys.executable, endless], capture_output=True, text=True, check=True
    )
    pid = int(started.stdout)
    yield pid
    os.kill(pid, signal.SIGKILL)


def ticks_of(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def test_the_meter_sees_a_load_of_known_size(foreign_load):
    """The same window twice: in one the load is ours. So whatever else runs here is in both."""
    began, before = time.monotonic(), ticks_of(foreign_load)
    without, including = machine.Noise([foreign_load]), machine.Noise([])
    while ticks_of(foreign_load) - before < 100:
        assert time.monotonic() - began < 60
        time.sleep(0.05)
    seen, known = including.share() - without.share(), ticks_of(foreign_load) - before
    elapsed = (time.monotonic() - began) * os.cpu_count() * os.sysconf("SC_CLK_TCK")

    assert seen == pytest.approx(known / elapsed, rel=0.1, abs=0.01)
