"""The records of the processes of a run: one line of JSON per event, appended in one write, so that a killed process
leaves whole lines. Instants are nanoseconds of the machine's monotonic clock, the same in all processes."""

import json
import os
import pathlib
import time

from history import Claimed, Finished, History, Submitted

KINDS = {kind.__name__: kind for kind in (Submitted, Claimed, Finished)}


def instant():
    return time.monotonic_ns()


class Record:
    def __init__(self, path):
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def write(self, fields):
        os.write(self._file, json.dumps(fields).encode() + b"\n")

    def event(self, event):
        self.write({"event": type(event).__name__, **vars(event)})

    def close(self):
        os.close(self._file)


def read_lines(directory, pattern):
    for path in sorted(pathlib.Path(directory).glob(pattern)):
        for line in path.read_text().splitlines():
            yield json.loads(line)


def read_history(directory):
    """All events of all processes. A request is recorded before it is sent and again when it is answered; if it was
    answered, only the second record counts."""
    events = {}
    for line in read_lines(directory, "events-*.jsonl"):
        kind = KINDS[line.pop("event")]
        event = kind(**line)
        key = (kind, event.sent, getattr(event, "lease", ""), getattr(event, "nonce", ""))
        if key not in events or event.acknowledged:
            events[key] = event
    history = History()
    history.events = list(events.values())
    return history


def read_effects(directory):
    return list(read_lines(directory, "effects-*.jsonl"))
