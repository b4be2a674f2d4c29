"""Both wheels, installed into clean environments without a compiler."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
import time

import pytest

PROJECT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("HAPAX_BUILD", PROJECT.parent / "build" / "test"))


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pathlib.Path]:
    output = tmp_path_factory.mktemp("wheels")
    subprocess.run([sys.executable, PROJECT / "wheel.py", BUILD, output], check=True)
    found = {"any" if "none-any" in path.name else "native": path for path in output.glob("*.whl")}
    assert found["native"].name.endswith("-py3-none-manylinux_2_36_x86_64.whl")
    assert found["any"].name.endswith("-py3-none-any.whl")
    return found


class Environment:
    """A virtual environment with nothing but a wheel; its programs see no compiler and none of our variables."""

    def __init__(self, folder: pathlib.Path, wheel: pathlib.Path, python: pathlib.Path | None = None) -> None:
        self.folder = folder
        subprocess.run([python or sys.executable, "-m", "venv", folder / "venv"], check=True)
        self.bin = folder / "venv" / "bin"
        self.environment = {"PATH": str(self.bin), "HOME": str(folder), "LC_ALL": "C.UTF-8"}
        self.run("python", "-m", "pip", "install", "-q", "--no-index", "--no-deps", str(wheel))

    def run(self, program: str, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        command = [str(self.bin / program), *arguments]
        return subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=check, timeout=120
        )

    def python(self, text: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        (self.folder / "program.py").write_text(text)
        return self.run("python", "program.py", check=check)


@pytest.fixture(scope="module")
def native(wheels: dict[str, pathlib.Path], tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return Environment(tmp_path_factory.mktemp("native"), wheels["native"])


def first_program() -> str:
    """The first program of the README."""
    match = re.search(r"```python\n(.*?)```", (PROJECT / "README.md").read_text(), re.DOTALL)
    assert match
    return match[1]


def test_the_first_program_of_the_readme_finds_it_done_the_second_time(native: Environment) -> None:
    first = native.python(first_program()).stdout
    second = native.python(first_program()).stdout
    assert first.startswith("True charged 9999 under ")
    assert second.startswith("False charged 9999 under ")
    assert first.split(" ", 1)[1] == second.split(" ", 1)[1]


def test_tests_need_no_pytest_and_pytest_finds_its_plugin(native: Environment) -> None:
    program = (
        "from importlib.metadata import entry_points\n"
        "from importlib.util import find_spec\n"
        "import hapax.testing\n"
        "hapax.testing.TestHapax().close()\n"
        "(plugin,) = entry_points(group='pytest11')\n"
        "print(find_spec('pytest'), plugin.value, find_spec(plugin.value) is not None)\n"
    )
    assert native.python(program).stdout == "None hapax.pytest_plugin True\n"


def test_the_program_is_inside(native: Environment) -> None:
    assert "0.1.0" in native.run("hapax", "version").stdout
    assert "0.1.0" in native.run("hapax-worker", "--version").stdout


OTHERS = """
import sys
sys.path.append(OTHERS_ARE_IN)
import sqlite3, ssl
import grpc, numpy, psycopg
connection = sqlite3.connect(':memory:')
print(connection.execute('select sqlite_version()').fetchone()[0] == sqlite3.sqlite_version)
print(bool(ssl.create_default_context()), ssl.OPENSSL_VERSION.startswith('OpenSSL'))
print(int(numpy.arange(4).sum()) == 6, psycopg.pq.version() > 0, bool(grpc.ssl_channel_credentials()))
"""
OURS = """
import os, pathlib, hapax
app = hapax.Hapax('sqlite:isolated.db')
print(hapax.sync(app.submit('t', idempotency_key=str(os.getpid()))).created)
app.close()
"""


@pytest.mark.parametrize("order", ["before", "after"])
def test_its_libraries_do_not_disturb_those_of_others(native: Environment, order: str) -> None:
    import numpy

    others = OTHERS.replace("OTHERS_ARE_IN", repr(str(pathlib.Path(numpy.__file__).parents[1])))
    parts = [others, OURS] if order == "before" else [OURS, others]
    done = native.python("\n".join([*parts, *parts]), check=False)
    assert (done.stderr, sorted(set(done.stdout.split()))) == ("", ["False", "True"])
    assert done.stdout.split().count("False") == 1  # the second submission under the key


def test_the_program_serves(native: Environment) -> None:
    command = [str(native.bin / "hapax"), "serve", "--listen", "127.0.0.1:0", "--store", "memory:"]
    with subprocess.Popen(command, env=native.environment, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        match = re.search(r"listening on (http://\S+)", server.stdout.readline())
        assert match
        out = native.python(f"import hapax; print(hapax.sync(hapax.Hapax({match[1]!r}).submit('t')).created)").stdout
        server.terminate()
    assert out == "True\n"


KILLED = """
import asyncio, pathlib
import hapax

