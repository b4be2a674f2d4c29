"""Every example is run as a program, on an engine in its own process and on a server."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
import time

import pytest

import hapax
from hapax.testing import Server

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "python"
PRINTED = {
    "approval": "4200 cents: approved by ada\n900 cents: nobody answered\n",
    "batch": "refused: ['IdempotencyConflict']\n100 resized, the last one: photo 99 at 800\n",
    "changing_code": "careless: NonDeterminism\ncareful: it fits\na new order: charge invoice ship\n",
    "effects": "booking 1, after 2 attempts\nbookings: 1\n",
    "errors_and_cancel": "third time lucky\nfailed: the card is stolen\ntold to stop\ncancelled\n",
    "fan_out": "332833500\n",
    "order_tasks": "the same task: True\ncharged 9999 cents for order 456\nrefused: IdempotencyConflict\n",
    "order_workflow": "('ch_456', 'parcel-456')\nrefunded ch_457\nrefunded: out of stock\n",
    "own_transaction": "order 457: no money\nrelayed: 1\ninvoice for order 456\n",
    "tour": (
        "pay_456 True\nboxes: 3\npay_456 in 3 boxes 456 {'packed_by': 'eve'}\n"
        "boxes: 2\nrefunded pay_457\ncancelled\npaid 1\ncompleted HELLO\nrefunded pay_test\n1 failed\n"
    ),
    "watching": (
        "1 task check\n2 wait_signal approved\ncheck: there is no such street\n"
        "it waits_for_signal approved\nMain Street, approved by eve\n"
    ),
    "worker_and_submitter": "created\nHELLO\n",
}

pytestmark = pytest.mark.works


def run(name: str, url: str, folder: pathlib.Path) -> str:
    environment = {**os.environ, "HAPAX_URL": url, "PYTHONPATH": str(pathlib.Path(hapax.__file__).parents[1])}
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), "--work"]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", PRINTED)
def test_an_example_prints_what_it_should_native(name: str, tmp_path: pathlib.Path) -> None:
    assert run(name, f"sqlite:{tmp_path / 'example.db'}", tmp_path) == PRINTED[name]


@pytest.mark.parametrize("name", PRINTED)
def test_an_example_prints_what_it_should_over_http(name: str, hapax_server: Server, tmp_path: pathlib.Path) -> None:
    assert run(name, hapax_server.url, tmp_path) == PRINTED[name]


def test_every_program_of_the_readme_native(tmp_path: pathlib.Path) -> None:
    readme = (pathlib.Path(__file__).resolve().parents[1] / "README.md").read_text()
    programs = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(hapax.__file__).parents[1])}
    printed = []
    for program in programs:
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout)
    assert printed[0].startswith("True charged 9999 under ")
    assert printed[1] == "3 parcels, approved by ada\n"
    assert printed[2].startswith("HELLO\nIt would be refused: ")
    assert len(printed) == 3


def test_every_example_is_run() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {*PRINTED, "fastapi_orders"}
    assert {path.stem for path in EXAMPLES.parent.glob("*.cpp")} <= set(PRINTED)


def test_the_fastapi_application_native(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    testclient = pytest.importorskip("fastapi.testclient")
    monkeypatch.setenv("HAPAX_URL", "memory:")
    monkeypatch.setenv("SHOP_DB", str(tmp_path / "shop.db"))
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import fastapi_orders  # type: ignore[import-not-found]

    key = {"Idempotency-Key": "8e03978e"}
    with testclient.TestClient(fastapi_orders.web) as client:
        assert client.post("/orders", json={"cents": 9999}).status_code == 400
        first = client.post("/orders", json={"cents": 9999}, headers=key)
        assert (first.status_code, first.json()) == (201, {"order": 1})
        again = client.post("/orders", json={"cents": 9999}, headers=key)
        assert (again.status_code, again.json()) == (201, {"order": 1})
        assert again.headers["idempotency-replayed"] == "true"
        assert client.post("/orders", json={"cents": 1}, headers=key).status_code == 422
        ends = time.monotonic() + 20
        while client.get("/orders/1").json() != {"order": 1, "cents": 9999, "charge": "completed"}:
            assert time.monotonic() < ends
            time.sleep(0.02)
        assert client.get("/orders/2").status_code == 404
