"""docs/protocol.md, exchange by exchange: every ```http block is sent or compared as printed.

A block that starts with a method is a request; one that starts with a status is the answer to the request before it. In
an answer "{name}" binds a value, or must equal the value that is already bound (ids). Every claim binds leases anew.
"…" stands for any value, a member "…" for any further members.
"""

import json
import pathlib
import re

import pytest

from client import ABSENT
from server import Server

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "protocol.md"
BLOCK = re.compile(r"^```http\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAME = re.compile(r"\{(\w+)\}")


@pytest.fixture
def server(tmp_path):
    server = Server(tmp_path).start()
    yield server
    server.kill()


def exchanges(text):
    blocks = BLOCK.findall(text)
    assert len(blocks) % 2 == 0
    return list(zip(blocks[::2], blocks[1::2]))


class Reader:
    def __init__(self):
        self.bound = {}

    def fill(self, text):
        return NAME.sub(lambda name: self.bound[name.group(1)], text)

    def send(self, client, request):
        head, _, body = request.partition("\n\n")
        line, *headers = head.strip().splitlines()
        method, path = self.fill(line).split()
        headers = dict(header.split(": ", 1) for header in headers)
        body = body.strip()
        # Names stand for strings here, in quotes; JSON's own braces are not names.
        return client.request(method, path, json.loads(self.fill(body)) if body else ABSENT, headers=headers)

    def compare(self, expected, found, at=""):
        """What differs, as a list of sentences."""
        if expected == "…":
            return []
        if isinstance(expected, str) and NAME.search(expected):
            return self.compare_named(expected, found, at)
        if isinstance(expected, dict) and isinstance(found, dict):
            trouble = []
            for name, value in expected.items():
                if name == "…":
                    continue
                if name not in found:
                    trouble.append(f"{at}/{name} is not there")
                else:
                    trouble += self.compare(value, found[name], f"{at}/{name}")
            if "…" not in expected:
                trouble += [f"{at}/{name} is not in the document" for name in found if name not in expected]
            return trouble
        if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
            return [line for i, (e, f) in enumerate(zip(expected, found)) for line in self.compare(e, f, f"{at}/{i}")]
        return [] if expected == found else [f"{at}: the document has {expected!r}, the server says {found!r}"]

    def compare_named(self, expected, found, at):
        whole = NAME.fullmatch(expected)
        if whole and (whole.group(1) not in self.bound or at.endswith("/lease") and at.startswith("/claims")):
            self.bound[whole.group(1)] = found
            return []
        return self.compare(self.fill(expected), found, at) if self.fill(expected) != expected else [f"{at}: unbound"]


def replay(client, text):
    reader, trouble = Reader(), []
    for request, answer in exchanges(text):
        status, _, body = answer.partition("\n\n")
        said = reader.send(client, request)
        where = request.splitlines()[0]
        if said.status != int(status):
            return [f"{where}: the document has {status.strip()}, the server says {said}"]
        trouble += [f"{where}: {line}" for line in reader.compare(json.loads(body), said.json)]
    return trouble


def test_every_exchange_is_as_printed(server):
    text = PAGE.read_text(encoding="utf-8")
    assert len(exchanges(text)) >= 10
    assert replay(server.client, text) == []


@pytest.mark.parametrize(
    "right, wrong",
    [('"steps": 3}', '"steps": 4}'), ('"value": "ch_1"', '"value": "ch_2"'), ('"next_after": null,\n', ""), ("201", "200")],
)
def test_a_document_that_is_wrong_is_found_out(server, right, wrong):
    text = PAGE.read_text(encoding="utf-8")
    assert replay(server.client, text.replace(right, wrong)) != []
