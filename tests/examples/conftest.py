import os
import pathlib
import subprocess

import pytest

from server import SLOWDOWN, Server, clean_environment

EXAMPLES = pathlib.Path(os.environ["HAPAX_EXAMPLES"]).resolve()


@pytest.fixture
def server(tmp_path):
    server = Server(tmp_path / "server").start()
    yield server
    server.kill()


@pytest.fixture
def start(tmp_path):
    """Starts programs and ends them with the test."""
    started = []

    def start_program(*command):
        process = subprocess.Popen(
            [str(word) for word in command],
            cwd=tmp_path,
            env=clean_environment(tmp_path),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start_program
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


@pytest.fixture
def run_example(start):
    """Runs an example to its end; shows its output if it fails."""

    def run(name, *arguments):
        process = start(EXAMPLES / f"example_{name}", *arguments)
        output, errors = process.communicate(timeout=60 * SLOWDOWN)
        assert process.returncode == 0, f"{name} {arguments} ended with {process.returncode}:\n{output}\n{errors}"
        return output

    return run
