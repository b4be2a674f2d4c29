"""Codecs of types with named members: dataclasses, attrs classes, TypedDicts, named tuples, pydantic and msgspec."""

from __future__ import annotations

import keyword
import re
import sys
from typing import TYPE_CHECKING, Any

from hapax.codec.base import Codec, Json, Mismatch, expected, not_a

if TYPE_CHECKING:
    from collections.abc import Callable


class Field:
    """One member of a record: its name in Python and in JSON, its codec, and whether it may be absent."""

    __slots__ = ("codec", "in_init", "member", "name", "required")

    def __init__(self, name: str, codec: Codec, *, required: bool, in_init: bool = True) -> None:
        self.name = name
        is_keyword = name.endswith("_") and keyword.iskeyword(name[:-1])
        self.member = name[:-1] if is_keyword else name  # `from_` is written as `from`
        self.codec = codec
        self.required = required
        self.in_init = in_init


def record_codec(cls: type[Any], fields: list[Field]) -> Codec:
    """A dataclass, attrs class or named tuple as an object of its fields."""

    def encode(value: Any) -> Json:
        if not isinstance(value, cls):
            raise not_a(cls.__name__, value)
        out = {}
        for field in fields:
            try:
                out[field.member] = field.codec.encode(getattr(value, field.name))
            except Mismatch as error:
                raise error.within(field.member) from None
        return out

    def decode(value: Json) -> Any:
        if not isinstance(value, dict):
            raise expected(f"an object ({cls.__name__})", value)
        arguments = {}
        for field in fields:
            if not field.in_init:
                continue
            if field.member in value:
                try:
                    arguments[field.name.lstrip("_") if is_attrs else field.name] = field.codec.decode(
                        value[field.member]
                    )
                except Mismatch as error:
                    raise error.within(field.member) from None
            elif field.required:
                raise Mismatch("is missing").within(field.member)
        try:
            return cls(**arguments)
        except (TypeError, ValueError) as error:
            raise Mismatch(f"{cls.__name__} refused it: {error}") from error

    is_attrs = hasattr(cls, "__attrs_attrs__")
    return Codec(cls.__name__, encode, decode, is_object=True)


def typed_dict_codec(cls: type[Any], fields: list[Field]) -> Codec:
    """A TypedDict as the object that it is."""

    def convert(value: Any, convert_one: Callable[[Field], Callable[[Any], Any]]) -> dict[str, Any]:
        out = {}
        for field in fields:
            if field.name in value:
                try:
                    out[field.name] = convert_one(field)(value[field.name])
                except Mismatch as error:
                    raise error.within(field.name) from None
            elif field.required:
                raise Mismatch("is missing").within(field.name)
        return out

    def encode(value: Any) -> Json:
        if not isinstance(value, dict):
            raise not_a(cls.__name__, value)
        unknown = [name for name in value if name not in names]
        if unknown:
            raise Mismatch(f"{cls.__name__} has no such member").within(unknown[0])
        return convert(value, lambda field: field.codec.encode)

    def decode(value: Json) -> Any:
        if not isinstance(value, dict):
            raise expected(f"an object ({cls.__name__})", value)
        return convert(value, lambda field: field.codec.decode)

    names = {field.name for field in fields}
    return Codec(cls.__name__, encode, decode, is_object=True)


def _loaded(module: str) -> Any:
    """The module if the program has imported it. A class of it cannot be around otherwise."""
    return sys.modules.get(module)


def is_pydantic_model(cls: Any) -> bool:
    pydantic = _loaded("pydantic")
    return pydantic is not None and isinstance(cls, type) and issubclass(cls, pydantic.BaseModel)


def is_msgspec_struct(cls: Any) -> bool:
    msgspec = _loaded("msgspec")
    return msgspec is not None and isinstance(cls, type) and issubclass(cls, msgspec.Struct)


def pydantic_codec(cls: Any) -> Codec:
    """pydantic validates and writes its models itself, with their aliases."""
    pydantic = _loaded("pydantic")

    def encode(value: Any) -> Json:
        if not isinstance(value, cls):
            raise not_a(cls.__name__, value)
        return value.model_dump(mode="json", by_alias=True)

    def decode(value: Json) -> Any:
        try:
            return cls.model_validate(value)
        except pydantic.ValidationError as error:
            first = error.errors(include_url=False)[0]
            mismatch = Mismatch(str(first["msg"]))
            for part in reversed(first["loc"]):
                mismatch = mismatch.within(part)
            raise mismatch from None

    return Codec(cls.__name__, encode, decode, is_object=not issubclass(cls, pydantic.RootModel))


def msgspec_codec(cls: Any) -> Codec:
    """msgspec converts and writes its structs itself."""
    msgspec = _loaded("msgspec")

    def encode(value: Any) -> Json:
        if not isinstance(value, cls):
            raise not_a(cls.__name__, value)
        return msgspec.to_builtins(value, str_keys=True)

    def decode(value: Json) -> Any:
        try:
            return msgspec.convert(value, cls)
        except msgspec.ValidationError as error:
            # msgspec says "Expected `int`, got `str` - at `$.lines[0].price`".
            message, _, path = str(error).partition(" - at `$")
            parts = [name or index for name, index in re.findall(r"\.([^.\[\]`]+)|\[(\d+)\]", path)]
            missing = re.match(r"Object missing required field `([^`]+)`", message)
            if missing:
                message = "is missing"
                parts.append(missing[1])
            mismatch = Mismatch(message)
            for part in reversed(parts):
                mismatch = mismatch.within(part)
            raise mismatch from None

    return Codec(cls.__name__, encode, decode, is_object=not cls.__struct_config__.array_like)