app = hapax.Hapax("sqlite:killed.db")

@app.task
async def charge() -> str:
    with open("effects", "a") as file:
        file.write(hapax.current().effect_key + "\\n")
    if hapax.current().attempt == 1:
        await asyncio.sleep(3600)
    return hapax.current().effect_key
"""


def test_a_killed_worker_is_followed_by_one_with_the_same_effect_key(native: Environment) -> None:
    (native.folder / "killed.py").write_text(KILLED)
    submit = "import hapax, killed; print(hapax.sync(killed.app.submit('charge', idempotency_key='c')).id)"
    execution = native.python(submit).stdout.strip()
    command = [str(native.bin / "hapax-worker"), "killed:app", "--lease", "1s"]
    effects = native.folder / "effects"
    for is_first in (True, False):
        with subprocess.Popen(command, cwd=native.folder, env=native.environment, stderr=subprocess.DEVNULL) as worker:
            try:
                if is_first:
                    ends = time.monotonic() + 30
                    while not effects.exists() or not effects.read_text().endswith("\n"):
                        assert time.monotonic() < ends, "the handler did not begin"
                        time.sleep(0.02)
                else:
                    wait = f"import killed; print(killed.app.handle({execution!r}).wait(timeout=30))"
                    result = native.python(wait).stdout.strip()
            finally:
                worker.kill()
    assert effects.read_text().split() == [result, result]


def other_pythons() -> list[pathlib.Path]:
    """Interpreters that happen to be here; a machine without any runs no such test."""
    found = {}
    for path in [
        *pathlib.Path.home().glob(".pyenv/versions/3.1[0-9]*/bin/python3"),
        *pathlib.Path("/usr/bin").glob("python3.1[0-9]"),
    ]:
        out = subprocess.run(
            [path, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, text=True, check=False
        )
        major, _, minor = out.stdout.strip().partition(" ")
        if major == "3" and int(minor) >= 10 and int(minor) != sys.version_info[1]:
            found[minor] = path
    return list(found.values())


@pytest.mark.slow
@pytest.mark.parametrize("python", other_pythons(), ids=lambda path: path.parents[1].name)
def test_the_wheel_works_on_other_pythons(
    python: pathlib.Path, wheels: dict[str, pathlib.Path], tmp_path: pathlib.Path
) -> None:
    other = Environment(tmp_path, wheels["native"], python)
    assert other.python(first_program()).stdout.startswith("True charged 9999 under ")
    readme = (PROJECT / "README.md").read_text()
    workflow = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)[1]
    assert other.python(workflow).stdout == "3 parcels, approved by ada\n"


def test_the_other_wheel_says_which_one_is_missing(wheels: dict[str, pathlib.Path], tmp_path: pathlib.Path) -> None:
    pure = Environment(tmp_path, wheels["any"])
    done = pure.python("import hapax; hapax.sync(hapax.Hapax('sqlite:x.db').submit('t'))", check=False)
    assert "NativeMissing" in done.stderr
    assert "manylinux" in done.stderr
    assert not (tmp_path / "x.db").exists()
    assert pure.run("hapax", "version", check=False).returncode == 2
