"""From a URL to the transport for it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from hapax.transport.base import Transport


def open_transport(url: str, token: str | None, namespace: str | None) -> Transport:
    """Opens the engine at `url`: over HTTP, or within this process."""
    headers = {"hapax-namespace": namespace} if namespace else {}
    if urlsplit(url).scheme in ("http", "https"):
        from hapax.transport.http import HttpTransport

        return HttpTransport(url, token=token, headers=headers)
    from hapax.transport.native import NativeTransport

    return NativeTransport(url, token=token, namespace=namespace)


def open_for_worker(url: str, token: str | None, namespace: str | None) -> Transport | None:
    """For a worker of a server: the engine's own client, if this installation has it. It claims, keeps leases and
    reports on threads of its own, and runs quick steps within their turn. None: the worker does that in Python."""
    from hapax.transport.library import find
    from hapax.transport.native import NativeTransport

    return None if find() is None else NativeTransport(url, token=token, namespace=namespace)
