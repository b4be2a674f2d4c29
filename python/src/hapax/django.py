"""Idempotency-Key middleware for Django, for both synchronous and asynchronous servers.

MIDDLEWARE = [..., "django.contrib.auth.middleware.AuthenticationMiddleware", "hapax.django.IdempotencyMiddleware"]
HAPAX_IDEMPOTENCY = {"app": "shop.tasks.app", "required": ["/orders*"]}
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from asgiref.sync import iscoroutinefunction, markcoroutinefunction, sync_to_async
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase, StreamingHttpResponse
from django.utils.module_loading import import_string

from hapax.app import Hapax
from hapax.context import CURRENT
from hapax.transport import sync
from hapax.web import Answer, Asked, Gate, Rules
from hapax.web.rules import principal_of_headers

if TYPE_CHECKING:
    from hapax.here.attempt import Attempt

_OPTIONS = {"app", "methods", "required", "principal", "lease", "ttl"}


class IdempotencyMiddleware:
    """Answers a request with an Idempotency-Key once: the view runs for the first one, later ones get its response.

    The setting `HAPAX_IDEMPOTENCY` has `app`, a `Hapax` or the path of one, and may have `required`: the routes that
    need a key (True for all, path patterns such as `"/payments/*"`, or a function of method and path); `principal`, a
    function from the request to who asks, by default the user, else the session, else whoever has the Authorization
    header; `methods`; `ttl`, how long a key counts, else as long as the response is kept (the retention of the queue
    `http`); and `lease`. In the view `hapax.current()` has the attempt and the effect key.
    """

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self._get_response = get_response
        options = _options()
        self._rules = Rules(options.get("methods", ("POST", "PATCH")), options.get("required", False))
        self._principal: Callable[[HttpRequest], str | Answer] = _found(options.get("principal", _principal_of))
        self._gate = Gate(_found(options["app"]), lease=options.get("lease", "30s"), ttl=options.get("ttl"))
        self._is_async = iscoroutinefunction(get_response)
        if self._is_async:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        if self._is_async:
            return self._call_async(request)
        asked = self._asked(request)
        if asked is None:
            return cast("HttpResponseBase", self._get_response(request))
        if isinstance(asked, Answer):
            return _response_of(asked)
        begun = sync(self._gate.begin(asked))
        if isinstance(begun, Answer):
            return _response_of(begun)
        token = CURRENT.set(begun.context)
        try:
            response = self._get_response(request)
        except BaseException as error:
            sync(self._gate.raised(begun, error))
            raise
        finally:
            CURRENT.reset(token)
        return sync(self._end(begun, response))

    async def _call_async(self, request: HttpRequest) -> HttpResponseBase:
        asked = await sync_to_async(self._asked)(request)  # who the user is may be a question for the database
        if asked is None:
            return cast("HttpResponseBase", await self._get_response(request))
        if isinstance(asked, Answer):
            return _response_of(asked)
        begun = await self._gate.begin(asked)
        if isinstance(begun, Answer):
            return _response_of(begun)
        token = CURRENT.set(begun.context)
        try:
            response = await self._get_response(request)
        except BaseException as error:
            await self._gate.raised(begun, error)
            raise
        finally:
            CURRENT.reset(token)
        return await self._end(begun, response)

    def _asked(self, request: HttpRequest) -> Asked | Answer | None:
        method = request.method or ""
        field = request.META.get("HTTP_IDEMPOTENCY_KEY")
        key = self._rules.key_of(method, request.path, [] if field is None else [field])
        if key is None or isinstance(key, Answer):
            return key
        principal = self._principal(request)
        if isinstance(principal, Answer):
            return principal
        query = request.META.get("QUERY_STRING", "")
        return Asked(key, principal, method, request.path, query, request.body)

    async def _end(self, attempt: Attempt, response: HttpResponseBase) -> HttpResponseBase:
        headers = [(str(name), str(value)) for name, value in response.items()]
        if isinstance(response, StreamingHttpResponse) or not isinstance(response, HttpResponse):
            await self._gate.end_without_body(attempt, response.status_code, headers)
            return response
        answer = Answer(response.status_code, headers, response.content)
        sent = await self._gate.end(attempt, answer)
        return response if sent is answer else _response_of(sent)


def _options() -> Mapping[str, Any]:
    options: Mapping[str, Any] = getattr(settings, "HAPAX_IDEMPOTENCY", {})
    if "app" not in options:
        raise ImproperlyConfigured('HAPAX_IDEMPOTENCY needs "app": a hapax.Hapax, or its path such as "shop.tasks.app"')
    if not isinstance(_found(options["app"]), Hapax):
        raise ImproperlyConfigured('HAPAX_IDEMPOTENCY["app"] is no hapax.Hapax')
    unknown = set(options) - _OPTIONS
    if unknown:
        raise ImproperlyConfigured(f"HAPAX_IDEMPOTENCY does not know {sorted(unknown)}; it knows {sorted(_OPTIONS)}")
    return options


def _found(option: Any) -> Any:
    return import_string(option) if isinstance(option, str) else option


def _principal_of(request: HttpRequest) -> str | Answer:
    user = getattr(request, "user", None)
    if user is not None and user.is_authenticated:
        return f"user {user.pk}"
    session = getattr(request, "session", None)
    if session is not None and session.session_key:
        return f"session {session.session_key}"
    return principal_of_headers(request.META.get("HTTP_AUTHORIZATION"), user is None and bool(request.COOKIES))


def _response_of(answer: Answer) -> HttpResponse:
    response = HttpResponse(answer.body, status=answer.status)
    del response.headers["Content-Type"]
    for name, value in answer.headers:
        response.headers[name] = value
    return response
