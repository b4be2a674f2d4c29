"""The same small shop in every web framework, behind the Idempotency-Key middleware."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from typing import Annotated, Any, NamedTuple

import httpx

import hapax
from hapax import Hapax
from hapax.asgi import IdempotencyMiddleware as AsgiMiddleware
from hapax.flask import IdempotencyMiddleware as WsgiMiddleware

REQUIRED = ["/orders*"]
TYPE = "application/x-order"


class Made(NamedTuple):
    """What a handler answers with."""

    status: int
    headers: dict[str, str]
    body: bytes


class Shop:
    """What handlers do, whatever the framework, by the member `do` of the request."""

    def __init__(self) -> None:
        self.ran: list[tuple[int, str]] = []
        self.at_work = threading.Event()
        self.go_on = threading.Event()

    def handle(self, body: bytes) -> Made:
        do = json.loads(body)["do"]
        task = hapax.current()
        self.ran.append((task.attempt, task.effect_key))
        if do == "raise":
            raise RuntimeError("the shop is on fire")
        if do == "fail" and len(self.ran) == 1:
            return Made(503, {}, b"come again")
        if do == "wait":
            self.at_work.set()
            assert self.go_on.wait(20)
        if do == "binary":
            return Made(201, {"Content-Type": "image/png"}, b"\x89PNG\xff\x00")
        if do == "long":
            return Made(200, {"Content-Type": "text/plain"}, b"x" * (1024 * 1024 + 1))
        if do == "longest":
            return Made(200, {"Content-Type": "text/plain"}, b"x" * (1024 * 1024))
        if do == "refuse":
            return Made(404, {"Content-Type": TYPE}, b"no such thing")
        if do == "empty":
            return Made(204, {"X-Order": "1"}, b"")
        headers = {"Content-Type": TYPE, "X-Order": "7", "Set-Cookie": "session=secret"}
        return Made(201, headers, f"order {len(self.ran)}".encode())

    def parts(self) -> Iterator[bytes]:
        task = hapax.current()
        self.ran.append((task.attempt, task.effect_key))
        return iter([b"data: 1\n\n", b"data: 2\n\n"])


class Site:
    """A shop that can be sent requests."""

    def __init__(self, shop: Shop) -> None:
        self.shop = shop

    def send(
        self, body: bytes = b"", *, method: str = "POST", path: str = "/orders", headers: Any = None
    ) -> httpx.Response:
        raise NotImplementedError

    def order(self, key: str | None, do: str = "buy", path: str = "/orders", **headers: str) -> httpx.Response:
        """A request with this key and payload."""
        sent = [(name.replace("_", "-"), value) for name, value in headers.items()]
        if key is not None:
            sent.append(("Idempotency-Key", key))
        return self.send(json.dumps({"do": do}).encode(), path=path, headers=sent)

    def close(self) -> None:
        pass


class WsgiSite(Site):
    def __init__(self, shop: Shop, application: Any) -> None:
        super().__init__(shop)
        self._application = application

    def send(self, body: bytes = b"", *, method: str = "POST", path: str = "/orders", headers: Any = None) -> Any:
        transport = httpx.WSGITransport(self._application, raise_app_exceptions=False)
        with httpx.Client(transport=transport, base_url="http://shop") as client:
            return client.request(method, path, content=body, headers=headers)


class AsgiSite(Site):
    """On an event loop of its own, which a test may block on."""

    def __init__(self, shop: Shop, application: Any) -> None:
        super().__init__(shop)
        self._application = application
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()

    def send(self, body: bytes = b"", *, method: str = "POST", path: str = "/orders", headers: Any = None) -> Any:
        async def request() -> httpx.Response:
            transport = httpx.ASGITransport(self._application, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://shop") as client:
                return await client.request(method, path, content=body, headers=headers)

        return asyncio.run_coroutine_threadsafe(request(), self._loop).result(30)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def starlette(app: Hapax, **options: Any) -> Site:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response, StreamingResponse
    from starlette.routing import Route

    shop = Shop()

    async def orders(request: Request) -> Response:
        if request.method == "GET":
            return Response(b"listed")
        made = await asyncio.to_thread(shop.handle, await request.body())
        return Response(made.body, made.status, made.headers)

    async def events(request: Request) -> Response:
        return StreamingResponse(shop.parts(), media_type="text/event-stream")

    web = Starlette(
        routes=[
            Route("/orders", orders, methods=["POST", "GET"]),
            Route("/orders/events", events, methods=["POST"]),
            Route("/other", orders, methods=["POST"]),
        ]
    )
    web.add_middleware(AsgiMiddleware, hapax=app, **{"required": REQUIRED, **options})
    return AsgiSite(shop, web)


def fastapi(app: Hapax, **options: Any) -> Site:
    from fastapi import Depends, FastAPI, Request
    from fastapi.responses import Response, StreamingResponse

    shop = Shop()
    web = FastAPI()

    async def payload_of(request: Request) -> bytes:
        return await request.body()

    def orders(payload: Annotated[bytes, Depends(payload_of)]) -> Response:  # a plain function: it runs on a thread
        made = shop.handle(payload)
        return Response(made.body, made.status, made.headers)

    async def events() -> Response:
        return StreamingResponse(shop.parts(), media_type="text/event-stream")

    web.get("/orders")(lambda: Response(b"listed"))
    web.post("/orders")(orders)
    web.post("/other")(orders)
    web.post("/orders/events")(events)
    web.add_middleware(AsgiMiddleware, hapax=app, **{"required": REQUIRED, **options})
    return AsgiSite(shop, web)


def flask(app: Hapax, **options: Any) -> Site:
    from flask import Flask, Response, request

    shop = Shop()
    web = Flask("shop")

    @web.route("/orders", methods=["GET", "POST"])
    @web.route("/other", methods=["POST"])
    def orders() -> Response:
        if request.method == "GET":
            return Response(b"listed")
        made = shop.handle(request.get_data())
        return Response(made.body, made.status, made.headers)

    @web.post("/orders/events")
    def events() -> Response:
        return Response(shop.parts(), content_type="text/event-stream")

    web.wsgi_app = WsgiMiddleware(web.wsgi_app, app, **{"required": REQUIRED, **options})  # type: ignore[method-assign]
    return WsgiSite(shop, web)


class _DjangoUrls:
    def __init__(self, shop: Shop) -> None:
        from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
        from django.urls import path
        from django.views.decorators.csrf import csrf_exempt

        @csrf_exempt
        def orders(request: HttpRequest) -> HttpResponse:
            if request.method == "GET":
                return HttpResponse(b"listed")
            made = shop.handle(request.body)
            return HttpResponse(made.body, status=made.status, headers=made.headers)

        def events(request: HttpRequest) -> StreamingHttpResponse:
            return StreamingHttpResponse(shop.parts(), content_type="text/event-stream")

        self.urlpatterns = [path("orders", orders), path("other", orders), path("orders/events", events)]


def _django_settings(urls: _DjangoUrls, app: Hapax, options: dict[str, Any]) -> Any:
    from django.conf import settings
    from django.test import override_settings

    if not settings.configured:
        settings.configure(USE_TZ=True)
    return override_settings(
        ALLOWED_HOSTS=["*"],
        DEBUG=False,
        LOGGING_CONFIG=None,
        MIDDLEWARE=["hapax.django.IdempotencyMiddleware"],
        ROOT_URLCONF=urls,
        HAPAX_IDEMPOTENCY={"app": app, "required": REQUIRED, **options},
    )


class _DjangoSite(Site):
    """The settings count while a request is handled."""

    def __init__(self, site: Callable[[Any], Site], handler: Callable[[], Any], shop: Shop, settings: Any) -> None:
        super().__init__(shop)
        self._settings = settings
        self._settings.enable()
        from django.urls import clear_url_caches, set_urlconf

        clear_url_caches()
        set_urlconf(None)
        self._site = site(handler())

    def send(self, body: bytes = b"", *, method: str = "POST", path: str = "/orders", headers: Any = None) -> Any:
        return self._site.send(body, method=method, path=path, headers=headers)

    def close(self) -> None:
        self._settings.disable()
        self._site.close()


def django(app: Hapax, **options: Any) -> Site:
    from django.core.handlers.wsgi import WSGIHandler

    shop = Shop()
    settings = _django_settings(_DjangoUrls(shop), app, options)
    return _DjangoSite(lambda handler: WsgiSite(shop, handler), WSGIHandler, shop, settings)


def django_async(app: Hapax, **options: Any) -> Site:
    from django.core.handlers.asgi import ASGIHandler

    shop = Shop()
    settings = _django_settings(_DjangoUrls(shop), app, options)
    return _DjangoSite(lambda handler: AsgiSite(shop, handler), ASGIHandler, shop, settings)


SITES: dict[str, Callable[..., Site]] = {
    "starlette": starlette,
    "fastapi": fastapi,
    "flask": flask,
    "django": django,
    "django-async": django_async,
}
