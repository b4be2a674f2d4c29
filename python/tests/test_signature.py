"""Arguments as the input of a task, and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from hapax import InvalidInput, TaskContext, UnsupportedAnnotation
from hapax.signature import Signature, has_input


@dataclass
class Order:
    id: int
    cents: int = 0


def one_object(order: Order) -> None: ...
def plain(order_id: int) -> None: ...
def several(order: Order, *, express: bool = False, note: str = "") -> int: ...
def nothing() -> None: ...
def with_context(ctx: TaskContext, order_id: int) -> None: ...
def context_last(order_id: int, ctx: TaskContext) -> None: ...
def bare(value) -> Any: ...  # type: ignore[no-untyped-def]
def a_dict(payload: dict[str, int]) -> None: ...
def rest(*numbers: int) -> None: ...
def unsupported(thing: object, other: type[int]) -> None: ...
def unresolved(x: NoSuchClass) -> None: ...  # type: ignore[name-defined]  # noqa: F821


def signature(function: Any) -> Signature:
    return Signature(function, TaskContext, {})


@pytest.mark.parametrize(
    ("function", "args", "kwargs", "encoded"),
    [
        (one_object, (Order(1, 2),), {}, {"id": 1, "cents": 2}),
        (one_object, (), {"order": Order(1, 2)}, {"id": 1, "cents": 2}),
        (plain, (456,), {}, {"order_id": 456}),
        (plain, (), {"order_id": 456}, {"order_id": 456}),
        (several, (Order(1),), {"express": True}, {"order": {"id": 1, "cents": 0}, "express": True}),
        (several, (Order(1),), {"express": False}, {"order": {"id": 1, "cents": 0}}),
        (with_context, (7,), {}, {"order_id": 7}),
        (context_last, (7,), {}, {"order_id": 7}),
        (bare, ([1],), {}, {"value": [1]}),
        (a_dict, ({"a": 1},), {}, {"a": 1}),
    ],
)
def test_arguments_become_the_input(function: Any, args: Any, kwargs: Any, encoded: Any) -> None:
    resolved = signature(function)
    assert resolved.encode(args, kwargs) == encoded
    decoded = resolved.decode(encoded)
    bound = resolved.parameters.bind(*args, **kwargs)
    bound.apply_defaults()
    for name, value in decoded.items():
        assert bound.arguments[name] == value


def test_a_function_without_parameters_has_no_input() -> None:
    assert not has_input(signature(nothing).encode((), {}))
    assert signature(nothing).decode(None) == {}


def test_one_plain_value_may_be_sent_bare() -> None:
    assert signature(plain).decode(456) == {"order_id": 456}
    assert signature(bare).decode({"a": 1}) == {"value": {"a": 1}}


@pytest.mark.parametrize(
    ("function", "value", "pointer"),
    [
        (plain, {}, "/order_id"),
        (plain, {"order_id": "x"}, "/order_id"),
        (several, {"order": {"id": "x"}}, "/order/id"),
        (one_object, {"cents": 1}, "/id"),
        (several, 3, ""),
    ],
)
def test_a_wrong_input_says_where(function: Any, value: Any, pointer: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        signature(function).decode(value)
    assert caught.value.pointer == pointer


def test_wrong_arguments_are_refused_before_anything_is_sent() -> None:
    with pytest.raises(InvalidInput, match="express"):
        signature(several).encode((Order(1),), {"express": "yes"})
    with pytest.raises(InvalidInput, match="missing a required argument"):
        signature(several).encode((), {})


@pytest.mark.parametrize(
    ("function", "named"), [(rest, "numbers"), (unsupported, "parameter 'other'"), (unresolved, "NoSuchClass")]
)
def test_an_unsupported_parameter_is_named(function: Any, named: str) -> None:
    with pytest.raises(UnsupportedAnnotation, match=named):
        signature(function)


def test_none_is_no_result() -> None:
    assert signature(several).decode_result(None) is None
    with pytest.raises(InvalidInput):
        signature(several).encode_result("no int")
