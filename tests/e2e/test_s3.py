"""Hapax on nothing but a bucket: the program as a person runs it, on a real S3 server."""

import itertools
from collections import Counter

import pytest

from caller import Caller
from client import Volley, request_bytes
from command import FAILED, OK, USAGE, Command
from s3 import S3

_buckets = itertools.count(1)


@pytest.fixture(scope="module")
def s3():
    s3 = S3().start()
    yield s3
    s3.close()


@pytest.fixture
def store(s3):
    return s3.create_bucket(f"bucket-{next(_buckets)}")


@pytest.fixture
def command(tmp_path, store, s3):
    command = Command(tmp_path, ["--store", store])
    command.environment.update(s3.environment)
    return command


def verdicts(answer):
    return {check["about"]: check["verdict"] for check in answer["checks"]}


def test_doctor_finds_a_real_bucket_fit(command):
    checks = verdicts(command.json("doctor"))
    for about in ("bucket", "permissions", "If-None-Match", "If-Match", "concurrency", "bucket clock"):
        assert checks[about] == "ok", checks
    assert checks["store"] == "warn", "there is none yet"

    command.ok("migrate")
    assert verdicts(command.json("doctor"))["store"] == "ok"


def test_doctor_names_what_is_wrong(command, s3):
    missing = command.run("doctor", where=["--store", f"s3://no-such-bucket/x?endpoint={s3.endpoint}"])
    assert missing.code == FAILED and "there is no such bucket" in missing.out, missing

    stranger = command.run("doctor", environment={"AWS_SECRET_ACCESS_KEY": "wrong"})
    assert stranger.code == FAILED and "the secret key does not belong to the access key" in stranger.out, stranger
    assert "wrong" not in stranger.out.replace("what was wrong", "")

    nobody = command.run("doctor", environment={"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""})
    assert nobody.code == FAILED and "there are no credentials" in nobody.out, nobody


def test_a_wrong_url_says_what_to_write(command):
    for url, word in [("s3://", "the bucket is missing"), ("s3:bucket", "s3://bucket/prefix"),
                      ("s3://b?regoin=x", 'no option "regoin"')]:
        ended = command.run("list", where=["--store", url])
        assert ended.code in (USAGE, FAILED) and word in ended.err, ended


def test_migrate_makes_the_store_and_sets_the_lifecycle_rules(command, s3, store):
    for _ in range(2):
        ended = command.run("migrate")
        assert ended.code == OK and "is up to date" in ended.out and ended.err == "", ended

    rules = s3.ask("GET", store, "?lifecycle=")
    assert "hapax: old versions of hapax/idempotency/" in rules
    assert "<NoncurrentDays>1</NoncurrentDays>" in rules and "<Days>" not in rules


def test_reading_creates_no_store(command, s3, store):
    ended = command.run("list")
    assert ended.code == FAILED and "no store yet" in ended.err, ended
    assert "<Key>" not in s3.ask("GET", store, "?list-type=2")


def test_say_it_twice_it_happens_once(command):
    first = command.json("submit", "shout", '"hello"', "--key", "shout-1")
    again = command.json("submit", "shout", '"hello"', "--key", "shout-1")
    assert first["created"] and not again["created"]
    assert first["execution"]["id"] == again["execution"]["id"]

    command.ok("work", "--exec", "tr a-z A-Z", "--until-idle", "1s")

    done = command.json("submit", "shout", '"hello"', "--key", "shout-1", "--wait")
    assert done["execution"]["result"] == "HELLO" and not done["created"]


def test_bench_says_what_a_task_costs(command):
    figures = {figure["what"]: figure for figure in command.json("bench", "--tasks", "200", "--in-flight", "16")["figures"]}

    print({what: figure["requests_per_task"] for what, figure in figures.items()})
    for figure in figures.values():
        assert figure["requests_per_task"]["put"] > 0


CALLERS, ROUNDS = 32, 20


def test_one_of_many_callers_at_two_servers_creates_and_all_get_its_execution(start_server, store, s3):
    one, two = (start_server(name, store=store, environment=s3.environment) for name in ("one", "two"))
    caller = Caller(one)
    with Volley([one.port, two.port] * (CALLERS // 2)) as volley:
        for turn in range(ROUNDS):
            submission = {"type": "charge", "idempotency_key": f"order-{turn}", "input": turn}
            answers = volley.fire([request_bytes("POST", "/v1/tasks", submission)] * CALLERS)

            assert Counter(answer.status for answer in answers) == {201: 1, 200: CALLERS - 1}, answers
            ids = {answer.json["execution"]["id"] for answer in answers}
            assert [e["id"] for e in caller.list(idempotency_key=f"order-{turn}")] == list(ids)


def test_what_one_server_takes_in_another_hands_out(start_server, store, s3):
    one, two = (Caller(start_server(name, store=store, environment=s3.environment)) for name in ("one", "two"))
    id = one.create(queue="q")["id"]
    claim = two.claim_one("q")
    assert claim["execution"]["id"] == id
    two.finish(claim["lease"], {"by": "two"})
    assert one.closed(id)["result"] == {"by": "two"}
