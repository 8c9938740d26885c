"""A batch in parts and in another order: made where PyTorch keeps its rows apart, and only there."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from tests.unit.export.subjects import Does, subject_of
from torch import nn

from onnx_ci.export import batch, cases
from onnx_ci.export.measure import measure
from onnx_ci.export.types import Declared, DeclaredInput, RunCase
from onnx_ci.records.cases import Case

pytestmark = pytest.mark.torch


def planned(function, least=1, most=8, example=4, fits=lambda dims: True, **spec):
    module = function if isinstance(function, nn.Module) else Does(function)
    subject = subject_of(module, ["batch", 6], {"batch": (least, most)}, {"batch": example}, **spec)
    base = measure(RunCase("example", "example", "", subject.example), subject.declared)
    limits, _, _ = cases.frame(subject.declared, {"batch": (least, most)}, base)
    graph = SimpleNamespace(outputs={f"y{at}": at for at in range(len(subject.eager.values))}, restrictions=[])
    return batch.plan(subject, graph, base, limits, lambda plan: cases.make(plan, subject.declared, base, []), fits)


def test_rows_that_keep_apart_are_split_and_permuted():
    torch.manual_seed(0)
    found = planned(nn.Linear(6, 5))
    assert [case.name for case in found.cases] == ["batch-part-1", "batch-part-2", "batch-permuted"]
    assert [case.dims["batch"] for case in found.cases] == [1, 3, 4]
    assert (found.identity.split, found.identity.permutes) == (["y0"], ["y0"])
    whole, first, second, permuted = (case.inputs["input"] for case in (found.whole, *found.cases))
    assert torch.equal(torch.cat([first, second]), whole)
    assert torch.equal(permuted, whole[found.identity.order])
    assert not torch.equal(permuted, whole)


@pytest.mark.parametrize(
    ("function", "split", "permutes"),
    [
        (lambda x: x - x.mean(0), [], ["y0"]),
        (lambda x: x + torch.arange(len(x))[:, None], [], []),
        (lambda x: (x * 2, x.sum(0)), ["y0"], ["y0"]),
        (lambda x: x.sum(), [], []),
        (lambda x: x @ x.T, [], []),
        (lambda x: x.topk(1 + len(x) // 2, 1).values, [], []),
        (lambda x: x.argmax(1), ["y0"], ["y0"]),
        (lambda x: x[x[:, 0] > 0], [], []),
    ],
)
def test_what_pytorch_itself_does_not_have_is_not_asked_of_the_file(function, split, permutes):
    found = planned(function)
    assert (found.identity.split, found.identity.permutes) == (split, permutes)
    assert bool(found.cases) == bool(split or permutes)
    assert set(found.identity.not_held) == {name for name in ("y0", "y1") if name not in split} - (
        {"y1"} if not isinstance(function(torch.ones(4, 6)), tuple) else set()
    )


@pytest.mark.parametrize(
    ("function", "status", "said"),
    [
        (lambda x: x * 2, "pass", "in parts (1+3) and in another order: y0"),
        (lambda x: x - x.mean(0), "fail", "y0: relL2"),
        (lambda x: (x * 2, x - x.mean(0)), "fail", "y1: relL2"),
        (lambda x: x + torch.arange(len(x))[:, None], "fail", "y0: relL2"),
        (lambda x: x + 1e-4 * x.mean(0), "warn", "y0: relL2"),
        (lambda x: x @ x.T, "warn", "the shape of a row hangs on batch"),
        (lambda x: x.sum(), "skip", "no output has batch for its first axis"),
        (lambda x: x + torch.rand_like(x), "skip", "no output has batch"),
    ],
)
def test_a_declaration_that_rows_are_independent_is_held_against_pytorch(function, status, said):
    (found,) = planned(function, batch="independent").findings
    assert (found.rule, found.status, found.subject) == ("contract.batch-mixed", status, "batch")
    assert said in found.message


def test_nothing_is_said_of_rows_where_nothing_is_declared():
    assert planned(lambda x: x - x.mean(0)).findings == []
    assert planned(lambda x: x - x.mean(0), batch="mixed").findings == []


def test_an_example_of_one_row_gets_a_larger_batch():
    found = planned(nn.Linear(6, 5), example=1)
    assert [case.name for case in found.cases] == ["batch-whole", "batch-part-1", "batch-part-2", "batch-permuted"]
    assert [case.dims["batch"] for case in found.cases] == [3, 1, 2, 3]


@pytest.mark.parametrize(
    ("said", "more"),
    [
        ("mixed", {"batch": "mixed"}),
        ("no room", {"least": 3, "most": 5}),
        ("no room", {"example": 1, "most": 1}),
        ("outside", {"fits": lambda dims: False}),
    ],
)
def test_why_nothing_is_tried_is_said(said, more):
    found = planned(nn.Linear(6, 5), **more)
    assert found.cases == []
    assert said in found.identity.not_held[""]


def test_an_error_of_the_module_at_a_part_is_no_verdict():
    found = planned(lambda x: x.reshape(2, -1, 6) if len(x) != 1 else 1 / 0)
    assert found.cases == []
    assert "ZeroDivisionError" in found.identity.not_held[""]


def test_the_batch_is_the_one_dim_that_stands_first_and_nowhere_else():
    def dim(*shapes):
        return batch.batch_dim(Declared([DeclaredInput(str(at), axes, "float32") for at, axes in enumerate(shapes)]))

    assert dim(["n", 3, "h"]) == "n"
    assert dim(["n", 3], ["n"], [], [4]) == "n"
    assert dim(["n", "n"]) is None
    assert dim(["n", 3], ["m", "n"]) == "m"
    assert dim(["n", 3], ["m", 3]) is None
    assert dim(["2*n", 3], ["n"]) is None
    assert dim([2, "n"]) is None


def test_cases_that_were_not_written_leave_no_identity():
    found = planned(nn.Linear(6, 5))
    written = [Case(index=at, name=case.name, origin="boundary", why="") for at, case in enumerate(found.cases)]
    assert found.resolved(written).whole is None
    written.append(Case(index=7, name="example", origin="example", why=""))
    known = found.resolved(written)
    assert (known.whole, known.parts, known.permuted) == (7, [0, 1], 2)
