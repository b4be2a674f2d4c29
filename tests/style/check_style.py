"""Checks what a compiler does not: file sizes, widths of comments and Markdown, names, the direction of includes.

Run as `/usr/bin/python3 tests/style/check_style.py` from anywhere, by `./dev lint` and by ctest. Prints one line for
each finding.
"""

import ast
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
MAX_LINES = 600
MAX_COLUMNS = 120
CODE = {".h", ".cpp", ".py", ".cmake", ".sql", ".js", ".css", ".html"}
TEXT = CODE | {".md", ".txt", ".toml", ".json", ""}
NOT_OURS = {"LICENSE"}
GENERATED_TABLES = "docs/performance.md"

# The words are written in halves so that this file does not find itself.
UNFINISHED = re.compile(r"\b(" + "TO" + "DO|FIX" + "ME|XX" + r"X)\b")
EMPTY_WORDS = "util|utils|common|helper|helpers|misc|manager"
EMPTY_FILE_NAME = re.compile(rf"(^|[_.-])({EMPTY_WORDS})($|[_.-])")
EMPTY_TYPE_NAME = re.compile(r"\b(?:class|struct|namespace)\s+(?:\w*(?:Util|Utils|Common|Helper|Misc|Manager)|" + EMPTY_WORDS + r")\b")
COMMENT = {".h": "//", ".cpp": "//", ".py": "#", ".sql": "--", ".cmake": "#"}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')

# One arrow: core ← store ← engine ← wire ← client ← open ← {http, sdk, capi, cli} ← apps. A folder of src/ may include
# these, and itself.
MAY_INCLUDE = {
    "core": set(),
    "store": {"core"},
    "engine": {"core", "store"},
    "wire": {"core", "store", "engine"},
    "client": {"core", "store", "engine", "wire"},
    "open": {"core", "store", "engine", "client", "config"},
    "http": {"core", "store", "engine", "wire"},
    "sdk": {"core", "store", "engine", "wire", "client", "open"},
    "capi": {"core", "store", "engine", "wire", "client", "open", "http", "sdk"},
    "config": {"core"},
    "cli": {"core", "store", "engine", "wire", "client", "open", "http", "config", "sdk"},
}


def repository_files():
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        capture_output=True,
        check=False,
    )
    if listed.returncode == 0:
        names = [name for name in listed.stdout.decode().split("\0") if name]
    else:  # an unpacked archive
        names = [str(p.relative_to(ROOT)) for p in ROOT.rglob("*") if "build" not in p.relative_to(ROOT).parts]
    paths = (pathlib.PurePosixPath(name) for name in names)
    return sorted(path for path in paths if (ROOT / path).is_file())


def is_test(path):
    return path.parts[0] == "tests" or path.stem.endswith("_test")


def check_include(path, target):
    """What is wrong with the file at `path` including `target`, or None."""
    if path.parts[0] != "src" or len(path.parts) < 3 or is_test(path):
        return None
    folder = path.parts[1]
    to = pathlib.PurePosixPath(target).parts
    if to[0] not in MAY_INCLUDE:
        return None
    if to[0] != folder and to[0] not in MAY_INCLUDE.get(folder, set()):
        return f"{folder}/ must not include {to[0]}/"
    if to[0] == "store" and len(to) > 2:
        own = to[1] == "rules" or (folder == "store" and len(path.parts) > 3 and path.parts[2] == to[1])
        if not own and folder != "open":
            return "only open/, bench/ and tests name a store implementation; include store/store.h"
    return None


def docstring_lines(text):
    """The line numbers of Python docstrings."""
    places = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, places) and ast.get_docstring(node) is not None:
            yield from range(node.body[0].lineno, node.body[0].end_lineno + 1)


def too_wide(path, lines):
    """The numbers of the lines of prose that are too wide. The width of code is up to the formatter."""
    sign = COMMENT.get(path.suffix)
    docstrings = set(docstring_lines("\n".join(lines))) if path.suffix == ".py" else set()
    for number, line in enumerate(lines, 1):
        is_comment = sign and line.lstrip().startswith(sign)
        is_markdown = path.suffix == ".md" and not (str(path) == GENERATED_TABLES and line.startswith("|"))
        if len(line) > MAX_COLUMNS and (is_comment or is_markdown or number in docstrings):
            yield number


def check_file(path):
    for part in path.parts:
        if EMPTY_FILE_NAME.search(part):
            yield 1, f"'{part}' is too vague; name it after its content"
    if path.suffix not in TEXT or path.name in NOT_OURS:
        return
    try:
        lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        if path.suffix in CODE:
            yield 1, "is not UTF-8"
        return
    if path.suffix in CODE and len(lines) > MAX_LINES:
        yield MAX_LINES, f"has {len(lines)} lines; split files of more than {MAX_LINES} lines"
    if path.suffix == ".h" and not any(line == "#pragma once" for line in lines):
        yield 1, "a header starts with #pragma once"
    for number in too_wide(path, lines):
        yield number, f"is wider than {MAX_COLUMNS} columns"
    for number, line in enumerate(lines, 1):
        if UNFINISHED.search(line):
            yield number, "leaves work for later; do it or open an issue"
        if path.suffix not in {".h", ".cpp"}:
            continue
        if EMPTY_TYPE_NAME.search(line):
            yield number, "a vague name; use a word of the domain"
        include = INCLUDE.match(line)
        wrong = include and check_include(path, include.group(1))
        if wrong:
            yield number, wrong


def main():
    findings = 0
    files = repository_files()
    for path in files:
        for number, message in check_file(path):
            print(f"{path}:{number}: {message}")
            findings += 1
    print(f"style: {len(files)} files, {findings} findings")
    return 1 if findings or not files else 0


if __name__ == "__main__":
    sys.exit(main())
