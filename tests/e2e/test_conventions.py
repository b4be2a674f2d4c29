"""What HTTP clients rely on besides the API itself, and the environment of containers."""

import gzip
import json
import re
import zlib
from email.utils import parsedate_to_datetime

UNKNOWN = "/v1/tasks/019bf2d4-0000-7000-8000-000000000000"
PROBLEM = {"Accept": "application/problem+json"}


def test_a_quoted_key_is_the_bare_one(caller):
    for number, (first, second) in enumerate([("abc", '"abc"'), ('"a\\"b\\\\c"', 'a"b\\c'), ('"x y"', "x y")]):
        task = {"type": f"quoted-{number}"}
        created = caller.http.post("/v1/tasks", task, headers={"Idempotency-Key": first})
        again = caller.http.post("/v1/tasks", task, headers={"Idempotency-Key": second})
        assert (created.status, again.status) == (201, 200), (first, again)
        assert created.json["execution"]["id"] == again.json["execution"]["id"]
    id = created.json["execution"]["id"]
    assert not caller.http.post(f"/v1/tasks/{id}/cancel", headers={"Idempotency-Key": "c"}).json["idempotency_replayed"]
    replayed = caller.http.post(f"/v1/tasks/{id}/cancel", headers={"Idempotency-Key": '"c"'})
    assert replayed.json["idempotency_replayed"] and replayed.headers["idempotency-replayed"] == "true"


def test_a_malformed_key_is_refused_everywhere(caller):
    for key in ('"abc', '"a"b"', '"a\\b"', '""', '"abc";v=1'):
        for path, body in (("/v1/tasks", {"type": "t"}), ("/v1/workflows", {"type": "w"}), (UNKNOWN + "/cancel", {})):
            answer = caller.http.post(path, body, headers={"Idempotency-Key": key})
            assert (answer.status, answer.json["error"]) == (400, "InvalidIdempotencyKey"), (path, key, answer)


def test_a_key_is_refused_where_it_has_no_meaning(caller):
    key = {"Idempotency-Key": "abc"}
    for method, path, body in (
        ("GET", "/v1/tasks", None),
        ("GET", "/health", None),
        ("POST", "/v1/claims", {}),
        ("POST", "/v1/tasks/batch", {"tasks": [{"type": "t"}]}),
        ("PUT", "/v1/queues/q", {}),
        ("POST", "/v1/queues/q/pause", {}),
        ("DELETE", "/v1/activities/a", None),
    ):
        options = {"headers": key} if body is None else {"headers": key, "body": body}
        answer = caller.http.request(method, path, **options)
        assert answer.status == 400 and answer.json["header"] == "Idempotency-Key", (path, answer)
        assert "has no meaning for this operation" in answer.json["message"]


def test_what_is_created_has_its_place(caller):
    task = caller.http.post("/v1/tasks", {"type": "t", "idempotency_key": "place"})
    assert task.headers["location"] == f"/v1/tasks/{task.json['execution']['id']}"
    assert caller.http.get(task.headers["location"]).json["id"] == task.json["execution"]["id"]
    flow = caller.http.post("/v1/workflows", {"type": "w", "workflow_id": "a/b ü"})
    assert caller.http.get(flow.headers["location"]).json["workflow_id"] == "a/b ü"
    activity = {"workflow": {"type": "w"}, "trigger": {"event": {"type": "x"}}}
    placed = caller.http.put("/v1/activities/a%20b", activity)
    assert placed.status == 201 and caller.http.get(placed.headers["location"]).json["id"] == "a b"
    run = caller.http.post("/v1/activities/a%20b/trigger")
    assert run.status == 201
    assert caller.http.get(run.headers["location"]).json["workflow_id"] == run.json["workflow_id"]
    duplicate = caller.http.post("/v1/tasks", {"type": "t", "idempotency_key": "place"})
    assert duplicate.headers["idempotency-replayed"] == "true" and "location" not in duplicate.headers
    assert "idempotency-replayed" not in task.headers


