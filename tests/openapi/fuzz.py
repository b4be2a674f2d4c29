"""Schemathesis over every operation of /openapi.json, on a real server: the server accepts what the description allows,
refuses what it forbids, and gives only answers that it describes.

The virtual environment is build/schemathesis, created from requirements.txt by `--install` (as `./dev test` does) or by
the first run. The data comes from a fixed seed; HAPAX_TEST_SEED sets another."""

import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
ENVIRONMENT = ROOT / "build" / "schemathesis"
REQUIREMENTS = HERE / "requirements.txt"
EXAMPLES = 15  # for each operation and phase


def install():
    stamp, wanted = ENVIRONMENT / ".installed", REQUIREMENTS.read_text()
    if stamp.exists() and stamp.read_text() == wanted:
        return
    if sys.version_info < (3, 9):
        sys.exit(f"Schemathesis needs Python 3.9, and {sys.executable} is {sys.version.split()[0]}")
    made = subprocess.run([sys.executable, "-m", "venv", "--clear", ENVIRONMENT])
    if made.returncode != 0:
        sys.exit("there is no virtual environment for Schemathesis: install Debian's python3-venv")
    pip = [ENVIRONMENT / "bin" / "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check"]
    if subprocess.run([*pip, "--requirement", REQUIREMENTS]).returncode != 0:
        sys.exit("Schemathesis could not be installed from PyPI; is the network there?")
    stamp.write_text(wanted)


def run(url):
    command = [
        ENVIRONMENT / "bin" / "schemathesis",
        "--config-file",
        HERE / "schemathesis.toml",
        "run",
        f"{url}/openapi.json",
        "--url",
        url,
        "--checks",
        "all",
        "--mode",
        "all",
        "--max-examples",
        EXAMPLES,
        "--seed",
        os.environ.get("HAPAX_TEST_SEED", "1"),
        "--generation-database",
        "none",
        "--request-timeout",
        "30",
        "--continue-on-failure",
        "--no-color",
    ]
    environment = {**os.environ, "SCHEMATHESIS_HOOKS": "hooks", "PYTHONPATH": str(HERE)}
    with tempfile.TemporaryDirectory() as directory:
        return subprocess.run([str(part) for part in [*command, *sys.argv[1:]]], cwd=directory, env=environment).returncode


def main():
    install()
    if sys.argv[1:] == ["--install"]:
        return 0
    sys.path.insert(0, str(ROOT / "tests" / "e2e"))
    from server import Server  # reads HAPAX_BINARY

    with tempfile.TemporaryDirectory() as directory:
        server = Server(directory, store="memory:").start()
        try:
            return run(f"http://127.0.0.1:{server.port}")
        finally:
            server.stop()


if __name__ == "__main__":
    sys.exit(main())
