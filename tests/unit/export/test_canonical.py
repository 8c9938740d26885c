"""Two exports are the same program where they compute the same at every size, and only there."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import pytest
import torch
from torch import nn

from onnx_ci.export import canonical, graph, private
from onnx_ci.export.subject import Graph

from .subjects import subject_of

pytestmark = pytest.mark.torch
RANGES = {"batch": (2, 64), "width": (2, 64)}


class Scaled(nn.Module):
    """Multiplies by a weight, by the width and by a number."""

    def __init__(self, number: float = 2.0, weight: float = 1.0) -> None:
        super().__init__()
        self.number = number
        self.weight = nn.Parameter(torch.tensor(weight))

    def forward(self, x):
        return x * self.weight * x.shape[1] * self.number


class Remembers(nn.Module):
    """Multiplies by the width as a number that tracing can't follow."""

    def forward(self, x):
        return x * float(str(int(x.shape[1])))


class Pooled(nn.Module):
    """What decomposing makes of it depends on whether the size is a multiple."""

    def forward(self, x):
        return nn.functional.adaptive_avg_pool1d(x, 4)


class Unsized(torch.Tensor):
    """A tensor of somebody's own, which tells no strides."""

    def stride(self, *_):
        raise RuntimeError("it has none")


class Ordered(nn.Module):
    """Writes in place between two reads."""

    def __init__(self, *, early: bool) -> None:
        super().__init__()
        self.early = early

    def forward(self, x):
        kept = x.clone()
        if self.early:
            kept.add_(1)
            return kept * 2, kept
        first = kept * 2
        kept.add_(1)
        return first, kept


def subject(module: nn.Module, batch: int, width: int, ranges=RANGES):
    axes = ["batch" if "batch" in ranges else batch, "width" if "width" in ranges else width]
    made = subject_of(module, axes, ranges, {"batch": batch, "width": width})
    return replace(made, weights="known")


def build(module: nn.Module, batch: int, width: int, known: str = "", ranges=RANGES) -> Graph | None:
    """The graph; None where the program is the known one."""
    try:
        built = graph.build(subject(module, batch, width, ranges), lambda _: contextlib.nullcontext(), known)
    except graph.SameProgram:
        return None
    assert isinstance(built, Graph), built
    return built


def program_of(module: nn.Module, batch: int, width: int, ranges=RANGES) -> str:
    made = build(module, batch, width, ranges=ranges)
    assert made is not None
    return made.program


def test_the_same_program_at_another_example_is_not_translated():
    known = program_of(Scaled(), 3, 5)
    assert known.startswith("captured ")
    assert build(Scaled(), 7, 11, known) is None


@pytest.mark.parametrize(
    ("other", "ranges"),
    [
        pytest.param(Scaled(number=3.0), RANGES, id="a number"),
        pytest.param(Scaled(weight=1.5), RANGES, id="a weight"),
        pytest.param(Scaled(), {"batch": (2, 64)}, id="a static axis"),
    ],
)
def test_another_program_is_translated(other, ranges):
    assert build(other, 7, 5, program_of(Scaled(), 3, 5), ranges) is not None


def test_a_size_that_became_a_number_is_seen():
    frozen = {"batch": (2, 64)}
    known = program_of(Remembers(), 3, 5, frozen)
    assert build(Remembers(), 4, 5, known, frozen) is None
    assert build(Remembers(), 4, 6, known, frozen) is not None


def test_what_decomposing_decides_by_the_example_is_seen():
    known = program_of(Pooled(), 3, 16)
    assert known.startswith("decomposed ")  # it assumed more than the capture
    assert build(Pooled(), 5, 16, known) is None
    assert build(Pooled(), 5, 17, known) is not None


def test_the_order_of_writes_counts():
    early, late = (torch.export.export(Ordered(early=early), (torch.ones(2, 2),)) for early in (True, False))
    assert canonical.captured(early, []) != canonical.captured(late, [])


def test_names_of_the_edges_count():
    program = torch.export.export(Scaled(), (torch.ones(2, 2),))
    assert canonical.captured(program, ["x"]) != canonical.captured(program, ["y"])


def test_what_can_not_be_read_has_no_digest():
    program = torch.export.export(Scaled(), (torch.ones(2, 2),))
    program.graph_module.graph.find_nodes(op="placeholder")[0].meta["val"] = Unsized()
    assert canonical.captured(program, []) == ""


def test_a_torch_without_these_names_shows_nothing(monkeypatch):
    monkeypatch.setattr(private, "_TRANSLATION", ("torch.onnx._internal.exporter._core", "gone"))
    with private.before_translation(lambda _: pytest.fail("nothing can be shown")):
        program = torch.export.export(Scaled(), (torch.ones(2, 2),))
    assert canonical.captured(program, []).startswith("captured ")  # which needs no look before the translation
