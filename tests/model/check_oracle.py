"""Checks that the oracle shares no rule with what it is compared with.

Run as `check_oracle.py NM LIBRARY`. The oracle may include plain values only, and of the functions of src/ it may
call only those that name and hash things: a rule that both sides shared could be wrong on both.
"""

import pathlib
import re
import subprocess
import sys

ORACLE = pathlib.Path(__file__).resolve().parent / "oracle"
MAY_INCLUDE = {"store/store.h", "store/activity_rows.h", "model/step.h", "model/match.h"}
MAY_CALL = {
    "hapax::ExecutionId::to_string",
    "hapax::LeaseToken::next",
    "hapax::child_workflow_id",
    "hapax::sha256",
    "hapax::step_id",
    "hapax::workflow_identity",
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def wrong_includes():
    for path in sorted(ORACLE.iterdir()):
        for target in INCLUDE.findall(path.read_text()):
            if target not in MAY_INCLUDE and not target.startswith("model/oracle/"):
                yield f"{path.name} includes {target}"


def wrong_calls(nm, library):
    listed = subprocess.run([nm, "--undefined-only", "--demangle", library], capture_output=True, text=True, check=True)
    called = set()
    for line in listed.stdout.splitlines():
        name = line.strip().removeprefix("U ").split("[")[0].split("(")[0]
        if name.startswith("hapax::") and not name.startswith("hapax::oracle::"):
            called.add(name)
    if not called:
        yield f"{library} calls nothing of src/: this check looks at the wrong file"
    for name in sorted(called - MAY_CALL):
        yield f"the oracle calls {name}"


def main():
    _, nm, library = sys.argv
    findings = [*wrong_includes(), *wrong_calls(nm, library)]
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
