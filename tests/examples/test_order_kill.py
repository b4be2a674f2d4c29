"""Kills the order example with -9 at every single commit to its store: right before it, and right after it.

After each kill, running the program again brings the order to the same end, and each step's effect happened once. The
loop tries commit after commit and ends when a run has fewer commits than the one at which it should be killed.
"""

import os
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from server import SLOWDOWN, clean_environment

PROGRAM = os.environ["HAPAX_ORDER_KILLED"]
POINTS_AT_ONCE = 8
MOST_POINTS = 400

ORDERS = {
    "Main Street": ("shipped parcel-456\n", ["charge 9999", "reserve 456", "ship 456"]),
    "nowhere": (
        "refunded: there is no such street \n",
        ["charge 9999", "refund payment-456", "release shelf-6", "reserve 456"],
    ),
}


def run(place, street, kill=None):
    environment = clean_environment(place)
    if kill:
        environment["HAPAX_KILL"] = kill
    command = [PROGRAM, f"sqlite:{place}/orders.db", f"{place}/books", street]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60 * SLOWDOWN)


def booked(place):
    lines = (place / "books").read_text(encoding="utf-8").splitlines()
    return [line.split(" ", 1) for line in lines]


def check_end(ran, place, street):
    result, effects = ORDERS[street]
    assert ran.returncode == 0, f"{place.name}: {ran.returncode} {ran.stdout} {ran.stderr}"
    assert ran.stdout == result, place.name
    entries = booked(place)
    assert sorted(what for _, what in entries) == effects, place.name
    assert len({key for key, _ in entries}) == len(entries), place.name


def killed_at(tmp_path, street, kill):
    """Whether the program reached that point. If so, it runs again and must come to the same end."""
    place = tmp_path / kill.replace(":", "-")
    place.mkdir()
    ran = run(place, street, kill)
    if ran.returncode == 0:
        check_end(ran, place, street)
        return False
    assert ran.returncode == -signal.SIGKILL, f"{kill}: {ran.returncode} {ran.stderr}"
    check_end(run(place, street), place, street)
    return True


@pytest.mark.parametrize("street", ORDERS)
@pytest.mark.parametrize("when", ["before", "after"])
def test_an_order_survives_a_kill_at_every_commit(tmp_path, street, when):
    survived = 0
    with ThreadPoolExecutor(POINTS_AT_ONCE) as pool:
        for first in range(1, MOST_POINTS, POINTS_AT_ONCE):
            points = range(first, first + POINTS_AT_ONCE)
            came = list(pool.map(lambda n: killed_at(tmp_path, street, f"{when}:{n}"), points))
            survived += sum(came)
            if not all(came):
                break
        else:
            pytest.fail(f"an order took more than {MOST_POINTS} commits")
    print(f"{survived} points {when} a commit")
    steps = len(ORDERS[street][1])
    assert survived >= 2 + steps, "an order takes a commit for its start, one for its first turn and at least one for every step"


def test_a_world_that_does_not_know_the_key_would_be_asked_twice(tmp_path):
    """The check works: a ledger of effects that forgets the keys has an entry twice."""
    place = tmp_path / "twice"
    place.mkdir()
    check_end(run(place, "Main Street"), place, "Main Street")
    with (place / "books").open("a", encoding="utf-8") as books:
        books.write(f"{booked(place)[0][0]} charge 9999\n")
    with pytest.raises(AssertionError):
        check_end(run(place, "Main Street"), place, "Main Street")
