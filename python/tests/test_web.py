"""The Idempotency-Key middleware, in every framework: the table of the IETF draft."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

import hapax
from hapax import Hapax
from hapax.errors import InvalidRequest
from hapax.testing import Server
from hapax.web.answers import MOST_BODY
from hapax.web.rules import parse_key

from .sites import SITES, TYPE, Site


@pytest.fixture(params=SITES)
def make_site(request: pytest.FixtureRequest) -> Iterator[Callable[..., Site]]:
    made: list[Site] = []

    def make(app: Hapax, **options: Any) -> Site:
        site = SITES[request.param](app, **options)
        made.append(site)
        return site

    yield make
    for site in made:
        site.close()


@pytest.fixture
def site(make_site: Callable[..., Site], app: Hapax) -> Site:
    return make_site(app)


def assert_problem(response: httpx.Response, status: int, code: str) -> dict[str, Any]:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    told: dict[str, Any] = response.json()
    assert told["error"] == code
    assert told["status"] == status
    assert told["type"].startswith("https://")
    assert told["title"]
    assert told["detail"]
    return told


def test_a_required_route_without_a_key_is_refused(site: Site) -> None:
    told = assert_problem(site.order(None), 400, "IdempotencyKeyRequired")
    assert told["title"] == "Idempotency-Key is missing"
    assert site.shop.ran == []


def test_other_methods_pass_with_a_key_or_without(site: Site, app: Hapax) -> None:
    assert site.send(method="GET").text == "listed"
    assert site.send(method="GET", headers=[("Idempotency-Key", "k-1")]).text == "listed"
    assert hapax.sync(app.call("GET", "/v1/tasks"))["executions"] == []


def test_another_route_may_be_asked_without_a_key(site: Site) -> None:
    """Its handler runs outside of any task, which it asks for in this shop."""
    assert site.order(None, path="/other").status_code == 500
    assert site.order("k-1", path="/other").status_code == 201


def test_the_second_time_gets_the_stored_response(site: Site) -> None:
    first = site.order("k-1")
    assert (first.status_code, first.text) == (201, "order 1")
    assert "idempotency-replayed" not in first.headers
    assert first.headers["set-cookie"] == "session=secret"
    for key in ("k-1", '"k-1"'):
        again = site.order(key)
        assert (again.status_code, again.text) == (201, "order 1")
        assert again.headers["idempotency-replayed"] == "true"
        assert again.headers["x-order"] == "7"
        assert again.headers["content-type"] == TYPE
        assert "set-cookie" not in again.headers
    assert len(site.shop.ran) == 1
    assert site.order("k-2").text == "order 2"


def test_another_payload_is_refused(site: Site) -> None:
    site.order("k-1")
    assert_problem(site.order("k-1", "refuse"), 422, "IdempotencyConflict")
    assert_problem(site.order("k-1", path="/orders?gift=yes"), 422, "IdempotencyConflict")
    assert len(site.shop.ran) == 1


@pytest.mark.parametrize("do", ["binary", "empty", "refuse", "longest"])
def test_any_response_below_500_is_stored(site: Site, do: str) -> None:
    first, again = site.order("k-1", do), site.order("k-1", do)
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert again.headers.get("content-type") == first.headers.get("content-type")
    assert again.headers["idempotency-replayed"] == "true"
    assert len(site.shop.ran) == 1


def test_a_server_error_is_not_stored(site: Site) -> None:
    first = site.order("k-1", "fail")
    assert (first.status_code, first.content) == (503, b"come again")
    second = site.order("k-1", "fail")
    assert second.status_code == 201
    assert "idempotency-replayed" not in second.headers
    (one, key), (two, same_key) = site.shop.ran
    assert (one, two) == (1, 2)
    assert key == same_key


def test_a_handler_that_raises_is_run_again(site: Site) -> None:
    for attempt in (1, 2):
        assert site.order("k-1", "raise").status_code == 500
        assert site.shop.ran[-1][0] == attempt


def test_while_the_first_is_in_flight_the_second_is_refused(site: Site) -> None:
    answers: list[httpx.Response] = []
    first = threading.Thread(target=lambda: answers.append(site.order("k-1", "wait")))
    first.start()
    assert site.shop.at_work.wait(20)
    refused = site.order("k-1", "wait")
    assert_problem(refused, 409, "RequestInProgress")
    assert int(refused.headers["retry-after"]) >= 1
    site.shop.go_on.set()
    first.join()
    assert answers[0].status_code == 201
    again = site.order("k-1", "wait")
    assert (again.text, again.headers["idempotency-replayed"]) == ("order 1", "true")


def test_a_response_too_long_to_keep_is_sent_once(site: Site) -> None:
    first = site.order("k-1", "long")
    assert len(first.content) == MOST_BODY + 1
    again = site.order("k-1", "long")
    assert_problem(again, 409, "ResponseNotStored")
    assert again.headers["idempotency-replayed"] == "true"
    assert len(site.shop.ran) == 1


def test_a_stream_of_events_passes(site: Site) -> None:
    first = site.send(b"{}", path="/orders/events", headers=[("Idempotency-Key", "k-1")])
    assert first.text == "data: 1\n\ndata: 2\n\n"
    again = site.send(b"{}", path="/orders/events", headers=[("Idempotency-Key", "k-1")])
    assert_problem(again, 409, "ResponseNotStored")
    assert len(site.shop.ran) == 1


def test_principal_and_route_are_the_scope_of_a_key(site: Site) -> None:
    site.order("k-1", Authorization="Bearer ada")
    site.order("k-1", Authorization="Bearer bob")
    site.order("k-1")
    site.order("k-1", path="/other", Authorization="Bearer ada")
    assert len(site.shop.ran) == 4
    assert site.order("k-1", Authorization="Bearer bob").text == "order 2"


def test_cookies_without_a_principal_are_an_error_of_the_set_up(make_site: Callable[..., Site], app: Hapax) -> None:
    site = make_site(app)
    assert_problem(site.order("k-1", Cookie="session=1"), 500, "NoPrincipal")
    assert site.shop.ran == []
    named = make_site(app, principal=lambda asks: "ada")
    assert named.order("k-1", Cookie="session=1").status_code == 201


@pytest.mark.parametrize("key", ['"abc', '"a"b"', '"a\\b"', '""', " ", "k" * 256, '"'])
def test_a_malformed_key_is_refused(site: Site, key: str) -> None:
    assert_problem(site.order(key), 400, "InvalidIdempotencyKey")
    assert site.shop.ran == []


def test_keys_as_the_header_has_them() -> None:
    assert parse_key([r'"a\"b\\c"']) == 'a"b\\c'
    assert parse_key([" abc\t"]) == "abc"
    assert parse_key(["ü".encode().decode("latin-1")]) == "ü"
    for wrong in (["a", "b"], ["\xff"], ["a\x01b"], []):
        with pytest.raises(InvalidRequest):
            parse_key(wrong)


def test_an_engine_that_is_away_refuses(make_site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hapax.calls._PAUSES_S", (0.0,))
    site = make_site(Hapax("http://127.0.0.1:9"))
    refused = site.order("k-1")
    assert_problem(refused, 503, "StoreUnavailable")
    assert int(refused.headers["retry-after"]) >= 1
    assert site.shop.ran == []


def test_nothing_of_a_payload_or_secret_is_kept_but_the_response(site: Site, app: Hapax) -> None:
    site.order("k-1", Authorization="Bearer secret-token")
    page = hapax.sync(app.call("GET", "/v1/tasks?type=http_request"))
    shown = json.dumps(page)
    assert "secret" not in shown
    assert "buy" not in shown
    (execution,) = page["executions"]
    assert execution["queue"] == "http"
    assert execution["input"]["route"] == "POST /orders"


def storm(app: Hapax, clients: int, keys: int) -> None:
    """Every client sends every key; all of them at the same time, and again while a request is in flight."""
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    from hapax.asgi import IdempotencyMiddleware

    effects: Counter[str] = Counter()

    async def orders(request: Request) -> PlainTextResponse:
        key = request.headers["idempotency-key"]
        effects[key] += 1
        await asyncio.sleep(0)
        return PlainTextResponse(f"{key} {effects[key]}")

    web = Starlette(routes=[Route("/orders", orders, methods=["POST"])])
    guarded = IdempotencyMiddleware(web, app, required=True)
    replayed = 0

    async def client() -> None:
        nonlocal replayed
        for key in map(str, range(keys)):
            while True:
                status, headers, body = await post(guarded, key)
                if status == 200:
                    break
                assert status == 409, body
                await asyncio.sleep(0.01)
            assert body == f"{key} 1".encode()
            replayed += (b"idempotency-replayed", b"true") in headers

    async def main() -> None:
        await asyncio.gather(*(client() for _ in range(clients)))

    asyncio.run(main())
    assert effects == {str(key): 1 for key in range(keys)}
    assert replayed == (clients - 1) * keys


async def post(application: Any, key: str) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    """A request without a client library: thousands of them are sent."""
    messages: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b"{}"}

    async def send(message: Any) -> None:
        messages.append(message)

    headers = [(b"idempotency-key", key.encode()), (b"host", b"shop")]
    scope = {"type": "http", "method": "POST", "path": "/orders", "headers": headers, "query_string": b""}
    await application(scope, receive, send)
    body = b"".join(message.get("body", b"") for message in messages[1:])
    return messages[0]["status"], messages[0]["headers"], body


def test_64_clients_at_once_have_one_effect_for_each_of_200_keys_native() -> None:
    app = Hapax("memory:")
    storm(app, clients=64, keys=200)
    app.close()


def test_64_clients_at_once_have_one_effect_per_key_http(server: Server) -> None:
    app = Hapax(server.url, namespace="storm")
    storm(app, clients=64, keys=20)
    app.close()


@pytest.mark.slow
def test_64_clients_at_once_have_one_effect_for_each_of_200_keys_http(server: Server) -> None:
    app = Hapax(server.url, namespace="long-storm")
    storm(app, clients=64, keys=200)
    app.close()
