"""An invalid request is refused with the place of the error, and changes nothing."""

import json
import time

import pytest

from caller import Caller
from client import RawConnection, request_bytes
from server import SLOWDOWN

UNKNOWN_ID = "019bf2d4-0000-7000-8000-000000000000"


def refused(answer, status=400):
    assert answer.status == status, answer
    assert answer.json["error"] and answer.json["message"], answer
    return answer.json


# ---- JSON


@pytest.mark.parametrize(
    "body, line, column",
    [
        (b'{"type": "t",}', 1, 14),
        (b'{"type": "t"', 1, 13),
        (b'{\n "type": "t"\n "queue": "q"}', 3, 2),
        (b"", 1, 1),
        (b'{"type": "t"} {}', 1, 15),
        (b'{"type": "t", "input": 01}', 1, 25),
        (b'{"type": "t", "input": NaN}', 1, 24),
        (b"{'type': 't'}", 1, 2),
    ],
)
def test_malformed_json_is_refused_with_line_and_column(caller, body, line, column):
    error = refused(caller.http.post("/v1/tasks", raw=body))

    assert f"line {line}" in error["message"]
    assert f"column {column}" in error["message"]


@pytest.mark.parametrize(
    "input",
    [
        b'"\xff"',
        b'"\xc3"',
        b'"\xed\xa0\x80"',
        b'"\xc0\xaf"',
        b'"\xf4\x90\x80\x80"',
        b'"\\ud800"',
        b'"\\udc00x"',
        b'{"\xff": 1}',
        b'"a\x01"',
    ],
)
def test_malformed_utf8_and_lone_surrogates_are_refused_with_their_place(caller, input):
    error = refused(caller.http.post("/v1/tasks", raw=b'{"type": "t", "input": ' + input + b"}"))

    assert "line 1" in error["message"] and "column" in error["message"]


def test_nesting_is_limited(caller):
    deep = b"[" * 100_000 + b"]" * 100_000

    refused(caller.http.post("/v1/tasks", raw=b'{"type": "t", "input": ' + deep + b"}"))

    fits = b"[" * 100 + b"]" * 100
    assert caller.http.post("/v1/tasks", raw=b'{"type": "t", "input": ' + fits + b"}").status == 201


@pytest.mark.parametrize("body", [[], "text", 1, None, True])
def test_a_body_that_is_no_object_is_refused(caller, body):
    for path in ("/v1/tasks", "/v1/tasks/batch", "/v1/claims", "/v1/claims/heartbeat", "/v1/claims/return",
                 "/v1/claims/finish"):
        refused(caller.http.post(path, body))
    for path in ("/v1/queues/q", "/v1/types/t"):
        refused(caller.http.put(path, body))


# ---- fields

SUBMISSION = {
    "type": [1, "", "x" * 129, "a\nb", "a\x7f", ["t"]],
    "queue": [1, "", "x" * 129, "a\tb"],
    "idempotency_key": [1, "", "   ", "k" * 256, ["k"]],
    "scope": [1, "", "x" * 129, "a\x00b"],
    "identity": [1, "sometimes", ""],
    "identity_fields": ["/a", [1], ["a"], {}],
    "reuse": [1, "never"],
    "on_duplicate": [1, "ignore"],
    "idempotency_ttl": [5, "soon", "-1s", "1.5h"],
    "priority": ["high", 1.5, 1001, -1001, 10**30],
    "run_at": [5, "tomorrow", "2026-13-01T00:00:00Z", "2026-01-01"],
    "delay": [5, "soon"],
    "max_attempts": ["3", 0, 1001, 1.5],
    "retry": ["fast", [], {"speed": 1}],
    "retry/initial": [5, "soon"],
    "retry/factor": ["2", 0.5, -1],
    "retry/max": [5, "soon"],
    "timeout": [5, "soon"],
    "deadline": [5, "soon"],
    "concurrency_key": [1, ""],
    "dry_run": ["yes", 0],
    "run_here": [True, "w", [], {}, {"worker": "w", "colour": 1}]
    + [{"worker": "w", "lease": lease} for lease in (5, "soon", "0", "999ms", "25h")],
    "run_here/worker": [1, "", "x" * 129, None],
    "unknown_field": [1, "x"],
}

