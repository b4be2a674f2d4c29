"""Redis in front of the store: what it answers, and that nothing breaks without it."""

import signal
import socket
import subprocess

import pytest

from caller import Caller
from conftest import eventually
from server import Server


class Redis:
    def __init__(self, directory):
        directory.mkdir()
        self.directory, self.socket = directory, directory / "redis.sock"
        self.process = None

    def start(self):
        arguments = ["--port", "0", "--unixsocket", str(self.socket), "--save", "", "--dir", str(self.directory)]
        self.process = subprocess.Popen(["redis-server", *arguments], stdout=subprocess.DEVNULL)
        eventually(lambda: self.ask("PING").startswith("+PONG"))
        return self

    def ask(self, *words):
        """The first lines of the answer; empty if Redis is down."""
        with socket.socket(socket.AF_UNIX) as connection:
            try:
                connection.connect(str(self.socket))
            except OSError:
                return ""
            connection.sendall(" ".join(words).encode() + b"\r\n")
            return connection.recv(65536).decode(errors="replace")

    def keys(self):
        return int(self.ask("DBSIZE")[1:])

    def kill(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture
def redis(tmp_path):
    redis = Redis(tmp_path / "redis").start()
    yield redis
    redis.kill()


def completed(caller, key):
    task = caller.create(queue="q", idempotency_key=key)
    caller.finish(caller.claim_one("q")["lease"], {"done": key})
    return task["id"]


def again(caller, key):
    answer = caller.submit(queue="q", idempotency_key=key)
    assert answer.status == 200, answer
    assert answer.json["execution"]["result"] == {"done": key}
    return answer.json["execution"]["id"]


def test_duplicates_are_the_same_with_redis_without_it_and_after_it_came_back(start_server, redis):
    server = start_server(environment={"HAPAX_CACHE_REDIS": f"unix:{redis.socket}"})
    caller = Caller(server)
    eventually(lambda: "is in use" in server.log)
    one = completed(caller, "one")
    assert again(caller, "one") == one
    eventually(lambda: redis.keys() == 1)
    assert [again(caller, "one") for _ in range(5)] == [one] * 5

    redis.process.send_signal(signal.SIGSTOP)
    assert [again(caller, "one") for _ in range(5)] == [one] * 5
    redis.process.send_signal(signal.SIGCONT)
    redis.kill()
    two = completed(caller, "two")
    assert again(caller, "one") == one and again(caller, "two") == two

    redis.start()
    eventually(lambda: again(caller, "two") == two and redis.keys() == 1)
    assert "is not used" in server.log


def test_a_released_key_is_free_at_once_for_a_server_that_had_it_cached(start_server, redis, tmp_path):
    store = f"sqlite:{tmp_path / 'shared.db'}"
    cached = start_server("cached", store=store, arguments=["--cache-redis", f"unix:{redis.socket}"])
    plain = start_server("plain", store=store)
    caller, other = Caller(cached), Caller(plain)
    eventually(lambda: "is in use" in cached.log)
    first = completed(caller, "k")
    hash = caller.submit(queue="q", idempotency_key="k").json["match"]["identity_hash"]
    eventually(lambda: redis.keys() == 1)
    assert again(caller, "k") == first

    assert other.http.delete(f"/v1/identities/{hash}").status == 200
    answer = caller.submit(queue="q", idempotency_key="k")

    assert answer.status == 201 and answer.json["execution"]["id"] != first


def test_a_wrong_address_is_refused_without_showing_the_password(tmp_path):
    server = Server(tmp_path / "server", environment={"HAPAX_CACHE_REDIS": "rediss://:secret@cache"}).launch()

    assert server.wait_exit() == 2
    assert "[cache] redis:" in server.log and "secret" not in server.log


def test_a_redis_that_is_nowhere_does_not_keep_the_server_from_serving(start_server, tmp_path):
    server = start_server(config=f'[cache]\nredis = "unix:{tmp_path / "nowhere.sock"}"\n')
    caller = Caller(server)

    task = completed(caller, "k")
    assert again(caller, "k") == task
    eventually(lambda: "is not used" in server.log)
