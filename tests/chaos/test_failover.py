"""A primary with a synchronous standby. The primary is lost under load, the standby takes over, and servers find it by
a connection string that names both. What was acknowledged was on both."""

import time

from record import read_lines
from scenario import run, seed, size


def until(condition, deadline_s=30):
    end = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < end, "the standby does not follow"
        time.sleep(0.05)


def acknowledged(record):
    return sum(line["answered"] is not None for line in read_lines(record, "events-client-*"))


def test_nothing_acknowledged_is_lost_when_the_standby_is_promoted(tmp_path, new_postgres):
    primary = new_postgres().create().start()
    primary.ask("CREATE DATABASE hapax")
    standby = new_postgres().create_as_standby_of(primary).start()
    primary.configure("synchronous_standby_names = 'standby'\n")
    primary.reload()
    until(lambda: primary.ask("SELECT sync_state FROM pg_stat_replication") == "sync")
    before = []

    def fail_over():
        before.append(acknowledged(tmp_path / "record"))
        primary.stop("immediate")
        standby.promote()

    found, numbers = run(tmp_path, primary.url(standby), size(), seed(), also=[(0.5, fail_over)])

    print(numbers, "acknowledged before the failover:", before)
    assert found == []
    assert 0 < before[0] < numbers["acknowledged"], "the failover was not under load"
    assert standby.ask("SELECT pg_is_in_recovery()") == "f"
