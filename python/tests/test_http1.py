"""The reader of HTTP responses, and the small things around it."""

from __future__ import annotations

import datetime
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hapax import InvalidRequest, new_id
from hapax.durations import time_from_wire, time_to_wire, to_seconds, to_wire
from hapax.transport.base import Request
from hapax.transport.http import Address
from hapax.transport.http1 import BadResponse, ResponseReader, write_request

FIXED = b'HTTP/1.1 201 Created\r\nContent-Length: 11\r\nLocation: /x\r\n\r\n{"a": "b"}\n'
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nwxyz\r\n3;x=y\r\nabc\r\n0\r\n\r\n"
EMPTY = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"


@given(st.lists(st.sampled_from([FIXED, CHUNKED, EMPTY]), max_size=4), st.randoms())
def test_responses_may_arrive_in_any_pieces(responses: list[bytes], random: object) -> None:
    reader = ResponseReader()
    for data in responses:
        got = []
        position = 0
        while position < len(data):
            size = random.randint(1, len(data))  # type: ignore[attr-defined]
            response = reader.feed(data[position : position + size])
            position += size
            if response:
                got.append(response)
        assert len(got) == 1
        expected = {FIXED: (201, b'{"a": "b"}\n'), CHUNKED: (200, b"wxyzabc"), EMPTY: (204, b"")}[data]
        assert (got[0].status, got[0].body) == expected
        assert not reader.has_begun


def test_what_is_no_response_is_refused() -> None:
    with pytest.raises(BadResponse):
        ResponseReader().feed(b"SSH-2.0-OpenSSH\r\n\r\n")


def test_a_header_cannot_smuggle_another_one() -> None:
    with pytest.raises(ValueError, match="line break"):
        write_request(Request("GET", "/", {"idempotency-key": "a\r\nx: y"}, b""), "", "")
    with pytest.raises(InvalidRequest):
        Address("http://localhost:1", "a\r\nb", {}, None)


def test_close_ends_keep_alive() -> None:
    reader = ResponseReader()
    reader.feed(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
    assert not reader.keep_alive


@pytest.mark.parametrize("url", ["http://", "http://host:port", "http://host:99999"])
def test_a_url_without_a_server_is_refused(url: str) -> None:
    with pytest.raises(InvalidRequest):
        Address(url, None, {}, None)


def test_durations() -> None:
    assert to_wire("7d") == "7d"
    assert to_wire(datetime.timedelta(days=30)) == "2592000s"
    assert to_wire(1.5) == "1500ms"
    assert to_seconds("500ms") == 0.5
    for wrong in ("soon", "5", "-1s", -1, float("inf")):
        with pytest.raises(ValueError, match="duration"):
            to_seconds(wrong)


def test_times_need_a_zone() -> None:
    assert time_to_wire(time_from_wire("2026-03-01T10:00:00.5+01:00")) == "2026-03-01T09:00:00.500Z"
    with pytest.raises(ValueError, match="time zone"):
        time_to_wire(datetime.datetime(2026, 3, 1))


def test_ids_are_uuids_of_version_7_in_order() -> None:
    ids = [new_id() for _ in range(10_000)]
    assert len(set(ids)) == 10_000
    assert all(uuid.UUID(one).version == 7 and uuid.UUID(one).variant == uuid.RFC_4122 for one in ids)
    assert ids == sorted(ids)
