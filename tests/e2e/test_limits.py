"""What a server refuses early, what it does not wait for, and how it reloads its configuration."""

import json
import os
import pathlib
import select
import signal
import sqlite3
import sys
import time

import pytest

from caller import Caller
from client import RawConnection, request_bytes
from conftest import eventually
from server import SLOWDOWN

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "chaos"))
from postgres import Postgres  # noqa: E402

# ---- access


def test_a_page_that_points_its_own_name_here_may_not_submit(server):
    page = {"Host": "evil.example:7373", "Origin": "http://evil.example:7373"}

    answer = server.client.post("/v1/tasks", {"type": "t"}, headers=page)

    assert (answer.status, answer.json["error"]) == (421, "ForeignHost")
    assert "[server] hosts" in answer.json["message"]
    assert Caller(server).list() == []


def test_hosts_are_named_in_the_file_the_environment_or_a_flag(start_server):
    for name, how in {
        "file": {"config": '[server]\nhosts = ["hapax.example"]\n'},
        "environment": {"environment": {"HAPAX_SERVER_HOSTS": "hapax.example,other.example"}},
        "flag": {"arguments": ["--hosts", "hapax.example"]},
        "tokens": {"config": '[tokens.a]\ntoken = "secret"\n'},
    }.items():
        server = start_server(name, **how)
        assert server.client.get("/health", headers={"Host": "hapax.example"}).status == 200, name


# ---- reloading


def statuses(server, *tokens):
    return [server.client.get("/v1/tasks", headers={"Authorization": f"Bearer {token}"}).status for token in tokens]


def reload(server, word):
    """Waits until the server has logged this once more than before."""
    before = server.log.count(word)
    server.process.send_signal(signal.SIGHUP)
    eventually(lambda: server.log.count(word) > before)


def test_sighup_reloads_tokens_hosts_and_log_level_and_names_what_needs_a_restart(start_server, tmp_path):
    token = tmp_path / "token"
    token.write_text("first\n")
    config = f'[tokens.a]\ntoken_file = "{token}"\n'
    server = start_server(config=config + '[server]\nlog_level = "error"\n')
    file = server.directory / "test.toml"
    assert statuses(server, "first", "second") == [200, 401]

    token.write_text("second\n")
    file.write_text(config)
    reload(server, "reloaded the configuration")
    assert statuses(server, "first", "second") == [401, 200]

    restarted = "threads = 7\n[queues.q]\npaused = true\n[requests]\ncleanup_interval_seconds = 7\n"
    file.write_text(config + '[server]\nhosts = ["hapax.example"]\n' + restarted)
    reload(server, "in force only after a restart: [server] threads, [queues], [requests]")
    assert server.client.get("/health", headers={"Host": "other.example"}).status == 421

    file.write_text("[server\n")
    reload(server, "the old one stays in force")
    assert statuses(server, "first", "second") == [401, 200]

    file.write_text("")  # like an editor in the middle of saving: the server must not be open to everyone
    reload(server, "it has no tokens any more")
    assert "test.toml:1" in server.log
    assert statuses(server, "first", "second") == [401, 200]
    assert server.stop() == 0


# ---- a store that hangs


@pytest.fixture
def frozen(start_server):
    """A server over a PostgreSQL that is stopped at an arbitrary point."""
    postgres = Postgres().create().start()
    try:
        postgres.ask("CREATE DATABASE hapax")

        def start(config):
            server = start_server(store=postgres.url(), config=config)
            Caller(server).create()
            postgres.freeze()
            return server

        yield start
    finally:
        postgres.thaw()
        postgres.close()


SUBMIT = request_bytes("POST", "/v1/tasks", {"type": "t"})


def descriptors(server):
    return len(os.listdir(f"/proc/{server.pid}/fd"))


def test_clients_that_give_up_on_a_store_that_hangs_leave_nothing_behind(frozen):
    server = frozen('[server]\nstore_timeout = "60s"\nmax_requests = 500\nshutdown_grace = "4s"\n')
    before = descriptors(server)

    for _ in range(10):
        clients = [RawConnection(server.port) for _ in range(200)]
        for client in clients:
            client.send(SUBMIT)
        assert server.client.get("/health").status == 200
        for client in clients:
            client.close()
    eventually(lambda: descriptors(server) < before + 20)

    # Their requests are still in the store, and bounded.
    answer = server.client.post("/v1/tasks", {"type": "t"})
    assert (answer.status, answer.json["error"], answer.headers["retry-after"]) == (503, "Overloaded", "1")
    assert server.client.get("/ready").status == 503
    assert server.client.get("/health").status == 200

    start = time.monotonic()
    assert server.stop() in (0, 1)
    assert time.monotonic() - start < 6 * SLOWDOWN