def test_every_answer_has_a_date(caller):
    for method, path in (("GET", "/health"), ("GET", "/nothing"), ("DELETE", "/v1/tasks"), ("OPTIONS", "/v1/tasks")):
        date = caller.http.request(method, path).headers["date"]
        assert re.fullmatch(r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT", date), date
        parsedate_to_datetime(date)


def test_errors_are_problems_where_asked_for(caller):
    answer = caller.http.get(UNKNOWN, headers=PROBLEM)
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json == {
        "type": "urn:hapax:error:TaskNotFound",
        "title": "Task not found",
        "status": 404,
        "detail": answer.json["message"],
        "error": "TaskNotFound",
        "message": answer.json["message"],
    }
    task = {"type": "t", "idempotency_key": "p", "on_duplicate": "error"}
    caller.http.post("/v1/tasks", task)
    refused = caller.http.post("/v1/tasks", task, headers=PROBLEM).json
    assert (refused["status"], refused["execution_status"], refused["title"]) == (409, "pending", "Task already exists")
    assert caller.http.get("/v1/tasks", headers=PROBLEM).headers["content-type"] == "application/json"
    for accept in ("*/*", "application/json", "application/json, application/problem+json;q=0.1"):
        assert caller.http.get(UNKNOWN, headers={"Accept": accept}).headers["content-type"] == "application/json"


def test_long_answers_are_compressed_where_asked_for(caller):
    for size in (3_000, 300_000):
        task = {"type": "t", "input": "x" * size, "idempotency_key": f"long-{size}"}
        plain = caller.http.post("/v1/tasks", task)
        path = plain.headers["location"]
        whole = caller.http.get(path)
        assert "content-encoding" not in whole.headers and whole.headers["vary"] == "Accept-Encoding"
        for coding, decode in (("gzip", gzip.decompress), ("deflate", zlib.decompress)):
            answer = caller.http.get(path, headers={"Accept-Encoding": f"{coding}, br"})
            assert answer.headers["content-encoding"] == coding and len(answer.body) < size / 2
            assert json.loads(decode(answer.body)) == whole.json
        refused = caller.http.get(path, headers={"Accept-Encoding": "gzip;q=0"})
        assert "content-encoding" not in refused.headers
    assert "content-encoding" not in caller.http.get("/health", headers={"Accept-Encoding": "gzip"}).headers


def test_a_body_may_come_compressed_within_its_limit(caller):
    send = lambda raw, coding: caller.http.post("/v1/tasks", raw=raw, headers={"Content-Encoding": coding})  # noqa: E731
    task = b'{"type":"t"}'
    assert send(gzip.compress(task), "gzip").status == 201
    assert send(zlib.compress(task), "deflate").status == 201
    assert send(task, "identity").status == 201
    assert send(gzip.compress(b" " * 50_000_000), "gzip").status == 413
    assert send(task, "gzip").status == 400
    unknown = send(task, "br")
    assert unknown.status == 415 and unknown.headers["accept-encoding"] == "gzip, deflate"


def test_a_path_says_what_it_allows(caller):
    for path, allow in (
        ("/v1/tasks", "GET, HEAD, POST, OPTIONS"),
        ("/v1/tasks/batch", "POST, OPTIONS"),
        ("/v1/queues/q", "GET, HEAD, PUT, OPTIONS"),
    ):
        options, wrong = caller.http.request("OPTIONS", path), caller.http.request("TRACE", path)
        assert (options.status, options.headers["allow"]) == (204, allow)
        assert (wrong.status, wrong.headers["allow"]) == (405, allow)


def test_a_whole_number_is_an_integer(caller):
    raw = b'{"type":"t","priority":10.0,"max_attempts":1e1}'
    execution = caller.http.post("/v1/tasks", raw=raw).json["execution"]
    assert (execution["priority"], execution["max_attempts"]) == (10, 10)
    assert caller.http.post("/v1/tasks", raw=b'{"type":"t","priority":1.5}').status == 400


def test_a_kubernetes_service_called_hapax_stops_nothing(start_server):
    links = {}
    for service in ("HAPAX", "HAPAX_WEB"):
        links[f"{service}_SERVICE_HOST"] = "10.0.171.239"
        links[f"{service}_SERVICE_PORT"] = links[f"{service}_SERVICE_PORT_HTTP"] = "7373"
        links[f"{service}_PORT"] = links[f"{service}_PORT_7373_TCP"] = "tcp://10.0.171.239:7373"
        links[f"{service}_PORT_7373_TCP_PROTO"] = "tcp"
        links[f"{service}_PORT_7373_TCP_PORT"] = "7373"
        links[f"{service}_PORT_7373_TCP_ADDR"] = "10.0.171.239"
    assert start_server(environment=links).client.get("/health").status == 200
