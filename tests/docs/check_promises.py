"""Checks that every test that docs/guarantees.md names exists.

`Shown by:` is followed, in backquotes, by names of ctest tests (`e2e_race`, `core_test`, `examples`), of GoogleTest
cases (`Submit.*`, `Finish.Repeated*`), of examples, and `conformance` for the suite that runs on every store.

Run as `/usr/bin/python3 tests/docs/check_promises.py` from anywhere, and by ctest. Prints one line for each finding.
"""

import fnmatch
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHOWN = re.compile(r"^Shown by:.*?(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)
CASE = re.compile(r"^TEST(?:_[FP])?\((\w+), (\w+)\)", re.MULTILINE)


def known_names():
    names = {"conformance"} | {path.stem for path in (ROOT / "examples").glob("*.cpp")}
    for path in [*(ROOT / "src").rglob("CMakeLists.txt"), *(ROOT / "tests").rglob("CMakeLists.txt")]:
        text = path.read_text(encoding="utf-8")
        names.update(re.findall(r"hapax_test\((\w+)", text))
        names.update("e2e_" + name for name in re.findall(r"hapax_e2e_test\((\w+)", text))
        names.update("chaos_" + name for name in re.findall(r"hapax_chaos_test\((\w+)", text))
        for listed in re.findall(r"foreach\(name ([\w ]+)\)\s+add_test", text):
            names.update(listed.split())
    python = (ROOT / "python" / "CMakeLists.txt").read_text(encoding="utf-8")
    names.update("python_" + name for name in re.findall(r"^hapax_python_test\((\w+)", python, re.MULTILINE))
    for path in [*(ROOT / "src").rglob("*_test.cpp"), *(ROOT / "tests").rglob("*_test.cpp")]:
        names.update(".".join(case) for case in CASE.findall(path.read_text(encoding="utf-8")))
    return names


def main():
    text = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")
    known, findings, appeals = known_names(), 0, 0
    for shown in SHOWN.finditer(text):
        for name in re.findall(r"`([^`]+)`", shown.group()):
            appeals += 1
            if not fnmatch.filter(known, name):
                print(f"docs/guarantees.md:{text.count(chr(10), 0, shown.start()) + 1}: there is no test {name}")
                findings += 1
    print(f"promises: {appeals} tests named, {findings} findings")
    return 1 if findings or not appeals else 0


if __name__ == "__main__":
    sys.exit(main())
