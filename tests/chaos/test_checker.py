"""The checker must find violations: in altered records, and in a system that breaks a promise."""

import json
import shutil
from dataclasses import replace

import lying_proxy
import pytest
from checker import check, summary
from lying_proxy import LyingProxy
from scenario import Size, run

SMALL = Size(seconds=1.5, clients=4, keys_each=25, servers=1, workers=3, late_share=0.15)


@pytest.fixture(scope="module")
def honest_record(tmp_path_factory):
    """Each execution has one effect."""
    directory = tmp_path_factory.mktemp("honest")
    found, _ = run(directory, f"sqlite:{directory / 'q.db'}", replace(SMALL, late_share=0), 1, disturb=False)
    assert found == []
    return directory / "record"


@pytest.fixture
def record(honest_record, tmp_path):
    """A copy to be altered."""
    return shutil.copytree(honest_record, tmp_path / "record")


def alter(record, pattern, change, wanted=lambda line: True):
    """Replaces the last matching line by another, by several, or (None) by nothing."""
    for path in sorted(record.glob(pattern)):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for n in reversed(range(len(lines))):
            if wanted(lines[n]):
                changed = change(lines[n])
                lines[n:n + 1] = changed if isinstance(changed, list) else [changed] if changed else []
                path.write_text("".join(json.dumps(line) + "\n" for line in lines))
                return
    raise AssertionError(f"nothing to alter in {pattern}")


def answered(line):
    return line["answered"] is not None


def accepted(line):
    return line["event"] == "Finished" and line["accepted"]


ALTERATIONS = {
    "a lost execution": ("final.jsonl", lambda line: None, None, "is lost"),
    "a second execution of a key": ("final.jsonl", lambda line: [line, {**line, "id": "other"}], None, "has 2 executions"),
    "an unfinished task": ("final.jsonl", lambda line: {**line, "status": "pending"}, None, "although all work was done"),
    "another result": ("final.jsonl", lambda line: {**line, "result": "other"}, None, "was finished with"),
    "another input": ("final.jsonl", lambda line: {**line, "nonce": "other"}, None, "another input"),
    "another answer": ("events-client-*", lambda line: {**line, "id": "other"}, answered, "was answered with 2 executions"),
    "a key created twice": ("events-client-*", lambda line: {**line, "created": True},
                            lambda line: answered(line) and not line["created"], "created 2 times"),
    "a key never acknowledged": ("keys.jsonl", lambda line: [line, {"key": "silent"}], None, "was never acknowledged"),
    "no effect": ("effects-*", lambda line: None, None, "without an effect"),
    "an effect nobody claimed": ("effects-*", lambda line: [line, {**line, "attempt": 99}], None, "that nobody claimed"),
    "another effect key": ("effects-*", lambda line: [line, {**line, "effect_key": "other"}], None, "different effect keys"),
    "an effect of nothing": ("effects-*", lambda line: [line, {**line, "id": "ghost"}], None, "is not there"),
    "a lease nobody was given": ("events-worker-*", lambda line: {**line, "lease": "forged"}, accepted,
                                 "a lease that nobody was given"),
    "a stale finish": ("events-worker-*",
                       lambda line: [{"event": "Claimed", "sent": line["sent"] - 2, "answered": line["sent"] - 1,
                                      "id": line["id"], "attempt": line["attempt"] + 1, "lease": "newer"}, line],
                       accepted, "a stale finish"),
    "an attempt handed out twice": ("events-worker-*", lambda line: [line, {**line, "lease": "second"}],
                                    lambda line: line["event"] == "Claimed", "was handed out 2 times"),
}


def test_an_honest_record_has_no_violations(record):
    assert check(record) == []
    assert summary(record)["executions"] == 100


@pytest.mark.parametrize("name", ALTERATIONS)
def test_an_altered_record_is_found(record, name):
    pattern, change, wanted, sentence = ALTERATIONS[name]
    alter(record, pattern, change, wanted or (lambda line: True))

    assert any(sentence in violation for violation in check(record)), check(record)


LIES = {
    lying_proxy.submits_twice: "executions",
    lying_proxy.forgets_the_key: "executions",
    lying_proxy.acknowledges_too_early: "is lost",
    lying_proxy.accepts_stale_reports: "leases",
    lying_proxy.loses_effects: "without an effect",
}


def run_behind(lie, directory):
    """All clients and workers talk to the server through the proxy."""
    proxies = []

    def in_front(cluster):
        proxies.append(LyingProxy(cluster.servers[0].port, lie))
        cluster.port_files[0].write_text(str(proxies[0].port))
        for n in range(len(cluster.workers)):
            cluster.kill_worker(n)
            cluster.start_worker(n)
        return [lambda: proxies[0].port]

    try:
        return run(directory, f"sqlite:{directory / 'q.db'}", SMALL, 1, disturb=False, in_front=in_front)
    finally:
        for proxy in proxies:
            proxy.close()


def test_an_honest_proxy_changes_nothing(tmp_path):
    found, _ = run_behind(lying_proxy.honest, tmp_path)
    assert found == []


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.__name__)
def test_a_system_that_lies_is_found(tmp_path, lie):
    found, _ = run_behind(lie, tmp_path)

    assert any(LIES[lie] in violation for violation in found), found
