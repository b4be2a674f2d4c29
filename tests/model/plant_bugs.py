"""Writes a copy of the kernel with the bugs of planted_bugs.txt in it, each behind a switch.

Run as `plant_bugs.py SRC OUT BUGS FILE...`. Each FILE, and each header in its folder, is copied from SRC to the same
place under OUT; sources find the headers of OUT first. OUT/planted_bugs.inc lists the bugs, OUT/planted_bugs.d the
files that were read.

A bug is a line `RULE: what is wrong`, the text `- OLD` that it changes, and `+ NEW`, in which BUG is true where the
bug is switched on. OLD must occur once in the kernel; how its lines are broken does not count. An assertion that
fails throws in the copy, so that the comparison goes on and finds that.
"""

import pathlib
import re
import sys
import zlib


def read_bugs(path):
    bugs = []
    for block in re.split(r"\n\s*\n", path.read_text()):
        lines = [line for line in block.splitlines() if line and not line.startswith("#")]
        if not lines:
            continue
        rule, what = lines[0].split(": ", 1)
        old = " ".join(line[2:].strip() for line in lines[1:] if line.startswith("- "))
        new = " ".join(line[2:].strip() for line in lines[1:] if line.startswith("+ "))
        if not old or "BUG" not in new:
            sys.exit(f"{path}: '{lines[0]}' needs a line '- OLD' and a line '+ NEW' with BUG in it")
        bugs.append((rule, what, old, new))
    return bugs


def pattern_of(text):
    return re.compile(r"\s+".join(re.escape(word) for word in text.split()))


def number_of(rule, what):
    """The same whatever other bugs there are: one more compiles only its own file again."""
    return zlib.crc32(f"{rule}: {what}".encode()) >> 1


def plant(bugs, texts):
    """Changes `texts` by path; gives the number of places that each bug was found in."""
    found = []
    for rule, what, old, new in bugs:
        pattern = pattern_of(old)
        places = [(path, match) for path, text in texts.items() for match in pattern.finditer(text)]
        found.append(len(places))
        if len(places) != 1:
            continue
        path, match = places[0]
        planted = re.sub(r"\bBUG\b", f"(::hapax::model::planted == {number_of(rule, what)})", new)
        texts[path] = texts[path][: match.start()] + planted + texts[path][match.end() :]
    return found


def write_if_changed(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def main():
    source, out, bugs_file = (pathlib.Path(argument) for argument in sys.argv[1:4])
    files = [pathlib.Path(argument) for argument in sys.argv[4:]]
    copied = [path for path in files if path.suffix == ".cpp"]
    for folder in sorted({path.parent for path in files}):
        copied += sorted(folder.glob("*.h"))
    texts = {path: re.sub(r"\bassert\(", "PLANTED_ASSERT(", path.read_text()) for path in copied}
    bugs = read_bugs(bugs_file)
    places = plant(bugs, texts)
    written = {out / path.relative_to(source): text for path, text in texts.items()}
    for path, text in written.items():
        write_if_changed(path, text)
    for path in [*out.rglob("*.h"), *out.rglob("*.cpp")]:
        if path not in written:  # it is no longer in the kernel
            path.unlink()
    lines = []
    for (rule, what, _, _), count in zip(bugs, places):
        lines.append(f"{{{number_of(rule, what)}, {quoted(rule)}, {quoted(what)}, {count}}},\n")
    write_if_changed(out / "planted_bugs.inc", "".join(lines))
    read = " ".join(str(path) for path in copied)
    (out / "planted_bugs.d").write_text(f"{out / 'planted_bugs.inc'}: {read}\n")


if __name__ == "__main__":
    main()