def test_a_store_that_hangs_is_a_503_in_time_and_one_line_a_second(frozen):
    server = frozen('[server]\nstore_timeout = "1s"\nshutdown_grace = "4s"\n')
    start = time.monotonic()

    clients = [RawConnection(server.port) for _ in range(1100)]
    for client in clients:
        client.send(SUBMIT)
    asked = time.monotonic()
    assert server.client.get("/health").status == 200
    assert time.monotonic() - asked < 1 * SLOWDOWN
    for client in clients:
        answer = client.read_response()
        assert answer.status == 503 and "retry-after" in answer.headers
        assert answer.json["error"] in ("StoreUnavailable", "OutcomeUnknown"), answer
        client.close()

    took = time.monotonic() - start
    lines = [line for line in server.log.splitlines() if "http: " in line]
    assert 0 < len(lines) <= 4 * (took + 1), "\n".join(lines)


def test_sigterm_interrupts_what_waits_for_the_store_when_the_drain_time_is_over(start_server):
    server = start_server(config='[server]\nstore_timeout = "60s"\nshutdown_grace = "2s"\n')
    database = sqlite3.connect(server.database, isolation_level=None)
    database.execute("BEGIN IMMEDIATE")
    with RawConnection(server.port) as connection:
        body = b'{"type": "t"}'
        head = f"POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.send(head.encode() + body)
        server.client.get("/health")
        assert server.stop() == 0, server.log
        assert connection.read_response().status == 503
    database.close()


def test_sigterm_does_not_wait_for_a_half_sent_request(server):
    with RawConnection(server.port) as connection:
        connection.send(b"POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n")
        connection.send(b"Content-Length: 100\r\n\r\n")
        assert connection.read_response().status == 100
        start = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - start < 0.9 * SLOWDOWN
        assert connection.read_response().json["error"] == "ShuttingDown"


# ---- memory


def test_bodies_of_those_without_a_token_are_not_read(start_server):
    server = start_server(config='[tokens.a]\ntoken = "secret"\n')
    server.client.get("/health")
    memory_kb = server.status_field("VmRSS")
    head = b"POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Length: 8000000\r\n\r\n"

    connections = [RawConnection(server.port) for _ in range(60)]
    for connection in connections:
        connection.send(head)
        answer = connection.read_response()
        assert (answer.status, answer.headers["connection"]) == (401, "close")
        connection.close()

    assert server.status_field("VmHWM") - memory_kb < 20_000 * SLOWDOWN


def test_others_are_served_while_a_long_body_is_parsed(server):
    body = json.dumps({"type": "t", "input": [1] * 2_000_000}, separators=(",", ":")).encode()
    with RawConnection(server.port) as connection:
        connection.send(request_bytes("POST", "/v1/tasks", body))
        longest = 0
        while not connection_has_answer(connection):
            start = time.monotonic()
            assert server.client.get("/health").status == 200
            longest = max(longest, time.monotonic() - start)
        assert connection.read_response().status == 201
    print(f"the longest wait for /health: {longest * 1000:.0f} ms")
    assert longest < 1 * SLOWDOWN


@pytest.mark.parametrize(
    "values",
    [
        ["[1", ",1" * 3_900_000, "]"],
        ["[{}", ',{"a":1}' * 950_000, "]"],
        ['{"":1', "".join(f',"{i:x}":1' for i in range(750_000)), "}"],
    ],
    ids=["numbers", "objects", "members"],
)
def test_a_long_body_of_small_values_takes_little_more_memory_than_its_text(start_server, values):
    server = start_server()
    body = '{"type":"t","idempotency_key":"k","input":' + "".join(values) + "}"
    answer = server.client.request("POST", "/v1/tasks", raw=body.encode())
    assert answer.status == 201
    print(f"{server.status_field('VmHWM') // 1024} MiB")
    assert server.status_field("VmHWM") < 150 * 1024 * SLOWDOWN


def connection_has_answer(connection):
    return bool(select.select([connection.socket], [], [], 0)[0])
