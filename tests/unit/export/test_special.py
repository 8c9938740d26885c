"""Cases of special values: inside what is declared or seen, none twice, and judged in full where the answer is firm."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
import onnx_ir as ir
import pytest
import torch
from tests.unit.export.subjects import Does, subject_of

from onnx_ci.export import arguments, special, steady
from onnx_ci.export.oracle import Oracle
from onnx_ci.export.types import Declared, DeclaredInput, RunCase


def made(value, *users, **declared):
    axes = list(value.shape)
    item = DeclaredInput("x", axes, str(value.dtype).removeprefix("torch."), **declared)
    cases = [RunCase(f"user{at}", "user", "", {"x": one}) for at, one in enumerate([value, *users])]
    found = special.special_cases(Declared([item]), cases[0], cases, np.random.default_rng(0))
    assert len({case.name for case in found}) == len(found) <= special.MOST_CASES
    for case in found:
        assert case.inputs["x"].dtype == value.dtype
        assert case.inputs["x"].shape == value.shape
        assert case.origin == "special"
    end = "" if declared else "-undeclared"
    assert all(case.name.endswith(end) for case in found)
    return {case.name.removeprefix("special-").removesuffix(end): case for case in found}


RANDOM = torch.rand(3, 4, 5, generator=torch.Generator().manual_seed(0))


def test_floats_keep_to_their_declared_range_and_reach_its_ends():
    found = made(RANDOM, low=-0.3, high=2.5)
    assert set(found) == {"multiples", "zeros", "ties", "rows", "low", "high"}
    assert all(
        bool((case.inputs["x"] >= -0.3).all() & (case.inputs["x"].double() <= 2.5).all()) for case in found.values()
    )
    assert torch.equal(found["high"].inputs["x"], torch.full((3, 4, 5), 2.5))
    assert float(found["low"].inputs["x"].max()) >= -0.3  # the float32 nearest to -0.3 lies outside
    multiples = found["multiples"].inputs["x"].reshape(-1)
    assert torch.equal(multiples[::2] * 2, (multiples[::2] * 2).round())
    assert torch.equal(multiples[1::2], ((multiples[1::2].double() * 10).round() / 10).float())
    assert len(set(multiples.tolist())) > 10
    rows = found["rows"].inputs["x"]
    assert bool((rows == rows[:, :1]).all())
    assert not bool((rows == rows[:1]).all())
    assert all(not case.advisory for case in found.values())
    assert [name for name, case in found.items() if not case.tied] == ["multiples"]


def test_what_nobody_declared_keeps_to_the_values_seen_and_is_advisory():
    found = made(torch.tensor([3, 7, 5]), torch.tensor([9, 4, 4]))
    assert {name: case.inputs["x"].tolist() for name, case in found.items()} == {
        "ties": [6, 6, 6],
        "low": [3, 3, 3],
        "high": [9, 9, 9],
    }
    assert {case.advisory for case in found.values()} == {"no value range is declared for x"}


def test_a_mask_of_items_is_never_wholly_of_one():
    for value, declared in [
        (torch.tensor([[True, True, False, True], [True, False, True, True], [False, True, True, True]]), {}),
        (torch.ones(3, 4, dtype=torch.int64), {}),
        (torch.ones(3, 4), {"values": [0, 1]}),
        (torch.ones(3, 4, dtype=torch.int32), {"low": 0, "high": 1}),
    ]:
        found = made(value, **declared)
        assert set(found) == (set() if value.all() else {"unmasked"})
        assert all(bool(case.advisory) is not bool(declared) for case in found.values())


@pytest.mark.parametrize("shape", [(2, 5, 5), (2, 1, 4, 5)])
def test_a_query_that_sees_nothing_is_judged_in_full(shape):
    found = made(torch.ones(shape, dtype=torch.bool), values=[0, 1])
    assert {name: bool(case.advisory) for name, case in found.items()} == {"masked-row": False}
    row = found["masked-row"].inputs["x"].reshape(-1, shape[-1])
    assert (bool(row[0].any()), bool(row[-1].all())) == (False, True)
    assert "masked-row" not in made(torch.ones(2, 1, 1, 5), values=[0, 1])  # its only row is the item


def test_of_several_masks_the_rows_of_queries_are_hidden():
    items = [DeclaredInput("x", [2, 5, 5], "int64", values=[0, 1]), DeclaredInput("h", [2, 5], "int64", values=[0, 1])]
    case = RunCase("a", "user", "", {"x": torch.ones(2, 5, 5).long(), "h": torch.ones(2, 5).long()})
    row = special.special_cases(Declared(items), case, [case], np.random.default_rng(0))[0]
    assert (row.name, row.advisory) == ("special-masked-row", "")
    assert bool(row.inputs["h"].all())


def test_an_additive_mask_hides_with_its_own_number():
    value = torch.tensor([[[0.0, 0.0, -1e4], [0.0, -1e4, -1e4]]])
    found = made(value)
    assert found["masked-row"].inputs["x"].tolist() == [[[-1e4] * 3, [0.0] * 3]]


def test_values_are_only_the_declared_ones():
    found = made(torch.tensor([2, 5, 8]), values=[2, 5, 8])
    assert {name: set(case.inputs["x"].tolist()) for name, case in found.items()} == {
        "ties": {5},
        "low": {2},
        "high": {8},
    }


def test_nan_and_infinity_come_only_where_they_are_declared():
    for name, value in (("nan", "nan"), ("inf", "inf"), ("minus-inf", "-inf")):
        case = made(RANDOM, nonfinite=(value,), low=0.0, high=1.0)[name]
        rows = case.inputs["x"].reshape(3, -1)
        found = rows.isnan() if value == "nan" else rows == float(value)
        assert found.sum(1).tolist() == [1, 1, 1]
        assert not case.advisory
        assert torch.equal(rows[~found], RANDOM.reshape(3, -1)[~found])
    assert all(case.inputs["x"].isfinite().all() for case in made(RANDOM, low=0.0, high=1.0).values())


def test_what_is_declared_is_judged_in_full_beside_what_is_not():
    items = [DeclaredInput("x", [3, 4], "float32", low=0.0, high=1.0), DeclaredInput("h", [3, 4], "float32")]
    case = RunCase("a", "user", "", {"x": torch.rand(3, 4), "h": torch.rand(3, 4) + 1})
    found = special.special_cases(Declared(items), case, [case], np.random.default_rng(0))
    full = [one for one in found if not one.advisory]
    assert [one.name for one in full] == [
        "special-multiples",
        *(f"special-{k}" for k in ("zeros", "ties", "rows", "low", "high") if k != "low"),
    ]
    assert all(torch.equal(one.inputs["h"], case.inputs["h"]) for one in full)
    rest = [one for one in found if one.advisory]
    assert rest
    assert all(torch.equal(one.inputs["x"], case.inputs["x"]) for one in rest)
    assert len(found) <= special.MOST_CASES


def test_positions_constants_and_nothing_have_no_special_values():
    assert made(torch.arange(5).expand(2, 5)) == {}
    assert made(torch.full((2, 3), 0.5)) == {}
    assert made(torch.zeros(0, 3), low=0.0, high=1.0) == {}
    assert made(torch.zeros(2, 3, dtype=torch.int64)) == {}


def test_no_case_is_the_example_or_another_again():
    found = made(torch.zeros(2, 3), low=0.0, high=1.0)
    assert "zeros" not in found
    assert "low" not in found
    assert [list(one.inputs["x"].reshape(-1)) for one in made(RANDOM, low=0.0, high=1.0).values()] == [
        list(one.inputs["x"].reshape(-1)) for one in made(RANDOM, low=0.0, high=1.0).values()
    ]


@pytest.mark.parametrize(("flops", "most"), [(0.0, 12), (6e10, 12), (1.2e11, 6), (1e15, 3)])
def test_a_large_model_has_fewer(flops, most):
    assert special.most_of(flops) == most


def asked(function, value, *, tied=True, nodes=(), low=None, high=None, exact=True):
    subject = subject_of(Does(function), ["batch", 4], {"batch": (1, 4)}, {"batch": 2})
    declared = Declared([DeclaredInput("x", ["batch", 4], "float32", low=low, high=high)])
    case = RunCase("special-ties", "special", "", {"x": value}, tied=frozenset({"x"} if tied else ()))
    graph = onnx.helper.make_graph([onnx.helper.make_node(one, ["x"], [f"y{one}"]) for one in nodes], "g", [], [])
    subject = replace(subject, example=case.inputs, declared=declared)
    oracle, call = Oracle(subject.module), arguments.bind(subject.module, case.inputs)
    truth, given = oracle.run(call), arguments.call(subject.module, call)
    model = ir.from_proto(onnx.helper.make_model(graph))
    return steady.doubt(oracle if exact else None, subject, model, case, truth if exact else None, given)


def doubt(function, value, **more):
    return asked(function, value, **more).why


def test_a_smooth_answer_to_ties_stands_firm():
    value = torch.full((2, 4), 0.5)
    assert doubt(lambda x: (x @ torch.ones(4, 3)).sigmoid(), value) == ""
    assert doubt(lambda x: (x * 2, x > 0.1), value) == ""
    assert doubt(lambda x: x @ torch.zeros(4, 3), torch.zeros(2, 4)) == ""


def test_what_hangs_on_the_last_digits_of_ties_is_doubted():
    value = torch.full((2, 4), 0.5)
    assert "changes PyTorch's own answer" in doubt(lambda x: x.argmax(-1), value)
    assert "changes PyTorch's own answer" in doubt(lambda x: x > 0.5, value)
    assert "changes PyTorch's own answer" in doubt(lambda x: torch.nn.functional.layer_norm(x, (4,)), value)
    assert "changes PyTorch's own answer" in doubt(lambda x: x[x > 0.5], value)
    assert "changes PyTorch's own answer" in doubt(lambda x: torch.where(x > 0.5, torch.inf, -torch.inf), value)
    assert doubt(lambda x: torch.where(x > 0.4, torch.inf, torch.nan), value) == ""


def test_multiples_are_judged_though_floors_jump_there():
    assert doubt(torch.floor, torch.full((2, 4), 3.0), tied=False) == ""
    assert doubt(torch.floor, torch.full((2, 4), 3.0)) != ""


def test_equal_whole_numbers_are_doubted_where_the_graph_picks():
    value = torch.full((2, 4), 3)
    assert doubt(lambda x: x * 2, value, nodes=["TopK"]) == "TopK may pick among equal values in any order"
    assert doubt(lambda x: x * 2, value, nodes=["Relu"]) == ""


def test_what_moves_stays_finite_where_an_epsilon_keeps_it_from_a_pole():
    zeros = torch.zeros(2, 4)
    for function in (
        lambda x: x / (x.sum(-1, keepdim=True) + 1e-8),
        lambda x: (x.pow(2).mean(-1) + 1e-16).log(),
        lambda x: torch.nn.functional.normalize(x, dim=-1),
    ):
        for exact in (True, False):
            found = asked(function, zeros, low=0.0, high=1.0, exact=exact)
            (move,) = found.moves
            assert move.firm
            assert (move.sway is not None and move.sway > 0.1) if exact else move.sway is None


def test_what_is_not_finite_beside_is_no_fault_of_a_file():
    half = torch.full((2, 4), 0.3)
    for function in (
        lambda x: (x.pow(2).mean(-1) - x.mean(-1).pow(2)).clamp(min=-1).sqrt(),
        lambda x: torch.acos(torch.nn.functional.cosine_similarity(x[:1], x[1:], dim=-1).mul(1 + 2e-8)),
        lambda x: torch.log(x[:, 0] - x[:, 1] + 1e-9),
    ):
        found = asked(lambda x, f=function: (f(x), x.argmax(-1).double()), half)
        assert found.why
        assert not found.moves[0].firm


def test_zeros_are_nudged_inside_their_range_and_by_what_is_usual():
    seen = []

    def watch(x):
        seen.append(x.detach().double().clone())
        return x.argmax(-1).to(x.dtype)

    asked(watch, torch.zeros(2, 4), low=0.0, high=255.0)
    nudges = [one for one in seen[1:] if bool(one.any())]  # the first is the example
    assert all(bool((one >= 0).all() & (one <= 255).all()) for one in nudges)
    sizes = [float(one.max()) for one in nudges]
    assert max(sizes) > 1e-5  # a millionth of what usual values are
    assert min(sizes) < 1e-8  # and far below
    seen.clear()
    asked(watch, torch.full((2, 4), 255.0), low=0.0, high=255.0)
    assert all(float(one.max()) <= 255.0 for one in seen)
