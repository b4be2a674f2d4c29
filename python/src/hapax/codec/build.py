"""From an annotation to its codec."""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import types
import typing
from typing import Annotated, Any, Literal, TypeVar, Union

from hapax.codec.base import Codec, Json, Mismatch, not_a
from hapax.codec.containers import mapping_codec, sequence_codec, set_codec, tuple_codec, union_codec
from hapax.codec.records import (
    Field,
    is_msgspec_struct,
    is_pydantic_model,
    msgspec_codec,
    pydantic_codec,
    record_codec,
    typed_dict_codec,
)
from hapax.codec.scalars import SCALARS, enum_codec, literal_codec
from hapax.errors import UnsupportedAnnotation

_SEQUENCES: dict[Any, tuple[Any, tuple[type, ...], str]] = {
    list: (list, (list, tuple), "list"),
    collections.abc.Sequence: (list, (list, tuple), "Sequence"),
    collections.abc.MutableSequence: (list, (list,), "MutableSequence"),
    collections.abc.Iterable: (list, (list, tuple), "Iterable"),
    collections.abc.Collection: (list, (list, tuple), "Collection"),
}
_SETS: dict[Any, tuple[Any, str]] = {
    set: (set, "set"),
    frozenset: (frozenset, "frozenset"),
    collections.abc.Set: (frozenset, "Set"),
    collections.abc.MutableSet: (set, "MutableSet"),
}
_MAPPINGS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)

_any_codecs: dict[type, Codec] = {}


