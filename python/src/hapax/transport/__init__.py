"""The seam between the library and the engine: a request in, a response out, over a socket or within the process."""

from hapax.transport.base import ConnectionFailed, Request, Response, Transport
from hapax.transport.blocking import is_blocking, outside_sync, pause, sync

__all__ = ["ConnectionFailed", "Request", "Response", "Transport", "is_blocking", "outside_sync", "pause", "sync"]
