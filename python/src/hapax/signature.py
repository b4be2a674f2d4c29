"""How the arguments of a function become the input of a task, and back.

A function of one dataclass, model, TypedDict or dict has that object as its input. Any other function has an object of
its arguments by their names, whether they were given by position or by name, so that C++, TypeScript and curl can send
it. An argument that equals its default is left out: `ship(order)` and `ship(order, express=False)` are the same call.
"""

from __future__ import annotations

import inspect
import typing
from typing import TYPE_CHECKING, Any

from hapax.codec import Codec, Mismatch, codec_of
from hapax.codec.build import ANY
from hapax.errors import InvalidInput, UnsupportedAnnotation

if TYPE_CHECKING:
    from collections.abc import Callable

_NO_INPUT = object()


def invalid(what: str, mismatch: Mismatch) -> InvalidInput:
    """The error for a value that does not fit, with its JSON Pointer."""
    return InvalidInput(f"{what}: {mismatch}", body={"pointer": mismatch.pointer})


def hints_of(function: Callable[..., Any], what: str, names: dict[str, Any]) -> dict[str, Any]:
    """The annotations of a function, resolved; `names` are those visible where it is defined."""
    try:
        return typing.get_type_hints(function, localns=names, include_extras=True)
    except NameError as error:
        raise UnsupportedAnnotation(f"{what}: an annotation cannot be resolved: {error}") from None


def codec_for(annotation: Any, what: str, names: dict[str, Any]) -> Codec:
    """The codec of an annotation; an error names `what` is annotated with it."""
    try:
        return codec_of(annotation, names)
    except UnsupportedAnnotation as error:
        raise UnsupportedAnnotation(f"{what}: {error.message}") from None


class Signature:
    """The parameters and the result of one function, resolved once."""

    def __init__(self, function: Callable[..., Any], context: type | tuple[type, ...], names: dict[str, Any]) -> None:
        """`context` is the class of the parameter that the library fills in itself; `names` are those visible where
        the function is defined."""
        self.name = getattr(function, "__qualname__", repr(function))
        signature = inspect.signature(function)
        hints = hints_of(function, self.name, names)
        self.context_parameter: str | None = None
        self._codecs: dict[str, Codec] = {}
        kept = []
        for parameter in signature.parameters.values():
            annotation = hints.get(parameter.name, Any)
            if _is_class(annotation, context):
                self.context_parameter = parameter.name
                continue
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise UnsupportedAnnotation(
                    f"{self.name}: the parameter '*{parameter.name}' has no JSON form; name each argument"
                )
            self._codecs[parameter.name] = codec_for(annotation, f"{self.name}: parameter '{parameter.name}'", names)
            kept.append(parameter)
        self.parameters = inspect.Signature(kept)
        self._sole = kept[0].name if len(kept) == 1 else None
        self.takes_object = self._sole is not None and self._codecs[self._sole].is_object
        if self._sole is not None and _is_class(
            typing.get_origin(hints.get(self._sole)) or hints.get(self._sole), _named()
        ):
            self.takes_object = False  # an activity puts the event into the member `event`
        self._result = codec_for(hints.get("return", Any), f"{self.name}: result", names)

    def encode(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The input for a call with these arguments, or `no_input` for a function without parameters."""
        try:
            bound = self.parameters.bind(*args, **kwargs)
        except TypeError as error:
            raise InvalidInput(f"{self.name}: {error}") from None
        if self.takes_object:
            assert self._sole is not None
            if self._sole not in bound.arguments:
                return _NO_INPUT
            try:
                return self._codecs[self._sole].encode(bound.arguments[self._sole])
            except Mismatch as mismatch:
                raise invalid(self.name, mismatch) from None
        members = {}
        for name, value in bound.arguments.items():
            default = self.parameters.parameters[name].default
            if value is default or (type(value) is type(default) and value == default):
                continue
            try:
                members[name] = self._codecs[name].encode(value)
            except Mismatch as mismatch:
                raise invalid(self.name, mismatch.within(name)) from None
        return members if self.parameters.parameters else _NO_INPUT

    def decode(self, value: Any) -> dict[str, Any]:
        """The arguments by name. Raises InvalidInput with the place of what is missing or wrong."""
        try:
            if self.takes_object:
                return self._decode_object(value)
            return self._decode_members(value)
        except Mismatch as mismatch:
            raise invalid(self.name, mismatch) from None

    def _decode_object(self, value: Any) -> dict[str, Any]:
        assert self._sole is not None
        has_default = self.parameters.parameters[self._sole].default is not inspect.Parameter.empty
        if value is None and has_default:
            return {}
        return {self._sole: self._codecs[self._sole].decode(value)}

    def _decode_members(self, value: Any) -> dict[str, Any]:
        if self._sole is not None and not (isinstance(value, dict) and self._sole in value):
            # One plain value, sent bare: `app.submit("square", 3)`.
            codec = self._codecs[self._sole]
            if value is not None and (codec is ANY or not isinstance(value, dict)):
                return {self._sole: codec.decode(value)}
        members = {} if value is None else value
        if not isinstance(members, dict):
            names = ", ".join(self._codecs) or "nothing"
            raise Mismatch(f"expected an object with the arguments by name ({names})")
        arguments = {}
        for name, parameter in self.parameters.parameters.items():
            if name in members:
                try:
                    arguments[name] = self._codecs[name].decode(members[name])
                except Mismatch as mismatch:
                    raise mismatch.within(name) from None
            elif parameter.default is inspect.Parameter.empty:
                raise Mismatch("is missing").within(name)
        return arguments

    def encode_result(self, value: Any) -> Any:
        """The JSON of a result."""
        try:
            return self._result.encode(value)
        except Mismatch as mismatch:
            raise invalid(f"the result of {self.name}", mismatch) from None

    def decode_result(self, value: Any) -> Any:
        """A result from its JSON. No result at all is None."""
        if value is None:
            return None
        try:
            return self._result.decode(value)
        except Mismatch as mismatch:
            raise invalid(f"the result of {self.name}", mismatch) from None


def has_input(value: Any) -> bool:
    """Whether `Signature.encode` gave an input."""
    return value is not _NO_INPUT


def _named() -> type:
    from hapax.activities import CloudEvent

    return CloudEvent


def _is_class(annotation: Any, classes: type | tuple[type, ...]) -> bool:
    if typing.get_origin(annotation) is typing.Annotated:
        annotation = typing.get_args(annotation)[0]
    return isinstance(annotation, type) and issubclass(annotation, classes)
