"""The virtual environments of the Python peers, each with its own packages from PyPI, under build/peers."""

import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLACE = ROOT / "build" / "peers"
REQUIREMENTS = pathlib.Path(__file__).resolve().parent / "python" / "requirements"
PYTHON = "/usr/bin/python3"


class NotMade(Exception):
    pass


def python_of(peer):
    """The interpreter of a peer. Hapax needs no packages."""
    return PYTHON if peer.is_hapax else PLACE / peer.environment / "bin" / "python"


def make(peer):
    """Makes the environment of a peer, or leaves it as it is if its requirements have not changed."""
    if peer.is_hapax:
        return
    folder, wanted = PLACE / peer.environment, (REQUIREMENTS / f"{peer.environment}.txt").read_text()
    stamp = folder / "requirements.txt"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    pip = [folder / "bin" / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    for command in ([PYTHON, "-m", "venv", folder], [*pip, "-r", REQUIREMENTS / f"{peer.environment}.txt"]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise NotMade(f"{peer.name}: its environment could not be made: {done.stderr}")
    stamp.write_text(wanted)


def variables(hapax):
    """What a peer is run with: the SDK of this folder, and the engine that was built beside the program `hapax`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HAPAX_", "PYTHON"))}
    return {**kept, "PYTHONPATH": str(ROOT / "python" / "src"), "HAPAX_LIBRARY": str(hapax.parent / "libhapax_capi.so")}