def _encode_any(value: Any) -> Json:
    """Without an annotation a value is written by its own type."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, list):
        return _any_list.encode(value)
    if isinstance(value, dict):
        return _any_dict.encode(value)
    cls = type(value)
    codec = _any_codecs.get(cls)
    if codec is None:
        try:
            codec = codec_of(cls)
        except UnsupportedAnnotation:
            codec = next((SCALARS[base] for base in cls.__mro__ if base in SCALARS), None)
        if codec is None or codec is ANY:
            raise Mismatch(f"{cls.__name__} has no JSON form; use a dataclass, or convert it") from None
        _any_codecs[cls] = codec
    return codec.encode(value)


ANY = Codec("Any", _encode_any, lambda value: value)
_any_list = sequence_codec(ANY, list, (list, tuple), "list")
_any_dict = mapping_codec(SCALARS[str], ANY)


def codec_of(annotation: Any, names: dict[str, Any] | None = None) -> Codec:
    """The codec of a type, or of any other annotation. Raises UnsupportedAnnotation if it has none.

    `names` are those visible where the annotation stands, for classes that are local to a function.
    """
    return _Builder(names or {}).build(annotation, {})


class _Builder:
    """Builds one codec with those within it; a type that contains itself is built once."""

    def __init__(self, names: dict[str, Any]) -> None:
        self.names = names
        self.under_way: dict[Any, Codec | None] = {}

    def build(self, annotation: Any, type_vars: dict[Any, Any]) -> Codec:
        if annotation is Any or annotation is object:
            return ANY
        if annotation is None:
            return SCALARS[type(None)]
        if isinstance(annotation, TypeVar):
            return self._type_var(annotation, type_vars)
        if isinstance(annotation, type) and annotation in SCALARS:
            return SCALARS[annotation]
        if hasattr(annotation, "__supertype__"):  # NewType
            return self.build(annotation.__supertype__, type_vars)
        if type(annotation).__name__ == "TypeAliasType":  # `type Name = …`
            return self._remember(annotation, lambda: self.build(annotation.__value__, type_vars))
        origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
        if origin is None:
            return self._remember(annotation, lambda: self._plain(annotation))
        if origin is Annotated or origin in (getattr(typing, "Required", None), getattr(typing, "NotRequired", None)):
            return self.build(arguments[0], type_vars)
        if origin is Literal:
            return literal_codec(arguments)
        if origin is Union or origin is types.UnionType:
            return union_codec([self.build(argument, type_vars) for argument in arguments])
        if origin is tuple:
            return self._tuple(arguments, type_vars)
        if origin in _SEQUENCES:
            make, takes, name = _SEQUENCES[origin]
            return sequence_codec(self.build(arguments[0], type_vars), make, takes, name)
        if origin in _SETS:
            make_set, name = _SETS[origin]
            return set_codec(self.build(arguments[0], type_vars), make_set, name)
        if origin in _MAPPINGS:
            return self._mapping(arguments, type_vars)
        if isinstance(origin, type):
            parameters = getattr(origin, "__parameters__", ())
            given = [type_vars.get(argument, argument) for argument in arguments]
            return self._remember(annotation, lambda: self._plain(annotation, origin, dict(zip(parameters, given))))
        raise _unsupported(annotation)

    def _remember(self, annotation: Any, build: typing.Callable[[], Codec]) -> Codec:
        """Builds it once; within itself the type stands for what is being built."""
        if annotation in self.under_way:
            built = self.under_way[annotation]
            if built is not None:
                return built
            return Codec(
                getattr(annotation, "__name__", str(annotation)),
                lambda value: self._built(annotation).encode(value),
                lambda value: self._built(annotation).decode(value),
                is_object=True,
            )
        self.under_way[annotation] = None
        codec = build()
        self.under_way[annotation] = codec
        return codec

    def _built(self, annotation: Any) -> Codec:
        codec = self.under_way[annotation]
        assert codec is not None
        return codec

    def _type_var(self, variable: Any, type_vars: dict[Any, Any]) -> Codec:
        if variable in type_vars and type_vars[variable] is not variable:
            return self.build(type_vars[variable], type_vars)
        return self.build(variable.__bound__, type_vars) if variable.__bound__ else ANY

    def _tuple(self, arguments: tuple[Any, ...], type_vars: dict[Any, Any]) -> Codec:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return sequence_codec(self.build(arguments[0], type_vars), tuple, (list, tuple), "tuple")
        return tuple_codec([self.build(item, type_vars) for item in arguments if item != ()])

    def _mapping(self, arguments: tuple[Any, ...], type_vars: dict[Any, Any]) -> Codec:
        key = self.build(arguments[0], type_vars)
        if key.name not in ("str", "int", "UUID", "Any", "date") and not _is_enum(arguments[0]):
            raise UnsupportedAnnotation(f"the keys of a JSON object are strings, so {arguments[0]} cannot be one")
        return mapping_codec(SCALARS[str] if key is ANY else key, self.build(arguments[1], type_vars))

    def _plain(self, annotation: Any, cls: Any = None, type_vars: dict[Any, Any] | None = None) -> Codec:
        """A class, bare or with arguments (`Page[int]`: `cls` is `Page`, `type_vars` says what its variables are)."""
        cls = cls or annotation
        if cls in (list, collections.abc.Sequence, collections.abc.Iterable):
            return _any_list
        if cls is tuple:
            return sequence_codec(ANY, tuple, (list, tuple), "tuple")
        if cls in _SETS:
            return set_codec(ANY, _SETS[cls][0], _SETS[cls][1])
        if cls in _MAPPINGS:
            return _any_dict
        if not isinstance(cls, type):
            raise _unsupported(annotation)
        if is_pydantic_model(cls):
            return pydantic_codec(annotation if isinstance(annotation, type) else cls)
        if is_msgspec_struct(cls):
            return msgspec_codec(cls)
        if issubclass(cls, enum.Enum):
            return enum_codec(cls)
        if typing.is_typeddict(cls):
            return typed_dict_codec(cls, self._fields(cls, type_vars, _typed_dict_members(cls)))
        if dataclasses.is_dataclass(cls):
            return record_codec(cls, self._fields(cls, type_vars, _dataclass_members(cls)))
        if hasattr(cls, "__attrs_attrs__"):
            return record_codec(cls, self._fields(cls, type_vars, _attrs_members(cls)))
        if issubclass(cls, tuple) and hasattr(cls, "_fields"):
            members = [(name, name not in cls._field_defaults, True) for name in cls._fields]  # type: ignore[attr-defined]
            return record_codec(cls, self._fields(cls, type_vars, members))
        for base in (str, int, float, bytes):
            if issubclass(cls, base):
                return _subclass_codec(cls, base)
        raise _unsupported(annotation)

    def _fields(
        self, cls: type[Any], type_vars: dict[Any, Any] | None, members: list[tuple[str, bool, bool]]
    ) -> list[Field]:
        try:
            hints = typing.get_type_hints(cls, localns={**self.names, cls.__name__: cls}, include_extras=True)
        except NameError as error:
            raise UnsupportedAnnotation(f"{cls.__name__} has an annotation that cannot be resolved: {error}") from None
        fields = []
        for name, required, in_init in members:
            try:
                codec = self.build(hints.get(name, Any), type_vars or {})
            except UnsupportedAnnotation as error:
                raise UnsupportedAnnotation(f"{cls.__name__}.{name}: {error.message}") from None
            fields.append(Field(name, codec, required=required, in_init=in_init))
        return fields


def _unsupported(annotation: Any) -> UnsupportedAnnotation:
    name = annotation.__qualname__ if isinstance(annotation, type) else str(annotation)
    return UnsupportedAnnotation(
        f"{name} has no JSON form; use a dataclass, a TypedDict, a pydantic, msgspec or attrs class, or plain values"
    )


def _is_enum(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, enum.Enum)


def _dataclass_members(cls: Any) -> list[tuple[str, bool, bool]]:
    missing = dataclasses.MISSING
    return [
        (field.name, field.init and field.default is missing and field.default_factory is missing, field.init)
        for field in dataclasses.fields(cls)
    ]


def _attrs_members(cls: Any) -> list[tuple[str, bool, bool]]:
    import attr

    return [(field.name, field.init and field.default is attr.NOTHING, field.init) for field in cls.__attrs_attrs__]


def _typed_dict_members(cls: Any) -> list[tuple[str, bool, bool]]:
    return [(name, name in cls.__required_keys__, True) for name in cls.__annotations__]


def _subclass_codec(cls: type[Any], base: type[Any]) -> Codec:
    """A subclass of str, int, float or bytes: written as its base, made again from it."""
    scalar = SCALARS[base]

    def encode(value: Any) -> Json:
        if not isinstance(value, cls):
            raise not_a(cls.__name__, value)
        return scalar.encode(base(value))

    return Codec(cls.__name__, encode, lambda value: cls(scalar.decode(value)))
