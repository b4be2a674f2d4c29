"""mypy and pyright over the library, over uses that are right, and over planted mistakes."""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

PROJECT = pathlib.Path(__file__).resolve().parents[1]
MISTAKES = PROJECT / "tests" / "typing" / "mistakes.py"
GOOD = PROJECT / "tests" / "typing" / "good.py"


def wrong_lines() -> set[int]:
    lines = MISTAKES.read_text().splitlines()
    return {number for number, line in enumerate(lines, 1) if line.endswith("# wrong")}


def run(*command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "MYPYPATH": str(PROJECT / "src"), "PYTHONPATH": str(PROJECT / "src")}
    return subprocess.run(
        [sys.executable, "-m", *command], cwd=PROJECT, env=environment, capture_output=True, text=True, check=False
    )


def mypy(*paths: str) -> str:
    return run("mypy", "--strict", "--cache-dir", os.devnull, "--config-file", "pyproject.toml", *paths).stdout


def test_mypy_accepts_the_library_and_finds_the_mistakes() -> None:
    examples = [str(path) for path in (PROJECT.parent / "examples" / "python").glob("*.py")]
    out = mypy("src/hapax", str(GOOD), str(MISTAKES), *examples)
    found = re.findall(r"^(.*?):(\d+): error: (.*)$", out, re.MULTILINE)
    elsewhere = [each for each in found if not each[0].endswith("mistakes.py")]
    assert elsewhere == []
    assert {int(line) for _, line, _ in found} == wrong_lines(), out


def test_pyright_accepts_the_library_and_finds_the_mistakes() -> None:
    pytest.importorskip("pyright")
    clean = run("pyright", "--pythonpath", sys.executable, "--outputjson")
    assert json.loads(clean.stdout)["generalDiagnostics"] == []
    out = run("pyright", "--pythonpath", sys.executable, "--outputjson", str(MISTAKES))
    found = [each for each in json.loads(out.stdout)["generalDiagnostics"] if each["severity"] == "error"]
    assert {each["range"]["start"]["line"] + 1 for each in found} == wrong_lines(), out.stdout


def test_ruff_is_content() -> None:
    for command in (("check", "."), ("format", "--check", ".")):
        done = run("ruff", *command, "--no-cache")
        assert done.returncode == 0, done.stdout
