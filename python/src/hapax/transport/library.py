"""The C ABI of Hapax (`hapax/capi.h`), by ctypes."""

from __future__ import annotations

import ctypes
import functools
import os
import pathlib
from typing import Any

from hapax.errors import NativeMissing

ABI_VERSION = 1
_NAME = "libhapax_capi.so"

# The kinds of completions.
ANSWER = 1
TASK = 2
TURN = 3
CANCEL_REQUESTED = 4
TIME_OVER = 5
LEASE_LOST = 6
REFUSED = 7
WORKER_ENDED = 8


class Completion(ctypes.Structure):
    """Something that has happened, as `hapax_completion`."""

    _fields_ = [
        ("token", ctypes.c_uint64),
        ("kind", ctypes.c_int32),
        ("status", ctypes.c_int32),
        ("headers", ctypes.c_void_p),
        ("headers_size", ctypes.c_size_t),
        ("body", ctypes.c_void_p),
        ("body_size", ctypes.c_size_t),
        ("worker", ctypes.c_void_p),
        ("memory", ctypes.c_void_p),
    ]


def find() -> pathlib.Path | None:
    """The library: `$HAPAX_LIBRARY`, or the one that came with this package."""
    named = os.environ.get("HAPAX_LIBRARY")
    if named:
        return pathlib.Path(named)
    packaged = pathlib.Path(__file__).parents[1] / "_native" / _NAME
    return packaged if packaged.exists() else None


class Library:
    """Its functions. Those that may block let other threads of Python run; the others are too quick for that."""

    def __init__(self, path: pathlib.Path) -> None:
        try:
            quick, blocking = ctypes.PyDLL(str(path)), ctypes.CDLL(str(path))
        except OSError as error:
            raise NativeMissing(f"the engine cannot be loaded: {error}") from error
        pointer, text, size = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t
        u64, i64, i32 = ctypes.c_uint64, ctypes.c_int64, ctypes.c_int32
        out = ctypes.POINTER(Completion)
        self.abi_version = _function(quick, "hapax_abi_version", i32)
        self.open = _function(blocking, "hapax_open", pointer, text, text, ctypes.POINTER(text))
        self.close = _function(blocking, "hapax_close", None, pointer)
        self.queue_new = _function(quick, "hapax_queue_new", pointer, pointer)
        self.queue_fd = _function(quick, "hapax_queue_fd", ctypes.c_int, pointer)
        self.queue_drain = _function(quick, "hapax_queue_drain", size, pointer, out, size)
        self.queue_free = _function(quick, "hapax_queue_free", None, pointer)
        self.release = _function(quick, "hapax_release", None, out, size)
        self.call = _function(quick, "hapax_call", None, pointer, pointer, u64, text, text, text, text, size)
        self.cancel = _function(quick, "hapax_cancel", None, pointer, u64)
        self._more(quick, blocking, pointer, text, size, u64, i64, i32)
        if self.abi_version() < ABI_VERSION:
            raise NativeMissing(f"{path} is older than this package: install both from one release")

    def _more(
        self, quick: Any, blocking: Any, pointer: Any, text: Any, size: Any, u64: Any, i64: Any, i32: Any
    ) -> None:
        """Functions that were added later; absent in an older library."""
        self.has_worker = hasattr(quick, "hapax_worker_new")
        if self.has_worker:
            self.worker_new = _function(quick, "hapax_worker_new", pointer, pointer, pointer, text)
            self.worker_credit = _function(quick, "hapax_worker_credit", None, pointer, i32, i32)
            self.worker_finish = _function(quick, "hapax_worker_finish", None, pointer, u64, text, size)
            self.worker_turn = _function(quick, "hapax_worker_turn", None, pointer, u64, text, size)
            self.worker_drain = _function(quick, "hapax_worker_drain", None, pointer)
        self.has_test = hasattr(blocking, "hapax_test_open")
        if self.has_test:
            self.test_open = _function(blocking, "hapax_test_open", pointer, text, ctypes.POINTER(text))
            self.test_advance = _function(blocking, "hapax_test_advance", None, pointer, i64)


def _function(library: Any, name: str, result: Any, *arguments: Any) -> Any:
    function = getattr(library, name)
    function.restype = result
    function.argtypes = list(arguments)
    return function


@functools.lru_cache(maxsize=1)
def load() -> Library:
    """The library, loaded once."""
    path = find()
    if path is None:
        raise NativeMissing(
            "the engine inside the process is missing: this is the wheel for all platforms (py3-none-any). Install the "
            "one for yours (manylinux), or start `hapax serve` and use its http:// URL"
        )
    return Library(path)