CLAIM = {
    "worker": [1, "", "x" * 129],
    "queues": ["q", [], [1], [""], ["x" * 129]],
    "types": ["t", [], [1], [""], ["x" * 129]],
    "limit": ["1", 0, -1, 1.5, 10**9],
    "wait": [5, "soon"],
    "lease": [5, "soon", "0", "999ms", "25h"],
    "unknown_field": [1],
}

QUEUE = {
    "retention": [5, "long", "-1d"],
    "rate_limit": [5, "fast", "0/sec", "100"],
    "burst": ["1", 0, -1],
    "max_running": ["1", -1],
    "concurrency_limit": ["1", 0],
    "cancel_grace": [5, "soon"],
    "idempotency_ttl": [5, "soon"],
    "paused": ["yes", 1],
    "unknown_field": [1],
}

TYPE = {
    "queue": [1, "", "x" * 129],
    "identity": [1, "sometimes"],
    "identity_fields": ["/a", [1], ["a"]],
    "scope": [1, "", "x" * 129],
    "reuse": [1, "never"],
    "on_duplicate": [1, "ignore"],
    "idempotency_ttl": [5, "soon"],
    "priority": ["high", 1001],
    "max_attempts": ["3", 0, 1001],
    "retry": ["fast"],
    "retry/initial": [5],
    "retry/factor": ["2", -1],
    "retry/max": ["soon"],
    "timeout": [5],
    "deadline": ["soon"],
    "unknown_field": [1],
}


def wrong_fields(table):
    return [(field, value) for field, values in table.items() for value in values]


def with_field(body, field, value):
    outer, _, inner = field.partition("/")
    return {**body, outer: {inner: value} if inner else value}


@pytest.mark.parametrize("field, value", wrong_fields(SUBMISSION))
def test_a_submission_with_a_wrong_field_is_refused_at_that_field(caller, fresh, field, value):
    queue = fresh("queue")

    error = refused(caller.http.post("/v1/tasks", with_field({"type": "t", "queue": queue}, field, value)))

    assert error["pointer"] == f"/{field}" or error["pointer"].startswith(f"/{field}/")
    assert caller.list(queue=queue) == []


@pytest.mark.parametrize("field, value", wrong_fields(SUBMISSION))
def test_a_batch_names_the_submission_that_is_wrong(caller, fresh, field, value):
    good = {"type": "t", "queue": fresh("queue")}

    answer = caller.batch(good, with_field(good, field, value))

    assert answer.status == 200, answer
    taken, error = answer.json["receipts"]
    assert taken["created"]
    assert error["error"] == "InvalidRequest"
    assert error["pointer"].startswith(f"/tasks/1/{field}")


@pytest.mark.parametrize("field, value", wrong_fields(CLAIM))
def test_a_claim_with_a_wrong_field_is_refused_at_that_field_and_takes_nothing(caller, fresh, field, value):
    queue = fresh("queue")
    task = caller.create(queue=queue)
    body = {"worker": "w", "queues": [queue]}

    error = refused(caller.http.post("/v1/claims", with_field(body, field, value)))

    assert error["pointer"] == f"/{field}" or error["pointer"].startswith(f"/{field}/")
    assert caller.task(task["id"])["status"] == "pending"


@pytest.mark.parametrize("field, value", wrong_fields(QUEUE))
def test_queue_settings_with_a_wrong_field_are_refused_at_that_field(caller, fresh, field, value):
    path = f"/v1/queues/{fresh('queue')}"

    error = refused(caller.http.put(path, {field: value}))

    assert error["pointer"] == f"/{field}"
    assert caller.http.get(path).json["known"] is False


@pytest.mark.parametrize("field, value", wrong_fields(TYPE))
def test_type_settings_with_a_wrong_field_are_refused_at_that_field(caller, fresh, field, value):
    path = f"/v1/types/{fresh('type')}"

    error = refused(caller.http.put(path, with_field({}, field, value)))

    assert error["pointer"] == f"/{field}" or error["pointer"].startswith(f"/{field}/")
    assert caller.http.get(path).json["declared"] is False


