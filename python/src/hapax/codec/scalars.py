"""Codecs of single values: strings, numbers, times, ids, enums, literals."""

from __future__ import annotations

import base64
import binascii
import datetime
import decimal
import enum
import math
import uuid
from typing import Any

from hapax.codec.base import Codec, Json, Mismatch, expected, not_a
from hapax.durations import time_from_wire, time_to_wire


def _encode_none(value: Any) -> Json:
    if value is not None:
        raise not_a("None", value)


def _decode_none(value: Json) -> None:
    if value is not None:
        raise expected("null", value)


def _bool(value: Any) -> bool:
    if not isinstance(value, bool):
        raise not_a("a bool", value)
    return value


def _int(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise not_a("an int", value)
    return int(value)


def _decode_int(value: Json) -> int:
    if isinstance(value, bool):
        raise expected("an integer", value)
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) <= 2**53:
        return int(value)  # 10.0 is an integer in JSON
    raise expected("an integer", value)


def _float(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise not_a("a float", value)
    if isinstance(value, float) and not math.isfinite(value):
        raise Mismatch(f"{value} has no JSON form; use None, or a string")
    return value


def _decode_float(value: Json) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise expected("a number", value)
    return float(value)


def _str(value: Any) -> str:
    if not isinstance(value, str):
        raise not_a("a str", value)
    return str(value)


def _decode_bool(value: Json) -> bool:
    if not isinstance(value, bool):
        raise expected("a boolean", value)
    return value


def _decode_str(value: Json) -> str:
    if not isinstance(value, str):
        raise expected("a string", value)
    return value


def _encode_bytes(value: Any) -> Json:
    if not isinstance(value, (bytes, bytearray)):
        raise not_a("bytes", value)
    return base64.b64encode(value).decode("ascii")


def _decode_bytes(value: Json) -> bytes:
    try:
        return base64.b64decode(_decode_str(value), validate=True)
    except binascii.Error:
        raise Mismatch("expected base64 text") from None


def _encode_datetime(value: Any) -> Json:
    if not isinstance(value, datetime.datetime):
        raise not_a("a datetime", value)
    if value.tzinfo is None or value.utcoffset() is None:
        try:
            time_to_wire(value)
        except ValueError as error:
            raise Mismatch(str(error)) from None
    return value.isoformat()


def _decode_datetime(value: Json) -> datetime.datetime:
    try:
        return time_from_wire(_decode_str(value))
    except ValueError:
        raise Mismatch(f"expected a time with its zone, as 2026-03-01T09:00:00Z, got {value!r:.60}") from None


def _encode_date(value: Any) -> Json:
    if not isinstance(value, datetime.date) or isinstance(value, datetime.datetime):
        raise not_a("a date", value)
    return value.isoformat()


def _decode_date(value: Json) -> datetime.date:
    try:
        return datetime.date.fromisoformat(_decode_str(value))
    except ValueError:
        raise Mismatch(f"expected a date, as 2026-03-01, got {value!r:.60}") from None


def _encode_timedelta(value: Any) -> Json:
    if not isinstance(value, datetime.timedelta):
        raise not_a("a timedelta", value)
    return value.total_seconds()


def _decode_timedelta(value: Json) -> datetime.timedelta:
    return datetime.timedelta(seconds=_decode_float(value))


def _encode_decimal(value: Any) -> Json:
    if not isinstance(value, decimal.Decimal):
        raise not_a("a Decimal", value)
    if not value.is_finite():
        raise Mismatch(f"{value} has no JSON form; use None")
    return str(value)


def _decode_decimal(value: Json) -> decimal.Decimal:
    if isinstance(value, int) and not isinstance(value, bool):
        return decimal.Decimal(value)
    if not isinstance(value, str):
        raise expected('a decimal number as a string ("99.99")', value)
    try:
        number = decimal.Decimal(value)
    except decimal.InvalidOperation:
        raise Mismatch(f"expected a decimal number, got {value!r:.60}") from None
    if not number.is_finite():
        raise Mismatch(f"expected a finite decimal number, got {value!r:.60}")
    return number


def _encode_uuid(value: Any) -> Json:
    if not isinstance(value, uuid.UUID):
        raise not_a("a UUID", value)
    return str(value)


def _decode_uuid(value: Json) -> uuid.UUID:
    try:
        return uuid.UUID(_decode_str(value))
    except ValueError:
        raise Mismatch(f"expected a UUID, got {value!r:.60}") from None


SCALARS: dict[Any, Codec] = {
    type(None): Codec("None", _encode_none, _decode_none),
    bool: Codec("bool", _bool, _decode_bool),
    int: Codec("int", _int, _decode_int),
    float: Codec("float", _float, _decode_float),
    str: Codec("str", _str, _decode_str),
    bytes: Codec("bytes", _encode_bytes, _decode_bytes),
    datetime.datetime: Codec("datetime", _encode_datetime, _decode_datetime),
    datetime.date: Codec("date", _encode_date, _decode_date),
    datetime.timedelta: Codec("timedelta", _encode_timedelta, _decode_timedelta),
    decimal.Decimal: Codec("Decimal", _encode_decimal, _decode_decimal),
    uuid.UUID: Codec("UUID", _encode_uuid, _decode_uuid),
}


def enum_codec(cls: type[enum.Enum]) -> Codec:
    """By value, which must be a string or a number."""

    def encode(value: Any) -> Json:
        if not isinstance(value, cls):
            raise not_a(cls.__name__, value)
        return value.value

    def decode(value: Json) -> enum.Enum:
        try:
            return cls(value)
        except ValueError:
            choices = ", ".join(repr(member.value) for member in cls)
            raise Mismatch(f"expected one of {choices}, got {value!r:.60}") from None

    return Codec(cls.__name__, encode, decode)


def literal_codec(choices: tuple[Any, ...]) -> Codec:
    """One of a few values; `True` and `1` are different ones."""
    text = ", ".join(repr(choice) for choice in choices)

    def check(value: Any) -> Any:
        for choice in choices:
            if type(choice) is type(value) and choice == value:
                return value
        raise Mismatch(f"expected one of {text}, got {value!r:.60}")

    return Codec(f"Literal[{text}]", check, check)
