"""Forward is run over its declared sizes without data; what it does otherwise at some of them becomes cases."""

from __future__ import annotations

import itertools

import pytest
import torch
from tests.unit.export.subjects import Does, subject_of
from torch import nn
from torch.nn import functional as F

from onnx_ci.export import affordable, cases, meta, scan, sizes
from onnx_ci.export.measure import measure
from onnx_ci.export.types import RunCase

pytestmark = pytest.mark.torch

IMAGE = ["batch", 3, "height", "width"]
IMAGE_DIMS = {"batch": (1, 4), "height": (16, 96), "width": (16, 96)}
IMAGE_EXAMPLE = {"batch": 2, "height": 24, "width": 32}


def scanned(module, axes, dims, example, **more):
    """The sizes of the cases made, by the dims that are not the example's; and the finding."""
    subject = subject_of(module if isinstance(module, nn.Module) else Does(module), axes, dims, example)
    base = measure(RunCase("example", "example", "", subject.example), subject.declared)
    limits, shapes, widths = cases.frame(subject.declared, dims, base)
    planned, _ = sizes.boundaries(limits, base.dims, shapes, widths)
    count = itertools.count()

    def make(wanted):
        return cases.make(sizes.Plan(f"{next(count)}", "", dict(wanted)), subject.declared, base, []).inputs

    asked = scan.Asked(
        ranges=limits,
        base=base.dims,
        planned=[base.dims, *(plan.dims for plan in planned)],
        pairs=sizes.neighbours(shapes, limits),
        fits=affordable.budget(base.dims, shapes, widths),
        make=make,
    )
    plans, found = scan.scan(subject, asked, ["y"], **more)
    assert all(plan.dims not in asked.planned for plan in plans)
    assert all(limits[name].holds(size) for plan in plans for name, size in plan.dims.items())
    return [{name: size for name, size in plan.dims.items() if size != base.dims[name]} for plan in plans], found


def test_a_branch_on_the_batch_gets_a_case_on_its_other_side():
    for function in (lambda x: x * 2 if x.shape[0] > 4 else x * 3, lambda x: x.relu() if x.shape[0] > 4 else x * 3):
        made, found = scanned(function, ["batch", 6], {"batch": (1, 32)}, {"batch": 3})
        assert made == [{"batch": 5}]  # 4 is one off the example, and a case already
        assert found.status == "pass"
        assert "between batch 4 and 5" in found.message or "batch 4 than at 5" in found.message


def test_the_size_of_a_ratio_gets_cases_at_the_halves_that_are_rounded():
    function = lambda x: F.adaptive_avg_pool2d(x, (4, round(x.shape[3] * 4 / 24)))  # noqa: E731
    made, found = scanned(function, ["batch", 3, 24, "width"], {"width": (16, 96), "batch": (1, 4)}, IMAGE_EXAMPLE)
    widths = {one["width"] for one in made if "width" in one}
    assert {width for width in widths if (width * 4 / 24) % 1 == 0.5}
    assert "axis 3 of the output y goes from" in found.message
    assert 2 <= len(made) <= 4


@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.adaptive_avg_pool2d(x, (4, 4)),
        lambda x: x.flatten(1).mean(1),
        lambda x: x @ x.transpose(2, 3),
        lambda x: x / x.shape[3] ** 0.5,
    ],
)
def test_what_follows_its_sizes_evenly_gets_no_case(function):
    made, found = scanned(function, IMAGE, IMAGE_DIMS, IMAGE_EXAMPLE)
    assert made == []
    assert found.data["jumps"] == 0


def test_a_network_of_strides_gets_a_pair_for_each_dim_at_most():
    layers = [nn.Conv2d(3, 3, 3, stride=2, padding=1) for _ in range(4)]
    made, _ = scanned(nn.Sequential(*layers), IMAGE, IMAGE_DIMS, IMAGE_EXAMPLE)
    assert 1 <= len(made) <= 4


def test_a_branch_on_two_dims_together_is_found_on_the_diagonal():
    function = lambda x: x.relu() if x.shape[2] * x.shape[3] > 6000 else x + 1  # noqa: E731
    made, found = scanned(function, IMAGE, IMAGE_DIMS, IMAGE_EXAMPLE)
    areas = sorted(one.get("height", 24) * one.get("width", 32) for one in made)
    assert areas[0] <= 6000 < areas[-1]
    assert found.data["jumps"] == 1


def test_a_size_that_forward_refuses_gets_cases_on_both_sides():
    function = lambda x: x + torch.ones(1, 50)[:, : x.shape[1]]  # noqa: E731
    made, found = scanned(function, ["batch", "time"], {"batch": (1, 4), "time": (1, 100)}, {"batch": 2, "time": 9})
    assert {50, 51} <= {one["time"] for one in made}
    assert "forward takes time 50 and refuses 51" in found.message


def test_without_a_meta_form_it_is_run_for_real_and_says_so():
    made, found = scanned(
        lambda x: x[x[:, 0] > 0] if x.shape[0] < 20 else x, ["rows", 4], {"rows": (1, 64)}, {"rows": 9}
    )
    assert sorted(one["rows"] for one in made) == [19, 20]
    assert found.status == "skip"
    assert "no meta form" in found.message
    assert "run for real" in found.message


def test_the_time_is_bounded_and_told():
    ticks = itertools.count()
    made, found = scanned(lambda x: x * 2, ["n"], {"n": (1, 10_000)}, {"n": 9}, clock=lambda: next(ticks) / 50)
    assert made == []
    assert found.data["looks"] <= 51
    assert "the end of its 1 s" in found.message


def test_nothing_is_left_behind_in_the_module():
    module = nn.BatchNorm1d(3)
    scanned(module, ["batch", 3], {"batch": (1, 40)}, {"batch": 5})
    assert not any(value.is_meta for value in module.state_dict().values())


def test_what_operators_made_is_remembered_by_shape_and_kind_of_number():
    run = meta.meta_run(subject_of(Does(lambda x: (x.int() * 2).float() @ x.T), ["n", 4], {"n": (1, 9)}, {"n": 3}))
    first, again, other = run({"n": 5}), run({"n": 5}), run({"n": 6})
    assert first == again
    assert (first.outputs, other.outputs) == (((5, 5),), ((6, 6),))
    assert first.operators is other.operators