@pytest.mark.parametrize(
    "path, body, pointer",
    [
        ("/v1/tasks", {}, "/type"),
        ("/v1/tasks", {"type": None}, "/type"),
        ("/v1/tasks", {"type": "t", "run_at": "2026-01-01T00:00:00Z", "delay": "1s"}, "/delay"),
        ("/v1/tasks", {"type": "t", "identity": "contextual"}, "/identity_fields"),
        ("/v1/tasks/batch", {}, "/tasks"),
        ("/v1/tasks/batch", {"tasks": {}}, "/tasks"),
        ("/v1/tasks/batch", {"tasks": [], "more": 1}, "/more"),
        ("/v1/claims", {"queues": ["a", "b", "a"]}, "/queues/2"),
        ("/v1/claims", {"types": ["a", "b", "a"]}, "/types/2"),
        ("/v1/claims", {"types": []}, "/types"),
        ("/v1/claims", {"claim_id": ""}, "/claim_id"),
        ("/v1/claims", {"claim_id": "c" * 129}, "/claim_id"),
        ("/v1/claims", {"claim_id": 7}, "/claim_id"),
        ("/v1/claims", {"types": ["t"] * 257}, "/types"),
        ("/v1/claims/heartbeat", {}, "/leases"),
        ("/v1/claims/heartbeat", {"leases": [1]}, "/leases/0"),
        ("/v1/claims/heartbeat", {"leases": []}, "/leases"),
        ("/v1/claims/heartbeat", {"leases": ["x"], "lease": "soon"}, "/lease"),
        ("/v1/claims/return", {}, "/leases"),
        ("/v1/claims/return", {"leases": "x"}, "/leases"),
        ("/v1/claims/return", {"leases": [None]}, "/leases/0"),
        ("/v1/claims/return", {"leases": []}, "/leases"),
        ("/v1/claims/return", {"leases": ["x"] * 1001}, "/leases"),
        ("/v1/claims/return", {"leases": ["x"], "lease": "1s"}, "/lease"),
        ("/v1/claims/finish", {}, "/outcomes"),
        ("/v1/claims/finish", {"outcomes": [1]}, "/outcomes/0"),
        ("/v1/claims/finish", {"outcomes": [{}]}, "/outcomes/0/lease"),
        ("/v1/claims/finish", {"outcomes": [{"lease": "x", "error": "text"}]}, "/outcomes/0/error"),
        ("/v1/claims/finish", {"outcomes": [{"lease": "x", "error": {"retryable": "no"}}]}, "/outcomes/0/error"),
        ("/v1/claims/finish", {"outcomes": [{"lease": "x", "colour": 1}]}, "/outcomes/0/colour"),
        ("/v1/claims/finish", {"outcomes": [{"lease": "x", "result": 1, "error": {"message": "b"}}]}, "/outcomes/0"),
    ],
)
def test_missing_and_contradicting_fields_are_refused_at_their_place(caller, path, body, pointer):
    error = refused(caller.http.post(path, body))

    assert error["pointer"].startswith(pointer), error


# ---- limits of names and keys


@pytest.mark.parametrize("field", ["type", "queue", "scope"])
def test_a_name_has_at_most_128_bytes(caller, field):
    fits, too_long = "ü" * 64, "ü" * 64 + "x"
    body = {"type": "t", "idempotency_key": "k"}

    assert caller.http.post("/v1/tasks", {**body, field: fits}).status in (200, 201)
    assert refused(caller.http.post("/v1/tasks", {**body, field: too_long}))["pointer"] == f"/{field}"


def test_a_key_has_at_most_255_bytes(caller, fresh):
    type = fresh("type")

    assert caller.submit(type, idempotency_key="ü" * 127 + "x").status == 201
    assert refused(caller.submit(type, idempotency_key="ü" * 128))["pointer"] == "/idempotency_key"
    assert caller.submit(type, headers={"Idempotency-Key": "x" * 255}).status == 201
    refused(caller.submit(type, headers={"Idempotency-Key": "x" * 256}))


def test_a_namespace_is_a_name(shared_server):
    for bad in ("x" * 129, "a\x01b"):
        refused(Caller(shared_server, namespace=bad).submit())


# ---- HTTP


