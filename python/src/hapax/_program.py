"""The command `hapax`: the program that came with this package."""

from __future__ import annotations

import os
import pathlib
import sys


def main() -> int:
    """Becomes the program: `hapax serve`, `hapax submit`, …"""
    program = pathlib.Path(__file__).parent / "_native" / "hapax"
    if not program.exists():
        print(
            "hapax: this is the wheel for all platforms (py3-none-any), which has no program; install the one for "
            "yours (manylinux)",
            file=sys.stderr,
        )
        return 2
    os.execv(program, [str(program), *sys.argv[1:]])
