"""Python values as JSON and back."""

from __future__ import annotations

import collections
import datetime
import decimal
import enum
import math
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, Optional, TypedDict, TypeVar, Union

import attrs
import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hapax import UnsupportedAnnotation
from hapax.codec import Mismatch, codec_of, dump_json, load_json

T = TypeVar("T")
UserId = NewType("UserId", int)


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Line:
    sku: str
    price: decimal.Decimal
    tags: list[str] = field(default_factory=list)


@dataclass
class Order:
    id: int
    lines: list[Line]
    parent: Order | None = None
    hidden: int = field(default=7, init=False)


@dataclass
class Page(Generic[T]):
    items: list[T]
    next: T | None = None


class Address(TypedDict, total=False):
    street: str
    zip: int


class Point(NamedTuple):
    x: int
    y: int = 0


@attrs.define
class Parcel:
    weight: float
    to: Address


class Model(pydantic.BaseModel):
    count: int = pydantic.Field(alias="n")
    when: datetime.datetime


class Struct(msgspec.Struct):
    name: str
    inner: list[int] = []


NOW = datetime.datetime(2026, 3, 1, 9, tzinfo=datetime.timezone.utc)


@pytest.mark.parametrize(
    ("annotation", "value", "encoded"),
    [
        (int, 2**80, 2**80),
        (float, 1.5, 1.5),
        (str, "a\u2028é", "a\u2028é"),
        (bool, True, True),
        (None, None, None),
        (bytes, b"\x00\xff", "AP8="),
        (decimal.Decimal, decimal.Decimal("99.990"), "99.990"),
        (uuid.UUID, uuid.UUID(int=5), "00000000-0000-0000-0000-000000000005"),
        (datetime.datetime, NOW, "2026-03-01T09:00:00+00:00"),
        (datetime.date, datetime.date(2026, 3, 1), "2026-03-01"),
        (datetime.timedelta, datetime.timedelta(minutes=1), 60.0),
        (Color, Color.BLUE, "blue"),
        (UserId, UserId(3), 3),
        (Annotated[int, "meters"], 3, 3),
        (Literal["a", 1], "a", "a"),
        (Optional[int], None, None),
        (Union[int, str], "x", "x"),
        (list[int], [1, 2], [1, 2]),
        (Sequence[int], [1, 2], [1, 2]),
        (tuple[str, int], ("a", 1), ["a", 1]),
        (tuple[int, ...], (1, 2, 3), [1, 2, 3]),
        (set[int], {3, 1, 2}, [1, 2, 3]),
        (dict[str, int], {"a": 1}, {"a": 1}),
        (dict[int, str], {1: "a"}, {"1": "a"}),
        (Mapping[str, Any], {"a": [1, None]}, {"a": [1, None]}),
        (Line, Line("s", decimal.Decimal(1)), {"sku": "s", "price": "1", "tags": []}),
        (Page[int], Page([1], 2), {"items": [1], "next": 2}),
        (Address, {"zip": 1}, {"zip": 1}),
        (Point, Point(1), {"x": 1, "y": 0}),
        (Parcel, Parcel(1.5, {"zip": 1}), {"weight": 1.5, "to": {"zip": 1}}),
        (Struct, Struct("n", [1]), {"name": "n", "inner": [1]}),
        (Model, Model(n=1, when=NOW), {"n": 1, "when": "2026-03-01T09:00:00Z"}),
        (list[Model], [Model(n=1, when=NOW)], [{"n": 1, "when": "2026-03-01T09:00:00Z"}]),
    ],
)
def test_a_value_is_written_and_read_again(annotation: Any, value: Any, encoded: Any) -> None:
    codec = codec_of(annotation)
    assert codec.encode(value) == encoded
    assert type(codec.encode(value)) is type(encoded)
    assert codec.decode(load_json(dump_json(encoded))) == value


def test_a_type_that_contains_itself() -> None:
    codec = codec_of(Order)
    order = Order(1, [Line("a", decimal.Decimal("2"), ["x"])], Order(2, []))
    assert codec.decode(codec.encode(order)) == order


@pytest.mark.parametrize(
    ("annotation", "value", "pointer"),
    [
        (Order, {"id": 1, "lines": [{"sku": "s", "price": 1.5}]}, "/lines/0/price"),
        (Order, {"id": 1, "lines": [{"price": "1"}]}, "/lines/0/sku"),
        (Order, {"lines": []}, "/id"),
        (dict[str, int], {"a/b~": "x"}, "/a~1b~0"),
        (tuple[str, int], ["a", "b"], "/1"),
        (Parcel, {"weight": 1, "to": {"zip": "x"}}, "/to/zip"),
        (Struct, {"name": "n", "inner": [1, "x"]}, "/inner/1"),
        (Struct, {}, "/name"),
        (Model, {"n": "x", "when": "2026-03-01T09:00:00Z"}, "/n"),
        (Optional[Line], {"sku": 1, "price": "1"}, "/sku"),
        (int, True, ""),
        (int, 1.5, ""),
        (float, "1", ""),
        (datetime.datetime, "2026-03-01T09:00:00", ""),
        (Color, "green", ""),
        (Literal[1], True, ""),
    ],
)
def test_what_does_not_fit_has_its_place(annotation: Any, value: Any, pointer: str) -> None:
    with pytest.raises(Mismatch) as caught:
        codec_of(annotation).decode(value)
    assert caught.value.pointer == pointer


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (float, math.nan),
        (float, math.inf),
        (datetime.datetime, datetime.datetime(2026, 3, 1)),
        (decimal.Decimal, decimal.Decimal("NaN")),
        (int, 1.5),
        (int, True),
        (str, 1),
        (Line, Order(1, [])),
        (Address, {"city": "x"}),
        (Any, object()),
        (Any, {1, object()}),
        (Any, datetime.datetime(2026, 3, 1)),
    ],
)
def test_what_has_no_json_form_is_refused(annotation: Any, value: Any) -> None:
    with pytest.raises(Mismatch):
        codec_of(annotation).encode(value)


def test_nan_within_plain_values_is_refused() -> None:
    with pytest.raises(Mismatch):
        dump_json({"a": [math.nan]})
    with pytest.raises(Mismatch, match="surrogate"):
        dump_json("\ud800")


def test_unknown_members_are_ignored() -> None:
    assert codec_of(Point).decode({"x": 1, "z": 9}) == Point(1)


def test_equal_sets_are_equal_inputs() -> None:
    codec = codec_of(set[str])
    words = [str(uuid.uuid4()) for _ in range(50)]
    assert codec.encode(set(words)) == codec.encode(set(reversed(words)))


class NotJson:
    pass


@pytest.mark.parametrize(
    "annotation", [NotJson, list[NotJson], dict[bytes, int], collections.deque, type, Optional[NotJson], complex]
)
def test_an_annotation_without_a_json_form_is_refused(annotation: Any) -> None:
    with pytest.raises(UnsupportedAnnotation):
        codec_of(annotation)


def test_a_field_without_a_json_form_is_named() -> None:
    @dataclass
    class Bad:
        inner: NotJson

    with pytest.raises(UnsupportedAnnotation, match="Bad.inner"):
        codec_of(Bad, {"NotJson": NotJson})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(json_values)
def test_plain_values_are_themselves(value: Any) -> None:
    try:
        text = dump_json(codec_of(Any).encode(value))
    except Mismatch as mismatch:
        assert "surrogate" in str(mismatch)
        return
    assert codec_of(Any).decode(load_json(text)) == value
