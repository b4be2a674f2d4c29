"""Runs the README and then docs/start.md: every shell block as printed, in one shell, in a directory like a clone.

Two things differ from what a reader does: `./dev run` starts the binary that is already built, and the port is a free
one, which the command line gets from HAPAX_URL.
"""

import os
import pathlib
import re
import subprocess

import pytest

from server import Server, clean_environment

ROOT = pathlib.Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks_of(name):
    return BLOCK.findall((ROOT / name).read_text(encoding="utf-8"))


def run(blocks, clone, server):
    script = "set -euo pipefail\n" + "\n".join(blocks).replace("localhost:7373", f"127.0.0.1:{server.port}")
    environment = {**clean_environment(clone), "HAPAX_URL": f"http://127.0.0.1:{server.port}"}
    ran = subprocess.run(
        ["bash", "-c", script], cwd=clone, env=environment, capture_output=True, text=True, check=False, timeout=180
    )
    assert ran.returncode == 0, f"exit code {ran.returncode}:\n{ran.stdout}\n{ran.stderr}"
    return ran


@pytest.fixture
def clone(tmp_path):
    """What a reader has after `./dev run`."""
    for name in ("include", "examples"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "release").symlink_to(os.environ["HAPAX_BUILD"])
    return tmp_path


@pytest.fixture
def server(clone):
    server = Server(clone, store="sqlite:hapax.db", arguments=["--hints"]).start()
    yield server
    server.kill()


def test_every_command_works_as_printed(clone, server):
    first, *blocks = blocks_of("README.md")
    assert [line.split("#")[0].strip() for line in first.splitlines()] == ["./dev run"]
    tour = blocks_of("docs/start.md")
    assert blocks and tour

    ran = run(blocks + tour, clone, server)

    # What the text says about the answers.
    assert ran.stdout.count('"created":true') == 1
    assert ran.stdout.count('"created":false') == 1
    assert ran.stdout.count('"error":"IdempotencyConflict"') == 1
    assert re.search('^already there since .*"HELLO"', ran.stdout, re.MULTILINE)
    assert "1 completed, 0 failed attempts" in ran.stderr
    charges = re.findall(r"charged (\d) times by this run", ran.stdout)
    assert charges == ["1", "0", "1"]


def test_the_submission_is_answered_with_the_result_after_the_worker_finished(clone, server):
    submit = next(block for block in blocks_of("README.md") if "charge-order-456" in block)
    work = next(block for block in blocks_of("docs/start.md") if "/v1/claims/finish" in block)
    ran = run([submit, work, submit], clone, server)
    last = ran.stdout[ran.stdout.rindex('{"created"') :]
    assert '"created":false' in last
    assert '"result":{"charge":"ch_1"}' in last
