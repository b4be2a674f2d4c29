"""Makes the virtual environment that the Python tests run in.

Run as `/usr/bin/python3 python/environment.py build/python/venv`.
It is made once, and again when requirements-dev.txt has changed. Several processes may call it at the same time.
"""

from __future__ import annotations

import fcntl
import pathlib
import subprocess
import sys
import venv

REQUIREMENTS = pathlib.Path(__file__).with_name("requirements-dev.txt")


def main() -> int:
    place = pathlib.Path(sys.argv[1]).resolve()
    place.parent.mkdir(parents=True, exist_ok=True)
    stamp = place / "requirements.txt"
    with open(place.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = REQUIREMENTS.read_text()
        if stamp.exists() and stamp.read_text() == wanted:
            return 0
        print(f"making {place}")
        if not (place / "bin" / "python").exists():
            venv.create(place, with_pip=True, symlinks=True)
        pip = [place / "bin" / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        done = subprocess.run([*pip, "-r", REQUIREMENTS], check=False)
        if done.returncode == 0:
            stamp.write_text(wanted)
        return done.returncode


if __name__ == "__main__":
    sys.exit(main())
