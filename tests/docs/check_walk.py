"""Checks that docs/architecture.md names every source file, and no file that is gone.

A heading `## src/core: …` or `### handlers` (within the folder before it) opens a folder; the rows of its table name
files as `name.{h,cpp}`. Unit tests are beside their source and are not named.

Run as `/usr/bin/python3 tests/docs/check_walk.py` from anywhere, and by ctest. Prints one line for each finding.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
WALKED = ["include", "src", "apps", "examples"]
HEADING = re.compile(r"^(##+) (?:`?)((?:[\w-]+/)*[\w-]+)")
ROW = re.compile(r"^\| `([^`]+)` \|")
BRACES = re.compile(r"^(.*)\{(.+)\}$")


def names_in(cell):
    braces = BRACES.match(cell)
    if not braces:
        return [cell]
    return [braces.group(1) + ending for ending in braces.group(2).split(",")]


def walked_files(text):
    """Every file that the walk names, with its line."""
    named, top, folder = {}, None, None
    for number, line in enumerate(text.splitlines(), 1):
        heading = HEADING.match(line)
        if heading and heading.group(1) == "##":
            top = folder = pathlib.PurePosixPath(heading.group(2))
        elif heading:
            folder = top / heading.group(2)
        elif (row := ROW.match(line)) and folder and folder.parts[0] in WALKED:
            named.update({str(folder / name): number for name in names_in(row.group(1))})
    return named


def source_files():
    found = (path for top in WALKED for path in (ROOT / top).rglob("*") if path.suffix in {".h", ".cpp"})
    return {str(path.relative_to(ROOT)) for path in found if not path.stem.endswith("_test")}


def main():
    named = walked_files((ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"))
    findings = [f"docs/architecture.md:{line}: {name} does not exist" for name, line in sorted(named.items()) if not (ROOT / name).exists()]
    findings += [f"{name}:1: docs/architecture.md does not name it" for name in sorted(source_files() - named.keys())]
    print("\n".join([*findings, f"walk: {len(named)} files, {len(findings)} findings"]))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
