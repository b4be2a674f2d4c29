"""Checks that every C++ and Python snippet of the documentation comes from examples/, which the tests run, and that
every relative link leads to a file. Code of other systems, to compare with, is marked as `go` or `py`.

A snippet may leave code out: a line `// …` stands for it. The parts around it must occur in this order in one example.

Run as `/usr/bin/python3 tests/docs/check_snippets.py` from anywhere, and by ctest. Prints one line for each finding.
"""

import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
OMISSION = re.compile(r"^\s*// …\s*$", re.MULTILINE)


SOURCES = {"cpp": ("*.cpp", "*.h"), "python": ("*.py",)}


def documents():
    readmes = sorted((ROOT / "examples").rglob("*.md"))
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")), *readmes]


def examples_in(patterns):
    paths = sorted(path for pattern in patterns for path in (ROOT / "examples").rglob(pattern))
    return [path.read_text(encoding="utf-8").splitlines() for path in paths]


def plain(text):
    """The text without its common indentation and the blank lines around it."""
    return textwrap.dedent(text).strip("\n")


def taken_from(example, snippet):
    """Whether the parts of the snippet occur in order in the example, as whole lines, with any indentation."""
    position = 0
    for part in OMISSION.split(snippet):
        wanted = plain(part).splitlines()
        if not any(line.strip() for line in wanted):
            continue
        found = next((i for i in range(position, len(example)) if plain("\n".join(example[i : i + len(wanted)])).splitlines() == wanted), None)
        if found is None:
            return False
        position = found + len(wanted)
    return True


def check(path, examples):
    text = path.read_text(encoding="utf-8")
    for block in BLOCK.finditer(text):
        language, snippet = block.groups()
        if language in examples and not any(taken_from(example, snippet) for example in examples[language]):
            yield text.count("\n", 0, block.start()) + 1, f"this {language} is in none of the examples"
    prose = BLOCK.sub(lambda block: "\n" * block.group().count("\n"), text)
    for link in LINK.finditer(prose):
        target = link.group(1)
        if "://" not in target and not (path.parent / target).exists():
            yield prose.count("\n", 0, link.start()) + 1, f"there is no {target}"


def main():
    examples = {language: examples_in(patterns) for language, patterns in SOURCES.items()}
    findings = 0
    for path in documents():
        for line, message in check(path, examples):
            print(f"{path.relative_to(ROOT)}:{line}: {message}")
            findings += 1
    print(f"snippets: {len(documents())} documents, {findings} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
