"""A case whose values the module refuses is tried with others before its size is blamed."""

from __future__ import annotations

from dataclasses import replace

import torch
from tests.unit.export.subjects import Does, subject_of

from onnx_ci.export import redraw
from onnx_ci.export.types import RunCase

AXES = ["batch", 3]


def picky(x):
    if (x < 0).any():
        raise ValueError("no negative values")
    return x * 2


def shared(x):
    return x / x.sum(dim=-1, keepdim=True)  # of a row that is all 0: NaN


def called(function, first, *others, example=None):
    subject = subject_of(Does(function), AXES, {"batch": (1, 4)}, {"batch": 2})
    good = torch.ones(2, 3)
    subject = replace(subject, example={"x": good}, eager=replace(subject.eager, values=[function(good)], error=""))
    asked: list[int] = []

    def redrawn(at):
        asked.append(at)
        return {"x": others[at]}

    case = RunCase("batch-max", "boundary", "", {"x": first}, {"batch": 4}, redrawn=redrawn if others else None)
    return redraw.call(subject, case), asked


def test_values_are_drawn_again_and_a_warning_says_so():
    result, asked = called(picky, -torch.ones(4, 3), -torch.ones(4, 3), torch.ones(4, 3))
    assert asked == [0, 1]
    assert result.given.error == ""
    assert result.given.values[0].tolist() == [[2.0] * 3] * 4
    assert torch.equal(result.case.inputs["x"], torch.ones(4, 3))
    (found,) = result.findings
    assert (found.rule, found.status) == ("contract.declared-size", "warn")
    assert "values" in found.message
    assert "no negative values" in found.message


def test_a_size_that_no_values_fit_keeps_its_refusal():
    result, asked = called(picky, -torch.ones(4, 3), -torch.ones(4, 3), -torch.ones(4, 3))
    assert asked == [0, 1]
    assert result.given.error == "ValueError: no negative values"
    assert result.findings == ()


def test_a_case_that_is_taken_and_one_of_the_users_keep_their_values():
    assert called(picky, torch.ones(4, 3), -torch.ones(4, 3), -torch.ones(4, 3))[1] == []
    assert called(picky, -torch.ones(4, 3))[0].given.error == "ValueError: no negative values"


def test_a_row_that_is_masked_throughout_gets_another_mask():
    result, _ = called(shared, torch.zeros(4, 3), torch.ones(4, 3), torch.ones(4, 3))
    assert not result.given.values[0].isnan().any()
    assert result.findings == ()


def test_nan_that_no_mask_explains_stays():
    first = torch.tensor([[-2.0, 2.0, 0.0]]).repeat(4, 1)
    result, asked = called(shared, first, torch.ones(4, 3), torch.ones(4, 3))
    assert asked == []
    assert not result.given.values[0].isfinite().all()


def causal(x):
    seen = (x != 0)[:, None] & torch.ones(3, 3, dtype=torch.bool).tril()
    return torch.nn.functional.scaled_dot_product_attention(x[..., None], x[..., None], x[..., None], attn_mask=seen)


def test_a_query_that_sees_nothing_gets_another_mask():
    left, right = torch.tensor([[0.0, 1.0, 1.0]]).repeat(4, 1), torch.tensor([[1.0, 1.0, 0.0]]).repeat(4, 1)
    result, asked = called(causal, left, left, right)
    assert (asked, result.is_blind, result.findings) == ([0, 1], False, ())
    assert called(causal, left, left, left)[0].is_blind
    assert called(causal, left)[0].is_blind
