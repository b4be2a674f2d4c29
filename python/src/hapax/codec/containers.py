"""Codecs of lists, tuples, sets, mappings and unions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hapax.codec.base import Codec, Json, Mismatch, expected, not_a

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def _each(values: Iterable[Any], convert: Callable[[Any], Any]) -> list[Any]:
    out = []
    for index, value in enumerate(values):
        try:
            out.append(convert(value))
        except Mismatch as error:
            raise error.within(index) from None
    return out


def sequence_codec(item: Codec, make: Callable[[list[Any]], Any], takes: Any, name: str) -> Codec:
    """A JSON array; `make` turns the decoded list into the annotated type."""

    def encode(value: Any) -> Json:
        if not isinstance(value, takes):
            raise not_a(f"a {name}", value)
        return _each(value, item.encode)

    def decode(value: Json) -> Any:
        if not isinstance(value, list):
            raise expected("an array", value)
        return make(_each(value, item.decode))

    return Codec(f"{name}[{item.name}]", encode, decode)


def set_codec(item: Codec, make: Callable[[list[Any]], Any], name: str) -> Codec:
    """A JSON array in a fixed order, so that equal sets are equal inputs."""

    def encode(value: Any) -> Json:
        if not isinstance(value, (set, frozenset)):
            raise not_a(f"a {name}", value)
        encoded = _each(value, item.encode)
        try:
            return sorted(encoded)
        except TypeError:
            return sorted(encoded, key=repr)

    def decode(value: Json) -> Any:
        if not isinstance(value, list):
            raise expected("an array", value)
        return make(_each(value, item.decode))

    return Codec(f"{name}[{item.name}]", encode, decode)


def tuple_codec(items: list[Codec], make: Callable[[list[Any]], Any] = tuple) -> Codec:
    """A JSON array of a fixed length."""

    def convert(values: Any, convert_one: Callable[[Codec, Any], Any]) -> list[Any]:
        if len(values) != len(items):
            raise Mismatch(f"expected {len(items)} items, got {len(values)}")
        out = []
        for index, (item, value) in enumerate(zip(items, values)):
            try:
                out.append(convert_one(item, value))
            except Mismatch as error:
                raise error.within(index) from None
        return out

    def encode(value: Any) -> Json:
        if not isinstance(value, (tuple, list)):
            raise not_a("a tuple", value)
        return convert(value, lambda item, one: item.encode(one))

    def decode(value: Json) -> Any:
        if not isinstance(value, list):
            raise expected("an array", value)
        return make(convert(value, lambda item, one: item.decode(one)))

    return Codec(f"tuple[{', '.join(item.name for item in items)}]", encode, decode)


def mapping_codec(key: Codec, value_codec: Codec) -> Codec:
    """A JSON object. Keys are strings, or values with a string form such as integers, UUIDs and enums."""

    def encode(value: Any) -> Json:
        if not isinstance(value, Mapping):
            raise not_a("a dict", value)
        out = {}
        for name, member in value.items():
            encoded = key.encode(name)
            text = encoded if isinstance(encoded, str) else str(encoded)
            try:
                out[text] = value_codec.encode(member)
            except Mismatch as error:
                raise error.within(text) from None
        return out

    def decode(value: Json) -> Any:
        if not isinstance(value, dict):
            raise expected("an object", value)
        out = {}
        for name, member in value.items():
            try:
                out[_decode_key(name)] = value_codec.decode(member)
            except Mismatch as error:
                raise error.within(name) from None
        return out

    def _decode_key(name: str) -> Any:
        if key.name == "int":
            try:
                return int(name)
            except ValueError:
                raise Mismatch(f"expected an integer as the member's name, got {name!r}") from None
        return key.decode(name)

    return Codec(f"dict[{key.name}, {value_codec.name}]", encode, decode, is_object=True)


def union_codec(members: list[Codec]) -> Codec:
    """The first member that takes the value."""
    names = " | ".join(member.name for member in members)

    def convert(value: Any, convert_one: Callable[[Codec], Callable[[Any], Any]]) -> Any:
        deepest: Mismatch | None = None
        for member in members:
            try:
                return convert_one(member)(value)
            except Mismatch as error:
                if error.pointer and (deepest is None or error.pointer.count("/") > deepest.pointer.count("/")):
                    deepest = error
        raise deepest or Mismatch(f"expected {names}, got {type(value).__name__}")

    return Codec(
        names,
        lambda value: convert(value, lambda member: member.encode),
        lambda value: convert(value, lambda member: member.decode),
    )
