"""What a codec is, how its errors carry their place, and the JSON text itself."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

Json = Any
"""None, bool, int, float, str, list or dict, as `json.loads` makes them."""


class Mismatch(Exception):
    """A value does not fit. `pointer` grows from the inside out while the error passes through the containers."""

    def __init__(self, message: str, pointer: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.pointer = pointer

    def within(self, member: str | int) -> Mismatch:
        """The same error, seen from the container that has the value as `member`."""
        escaped = str(member).replace("~", "~0").replace("/", "~1")
        return Mismatch(self.message, f"/{escaped}{self.pointer}")

    def __str__(self) -> str:
        return f"{self.pointer}: {self.message}" if self.pointer else self.message


class Codec:
    """A pair of functions between Python values of one type and JSON.

    `is_object` says that every value is a JSON object of named members: the input of a task that takes one such value
    is that object itself.
    """

    __slots__ = ("decode", "encode", "is_object", "name")

    def __init__(
        self,
        name: str,
        encode: Callable[[Any], Json],
        decode: Callable[[Json], Any],
        *,
        is_object: bool = False,
    ) -> None:
        self.name = name
        self.encode = encode
        self.decode = decode
        self.is_object = is_object


def kind_of(value: Json) -> str:
    """What a JSON value is, in JSON's words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int):
        return "an integer"
    if isinstance(value, float):
        return "a number"
    if isinstance(value, str):
        return "a string"
    return "an array" if isinstance(value, list) else "an object"


def expected(what: str, value: Json) -> Mismatch:
    """For decoding: the JSON value is not `what`."""
    return Mismatch(f"expected {what}, got {kind_of(value)}")


def not_a(what: str, value: Any) -> Mismatch:
    """For encoding: the Python value is not `what`."""
    return Mismatch(f"expected {what}, got {type(value).__name__}")


_encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def dump_json(value: Json) -> bytes:
    """JSON text in UTF-8. Integers of any size are exact; NaN and infinities are refused."""
    try:
        return _encoder.encode(value).encode("utf-8")
    except UnicodeEncodeError as error:
        raise Mismatch(f"a string has a lone surrogate, which JSON cannot carry: {error.object!r:.80}") from None
    except (ValueError, TypeError, RecursionError) as error:
        raise Mismatch(f"not JSON: {error}") from None


def load_json(text: bytes | str) -> Json:
    """The value of a JSON text. Integers of any size are exact."""
    return json.loads(text)