def test_a_body_over_the_limit_is_a_413_and_one_within_is_taken(start_server):
    server = start_server(config='[server]\nmax_body = "10000"\n')
    caller = Caller(server)

    assert caller.submit(input="x" * 9000).status == 201
    assert refused(caller.submit(input="x" * 10_000), 413)
    assert caller.submit().status == 201
    with RawConnection(server.port) as connection:
        connection.send(b"POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999999999999\r\n\r\n{")
        assert connection.read_response().status == 413
    with RawConnection(server.port) as connection:
        connection.send(b"POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        connection.send((b"1000\r\n" + b"x" * 0x1000 + b"\r\n") * 3)
        assert connection.read_response().status == 413


def test_headers_have_a_limit(server):
    with RawConnection(server.port) as connection:
        connection.send(b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + b"X-Filler: " + b"x" * 70_000 + b"\r\n\r\n")
        answer = connection.read_response()
    assert answer is None or answer.status in (400, 431)
    assert server.client.get("/health").status == 200


@pytest.mark.parametrize(
    "garbage",
    [b"\x16\x03\x01\x02\x00\x01", b"HELLO\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\r\n" * 50_000],
    ids=["TLS", "words", "another version", "blank lines"],
)
def test_what_is_not_http_gets_a_400_or_nothing(server, garbage):
    with RawConnection(server.port) as connection:
        connection.send(garbage + b"\r\n\r\n")
        connection.socket.shutdown(1)
        answer = connection.read_response()
    assert answer is None or answer.status in (400, 505)
    assert server.client.get("/health").status == 200


def test_a_slow_client_is_cut_while_others_are_served(server):
    """Half a header, half a body, and one byte now and then: each ends at the time limit of a request."""
    start = time.monotonic()
    connections = [RawConnection(server.port, timeout=40 * SLOWDOWN) for _ in range(3)]
    half_header, half_body, dripping = connections
    half_header.send(b"POST /v1/tasks HTTP/1.1\r\nHost:")
    half_body.send(b"POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
    dripping.send(b"POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n")
    dripping.socket.settimeout(0.5)
    while True:
        assert time.monotonic() - start < 30 * SLOWDOWN, "the dripping client was never cut"
        assert server.client.get("/health").status == 200
        try:
            dripping.send(b" ")
            answer = dripping.socket.recv(4096)
        except TimeoutError:
            continue
        except ConnectionError:
            break
        assert answer == b"" or b" 408 " in answer.split(b"\r\n")[0]
        break
    for connection in (half_header, half_body):
        answer = connection.read_response()
        assert answer is None or answer.status == 408
    assert time.monotonic() - start < 30 * SLOWDOWN
    for connection in connections:
        connection.close()


def test_the_answer_to_head_has_no_body(server):
    with RawConnection(server.port) as connection:
        connection.send(request_bytes("HEAD", "/health") + request_bytes("GET", "/health"))
        # Whatever the answer to HEAD, the next bytes on the connection are the answer to GET.
        while connection.read_line().strip():
            pass
        assert connection.read_response().status == 200


def test_head_is_get_without_the_body_on_every_route(server):
    caller = Caller(server)
    task = caller.create()["id"]
    paths = ["/", "/health", "/ready", "/openapi.json", "/v1/tasks", f"/v1/tasks/{task}", f"/v1/tasks/{task}/result"]
    for path in [*paths, "/v1/queues", "/v1/queues/q", "/v1/types", "/v1/types/t", f"/v1/tasks/{UNKNOWN_ID}"]:
        got, head = caller.http.get(path), caller.http.request("HEAD", path)
        assert (head.status, head.headers, head.body) == (got.status, got.headers, b""), path


def test_a_request_of_http_1_1_without_a_host_is_a_400(server):
    with RawConnection(server.port) as connection:
        connection.send(b"GET /health HTTP/1.1\r\n\r\n")
        assert refused(connection.read_response())["error"] == "MalformedHttp"


def test_what_curl_d_sends_is_json_but_not_what_a_page_of_another_site_sends(caller, fresh):
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    queue = fresh("queue")
    body = json.dumps({"type": "t", "queue": queue}).encode()
    assert caller.http.post("/v1/tasks", raw=body, headers=form).status == 201

    for headers in (form, {"Content-Type": "text/plain"}):
        refused(caller.http.post("/v1/tasks", raw=body, headers={**headers, "Origin": "http://evil.example"}), 415)
    refused(caller.http.post(f"/v1/queues/{queue}/pause", headers={"Origin": "http://evil.example"}), 415)
    assert len(caller.list(queue=queue)) == 1


def test_a_client_that_expects_100_continue_gets_it(server):
    body = b'{"type": "t"}'
    with RawConnection(server.port) as connection:
        connection.send(b"POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n")
        connection.send(b"Content-Length: %d\r\n\r\n" % len(body))
        assert connection.read_response().status == 100
        connection.send(body)
        assert connection.read_response().status == 201


def test_requests_in_one_packet_are_answered_in_order(server):
    with RawConnection(server.port) as connection:
        connection.send(b"".join(request_bytes("POST", "/v1/tasks", {"type": "t", "input": n}) for n in range(20)))
        inputs = [connection.read_response().json["execution"]["input"] for _ in range(20)]
    assert inputs == list(range(20))


@pytest.mark.parametrize(
    "method, path, allowed",
    [
        ("GET", "/v1/claims", "POST"),
        ("DELETE", "/v1/tasks", "GET"),
        ("PUT", "/v1/tasks", "POST"),
        ("POST", f"/v1/tasks/{UNKNOWN_ID}", "GET"),
        ("POST", "/health", "GET"),
        ("PATCH", "/v1/queues/q", "PUT"),
    ],
)
def test_a_wrong_method_is_a_405_that_says_which_are_right(caller, method, path, allowed):
    answer = caller.http.request(method, path)

    refused(answer, 405)
    assert allowed in answer.headers["allow"]


@pytest.mark.parametrize(
    "path", ["/v1", "/v1/nothing", "/v2/tasks", "/v1/tasks/a/b/c", "/v1//tasks", "/%zz", "/favicon.ico"]
)
def test_an_unknown_path_is_a_404(caller, path):
    answer = caller.http.get(path)

    assert answer.status == 404 or (path == "/%zz" and answer.status == 400)
    assert answer.json["error"]


def test_an_unknown_task_is_a_404_and_a_malformed_id_no_better(caller):
    for id in (UNKNOWN_ID, "nonsense", "%00", "%ff"):
        assert caller.http.get(f"/v1/tasks/{id}").status in (404, 400)
        assert caller.http.get(f"/v1/tasks/{id}/result").status in (404, 400)
    assert refused(caller.http.get(f"/v1/tasks/{UNKNOWN_ID}"), 404)


@pytest.mark.parametrize("wait", ["soon", "-1s", "", "1", "1000y"])
def test_a_wait_that_is_no_duration_is_refused(caller, wait):
    refused(caller.http.get(f"/v1/tasks/{UNKNOWN_ID}/result?wait={wait}"))


# ---- tokens

TOKENS = """
[tokens.admin]
token = "all-of-it"
[tokens.shop]
token = "shop-only"
namespace = "shop"
"""


def test_without_the_right_token_nothing_is_answered(start_server):
    server = start_server(config=TOKENS)

    assert refused(Caller(server).submit(), 401)
    assert refused(Caller(server, token="wrong").submit(), 401)
    assert Caller(server, token="wrong").http.get("/v1/tasks").status == 401
    basic = server.client.get("/v1/tasks", headers={"Authorization": "Basic all-of-it"})
    assert basic.status == 401 and "bearer" in basic.headers["www-authenticate"].lower()
    assert server.client.get("/health").status == 200
    assert server.client.get("/ready").status == 200


def test_a_token_opens_its_namespace_and_no_other(start_server):
    server = start_server(config=TOKENS)
    shop, admin = Caller(server, token="shop-only"), Caller(server, token="all-of-it")

    task = shop.create()

    assert Caller(server, token="all-of-it", namespace="shop").task(task["id"])["id"] == task["id"]
    assert admin.http.get(f"/v1/tasks/{task['id']}").status == 404
    assert refused(Caller(server, token="shop-only", namespace="bank").submit(), 403)
    assert Caller(server, token="shop-only", namespace="shop").submit().status == 201
    assert Caller(server, token="all-of-it", namespace="bank").submit().status == 201
