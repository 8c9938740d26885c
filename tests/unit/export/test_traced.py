"""Traced sizes are written in the contract's grammar, and mean there what they mean in torch."""

from __future__ import annotations

import pytest
import sympy
from torch.utils._sympy import functions as torch_sympy

from onnx_ci.export import traced
from onnx_ci.records import expression

H, W, U = sympy.Symbol("s1", integer=True), sympy.Symbol("s2", integer=True), sympy.Symbol("u0", integer=True)
NAMES = {H: "h", W: "w"}


@pytest.mark.parametrize(
    "size",
    [
        H + 1,
        2 * H * W - 3,
        -H + W,
        H**2,
        torch_sympy.FloorDiv(H - 1, 2) + 1,
        torch_sympy.Mod(8 - torch_sympy.Mod(W, 8), 8),
        torch_sympy.Min(H, W),
        torch_sympy.Max(1, torch_sympy.FloorDiv(H, W)),
        torch_sympy.CeilToInt(torch_sympy.IntTrueDiv(H, 3)),
        torch_sympy.FloorToInt(torch_sympy.IntTrueDiv(H + 1, 3)),
        torch_sympy.TruncToInt(1.5 * torch_sympy.ToFloat(H)),
        torch_sympy.TruncToInt(0.5 * torch_sympy.ToFloat(H)),
        torch_sympy.TruncToInt(2.0 * torch_sympy.ToFloat(H)),
        torch_sympy.ModularIndexing(H * W, 3, 5),
        (H - 1) * (W + 2),
    ],
    ids=str,
)
@pytest.mark.parametrize("at", [(7, 5), (16, 24), (1, 3)])
def test_an_expression_keeps_its_value(size, at):
    text = traced.render(size, NAMES)
    assert isinstance(text, str)
    expected = size.xreplace({H: sympy.Integer(at[0]), W: sympy.Integer(at[1])})
    assert expression.parse(text)({"h": at[0], "w": at[1]}) == int(expected)


@pytest.mark.parametrize(("size", "text"), [(7, 7), (sympy.Integer(7), 7), (H, "h"), (2 * H, "2*h")])
def test_plain_sizes_are_plain(size, text):
    assert traced.render(size, NAMES) == text


@pytest.mark.parametrize(
    "size", [U, U * H, torch_sympy.TruncToInt(0.3 * torch_sympy.ToFloat(H)), sympy.Function("f")(H)], ids=str
)
def test_what_has_no_form_is_unknown(size):
    assert traced.render(size, NAMES) == expression.UNKNOWN


def test_a_condition_is_evaluated_and_shown_with_declared_names():
    condition = sympy.Eq(torch_sympy.Mod(H, 2), 0)
    assert traced.holds(condition, {H: 4}) is True
    assert traced.holds(condition, {H: 5}) is False
    assert traced.holds(sympy.Eq(U, H), {H: 5}) is None
    assert traced.shown(condition, NAMES) == "h % 2 == 0"
    assert traced.shown(sympy.StrictLessThan(H, W), NAMES) == "h < w"
