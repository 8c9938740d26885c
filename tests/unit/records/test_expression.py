from __future__ import annotations

import ast
import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onnx_ci.records.expression import ExpressionError, filled, parse

NAMES = ["batch", "h", "w_1", "_x"]
SIZES = {"batch": 3, "h": 17, "w_1": 224, "_x": 0}
OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}

leaves = st.integers(0, 1000).map(str) | st.sampled_from(NAMES)
space = st.sampled_from(["", " "])


def _compound(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    symbols = st.sampled_from(["+", "-", "*", "//", "%"])
    return st.one_of(
        st.tuples(inner, space, symbols, space, inner).map("".join),
        inner.map(lambda text: f"({text})"),
        inner.map(lambda text: f"-({text})"),
        st.tuples(st.sampled_from(["min", "max"]), st.lists(inner, min_size=2, max_size=3)).map(
            lambda pair: f"{pair[0]}({', '.join(pair[1])})"
        ),
    )


expressions = st.recursive(leaves, _compound, max_leaves=8)


def by_python(text: str) -> int:
    """The same expression by Python's own parser and a walk over its tree."""

    def walk(node: ast.expr) -> int:
        match node:
            case ast.Constant():
                return node.value
            case ast.Name():
                return SIZES[node.id]
            case ast.UnaryOp():
                return -walk(node.operand)
            case ast.BinOp():
                return OPERATORS[type(node.op)](walk(node.left), walk(node.right))
            case ast.Call():
                return {"min": min, "max": max}[node.func.id](*map(walk, node.args))
        raise AssertionError(node)

    return walk(ast.parse(text, mode="eval").body)


@given(expressions)
def test_means_what_python_means(text: str) -> None:
    try:
        wanted = by_python(text)
    except ZeroDivisionError:
        with pytest.raises(ExpressionError, match="division by zero"):
            parse(text)(SIZES)
    else:
        assert parse(text)(SIZES) == wanted


@given(expressions)
def test_knows_its_names(text: str) -> None:
    assert parse(text).names == {n.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name)} - {"min", "max"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7 - 2 - 1", 4),
        ("-7 // 2", -4),
        ("-7 % 3", 2),
        ("2 * 3 + 4", 10),
        ("2 * (3 + 4)", 14),
        ("4*((w_1//4))*((h//4))", 896),
        ("min(h, w_1) // max(1, _x)", 17),
        ("--3", 3),
        (" batch ", 3),
    ],
)
def test_by_hand(text: str, value: int) -> None:
    assert parse(text)(SIZES) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "1 +",
        "+ 1",
        "a b",
        "a ** 2",
        "a / 2",
        "a < b",
        "(a",
        "a)",
        "min()",
        "min(a,)",
        "abs(a)",
        "a.b",
        "a[0]",
        "1.5",
        "0x10",
        "1_000",
        "__import__('os')",
        "lambda: 1",
        "a if b else c",
        "٣",
        "²",
        "é",
        "a\0",
    ],
)
def test_what_is_outside_the_grammar(text: str) -> None:
    with pytest.raises(ExpressionError):
        parse(text)(SIZES | {"a": 1, "b": 2})


@given(st.text(max_size=30))
def test_any_text_parses_or_is_refused(text: str) -> None:
    try:
        parsed = parse(text)
    except ExpressionError:
        return
    assert parsed.text == text


def test_a_name_without_a_size_is_named() -> None:
    with pytest.raises(ExpressionError, match="no size is known for h"):
        parse("h + 1")({"w": 1})


@pytest.mark.parametrize("text", ["1" + "+1" * 999, "1" + "*1" * 999, "max(" + "1," * 900 + "1)"])
def test_long_expressions_need_no_deep_stack(text: str) -> None:
    assert parse(text)({}) in (1, 1000)


@pytest.mark.parametrize(
    "text", ["(" * 60 + "1" + ")" * 60, "-" * 60 + "1", "min(1," * 60 + "1" + ")" * 60, "1" * 2001]
)
def test_unreasonable_ones_are_refused(text: str) -> None:
    with pytest.raises(ExpressionError, match=r"nested deeper|longer than"):
        parse(text)


def test_equal_text_is_an_equal_expression() -> None:
    assert parse("h + 1") == parse("h + 1")
    assert parse("h + 1") != parse("h+1")


@pytest.mark.parametrize("text", ["past + new", "2*h + 4", "h", "3 + 2*(h + 1) + w"])
def test_a_sum_of_names_rises(text: str) -> None:
    assert parse(text).rises()


@pytest.mark.parametrize("text", ["4", "h*w", "h - w", "h // 2", "0*h", "-h", "max(h, w)", "h + h", "h*h"])
def test_other_expressions_do_not_rise(text: str) -> None:
    assert not parse(text).rises()


def test_names_are_filled_in_as_far_as_their_sizes_are_known() -> None:
    assert filled("past + new", {"past": 5}) == "5 + new"
    assert filled("past + new", {"past": 5, "new": 3}) == 8
    assert filled("past + new", {"past_1": 5}) == "past + new"
