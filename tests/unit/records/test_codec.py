from __future__ import annotations

import dataclasses
import json
import math
import types
from dataclasses import field
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onnx_ci.records import codec
from onnx_ci.records.base import record
from onnx_ci.records.cases import Case, CaseList, CaseOutput
from onnx_ci.records.codec import RecordError
from onnx_ci.records.contract import Contract
from onnx_ci.records.messages import Event, Request
from onnx_ci.records.model import JobSpec
from onnx_ci.records.report import Plan, Report
from onnx_ci.records.result import Finding, Result
from onnx_ci.records.source_map import SourceMap


@record
class Inner:
    size: int | str
    error: float | None = None


@record
class Outer:
    name: str
    kind: Literal["a", "b"]
    inner: Inner
    many: list[Inner] = field(default_factory=list)
    by_name: dict[str, Inner] = field(default_factory=dict)
    anything: Any = None
    flag: bool = False
    ratio: float = 1.0


def outer(**changes: Any) -> dict[str, Any]:
    return {"name": "x", "kind": "a", "inner": {"size": 3}, **changes}


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
LEAVES = {str: TEXT, int: st.integers(), bool: st.booleans(), float: st.floats(allow_nan=False), type(None): st.none()}
PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT
JSON = st.recursive(
    PLAIN, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2), max_leaves=3
)


def strategy(kind: Any) -> st.SearchStrategy[Any]:
    """Values of a record's field, by its type; lists and dicts stay short, since what matters is each kind of value."""
    origin, args = get_origin(kind), get_args(kind)
    if kind is Any:
        return JSON
    if origin is Literal:
        return st.sampled_from(args)
    if origin in (Union, types.UnionType):
        return st.one_of(*(strategy(option) for option in args))
    if origin is list:
        return st.lists(strategy(args[0]), max_size=2)
    if origin is dict:
        return st.dictionaries(TEXT, strategy(args[1]), max_size=2)
    if dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind)
        return st.builds(kind, **{one.name: strategy(hints[one.name]) for one in dataclasses.fields(kind)})
    return LEAVES[kind]


RECORDS = [Case, CaseList, CaseOutput, Contract, Event, Request, JobSpec, Plan, Report, Finding, Result, SourceMap]


class TestRoundTrip:
    @pytest.mark.parametrize("kind", RECORDS, ids=lambda kind: kind.__name__)
    def test_every_record_comes_back_as_it_went(self, kind: type) -> None:
        @settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
        @given(strategy(kind))
        def check(value: Any) -> None:
            text = codec.dumps(value)
            assert codec.loads(kind, text) == value
            assert codec.dumps(codec.loads(kind, text)) == text

        check()

    @pytest.mark.parametrize("number", [math.inf, -math.inf, math.nan, 0.0, -0.0, 5e-324, 1.7e308])
    def test_floats_that_json_lacks(self, number: float) -> None:
        back = codec.loads(Inner, codec.dumps(Inner(size=1, error=number))).error
        assert back is not None
        assert math.isnan(back) if math.isnan(number) else math.copysign(1, back) == math.copysign(1, number)
        assert math.isnan(number) or back == number

    def test_equal_records_are_equal_bytes(self) -> None:
        one = Outer(name="x", kind="a", inner=Inner(size=1), by_name={"b": Inner(size=1), "a": Inner(size=2)})
        two = dataclasses.replace(one, by_name=dict(reversed(one.by_name.items())))
        assert codec.dumps(one) == codec.dumps(two)
        assert codec.dumps(one).endswith("\n")

    def test_names_that_are_no_utf_8_can_be_written(self) -> None:
        text = codec.dumps(Inner(size="caf\udce9"))
        assert codec.loads(Inner, text.encode()).size == "caf\\udce9"


class TestStrictness:
    @pytest.mark.parametrize(
        ("value", "message"),
        [
            (outer(colour=1), "colour: unknown key"),
            ({"name": "x", "kind": "a"}, "inner: missing"),
            (outer(kind="c"), "kind: expected one of 'a', 'b', got 'c'"),
            (outer(name=3), "name: expected str, got 3"),
            (outer(flag=1), "flag: expected bool, got 1"),
            (outer(ratio=True), "ratio: expected float, got True"),
            (outer(ratio="fast"), "ratio: expected float, got 'fast'"),
            (outer(ratio=10**400), "ratio: too large for a number"),
            (outer(inner={"size": True}), "inner.size: expected int, got True"),
            (outer(inner={"size": None}), "inner.size: expected int, got None"),
            (outer(many=[{"size": 1}, {"size": 1.5}]), "many[1].size: expected int, got 1.5"),
            (outer(many={"0": {"size": 1}}), "many: expected list"),
            (outer(by_name={"a": {"size": 1, "error": []}}), "by_name.a.error: expected float"),
            ([], "expected dict, got []"),
        ],
    )
    def test_says_where(self, value: Any, message: str) -> None:
        with pytest.raises(RecordError) as caught:
            codec.decode(Outer, value)
        assert str(caught.value).startswith(message)

    def test_whole_numbers_are_floats_where_floats_are_meant(self) -> None:
        assert codec.decode(Outer, outer(ratio=2)).ratio == 2.0
        assert isinstance(codec.decode(Outer, outer(ratio=2)).ratio, float)

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "{",
            b"\xff\xfe",
            '{"size": 1, "size": 2}',
            '{"size": NaN}',
            '{"size": -Infinity}',
            "[" * 100_000,
            '{"size": ' + "9" * 5000 + "}",
        ],
    )
    def test_what_is_no_json_is_told(self, text: str | bytes) -> None:
        with pytest.raises(RecordError, match="not JSON"):
            codec.loads(Inner, text)

    @pytest.mark.parametrize("value", [{1, 2}, b"bytes", object(), 1j])
    def test_what_json_can_not_hold_is_not_written(self, value: Any) -> None:
        with pytest.raises(TypeError, match="can't be written as JSON"):
            codec.dumps(Outer(name="x", kind="a", inner=Inner(size=1), anything=value))

    def test_errors_are_short_whatever_comes(self) -> None:
        with pytest.raises(RecordError) as caught:
            codec.decode(Outer, outer(name=["x" * 10_000]))
        assert len(str(caught.value)) < 200


def test_json_is_plain() -> None:
    text = codec.dumps(Outer(name="é", kind="a", inner=Inner(size=1)))
    assert json.loads(text)["name"] == "é"
    assert "é" in text
