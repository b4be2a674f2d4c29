"""The calculations of bench/peers, and that it rejects a peer that did not do the work.

Run as `/usr/bin/python3 -m pytest bench/peers` from anywhere.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import xml.etree.ElementTree

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import catalogue
import chart
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
        assert peer.name in names
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
