"""`kill -9` before and after every report of a worker: the order workflow ends, each effect under one key, and an
update has one answer."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

import hapax
from hapax.testing import Server

from .conftest import WORKERS, environment_of

pytestmark = pytest.mark.works
PROGRAM = pathlib.Path(__file__).with_name("crashing_order.py")
KILLED = -9


def work(
    claims: str, url: str, namespace: str, log: pathlib.Path, at: int, when: str
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(PROGRAM), url, namespace, str(log), str(at), when]
    environment = {**environment_of(claims), "PYTHONPATH": str(pathlib.Path(hapax.__file__).parents[1])}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


def crash(claims: str, url: str, folder: pathlib.Path, at: int, when: str) -> int | None:
    """Runs the order with a crash, and to its end; checks it. The number of reports, if it did not crash."""
    name = f"{at}-{when}"
    namespace, log = f"crash-{uuid.uuid4()}", folder / f"{name}.log"
    own_url = url or f"sqlite:{folder / name}.db"
    done = work(claims, own_url, namespace, log, at, when)
    crashed = done.returncode == KILLED
    if crashed:
        done = work(claims, own_url, namespace, log, 0, "never")
    assert done.returncode == 0, f"{name}: {done.stderr}"
    result, reports = json.loads(done.stdout)
    assert result == ["ch_456", "ada", 3, True, "thanks", 3, 3], name
    effects = {line for line in log.read_text().splitlines() if line}
    assert sorted(line.split()[0] for line in effects) == ["charge", "express", "ship", "thank", "wrap"], name
    return None if crashed else int(reports)


@pytest.mark.parametrize("claims", WORKERS)
def test_an_order_survives_a_kill_at_every_report(claims: str, server: Server, tmp_path: pathlib.Path) -> None:
    url = server.url if claims.startswith("http") else ""
    reports = crash(claims, url, tmp_path, 0, "never")
    assert reports is not None
    assert reports >= 6
    with ThreadPoolExecutor(8) as several:
        points = [(at, when) for at in range(1, reports + 3) for when in ("before", "after")]
        crashes = list(several.map(lambda point: crash(claims, url, tmp_path, *point) is None, points))
    assert sum(crashes) >= reports  # how reports are gathered differs from run to run, most on a busy machine
