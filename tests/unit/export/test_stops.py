"""Exports that stop, each for real: the cause in plain words, the step, the user's line, the submodule, a way out."""

from __future__ import annotations

import re
import threading
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.unit.export.subjects import subject_of
from torch import nn
from torch.nn import functional as F

from onnx_ci.export import causes, graph
from onnx_ci.export.state import preserved
from onnx_ci.export.subject import Subject
from onnx_ci.records.result import Finding

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore"),  # of torch, on what is wrong with these modules
]


@torch.library.custom_op("onnxci::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@twice.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


@torch.library.custom_op("onnxci::shapeless", mutates_args=())
def shapeless(x: torch.Tensor) -> torch.Tensor:
    return x * 2


class Box:
    def __init__(self, value):
        self.value = value


class RoundOfRatio(nn.Module):
    def forward(self, x):
        return F.adaptive_avg_pool2d(x[None, None], (2, round(4 * x.shape[0] / x.shape[1])))  # here: RoundOfRatio


class RoundOfHalf(nn.Module):
    def forward(self, x):
        return F.interpolate(x[None], size=round(x.shape[0] / 2) + 1)  # here: RoundOfHalf


class RoundByNumpy(nn.Module):
    def forward(self, x):
        import numpy as np

        return x[: int(np.rint(x.shape[0] / 2))]  # here: RoundByNumpy


class Item(nn.Module):
    def forward(self, x):
        count = int(x.abs().sum().item()) % 3 + 1  # here: Item
        return x[:count] if count > 2 else x


class Branch(nn.Module):
    def forward(self, x):
        if x.sum() > 0:  # here: Branch
            return x
        return -x


class While(nn.Module):
    def forward(self, x):
        while x.abs().max() > 1:  # here: While
            x = x / 2
        return x


class Nonzero(nn.Module):
    def forward(self, x):
        found = x.flatten().nonzero()
        return x if found.shape[0] > 3 else -x  # here: Nonzero


class Unique(nn.Module):
    def forward(self, x):
        return x if len(torch.unique(x)) > 1 else -x  # here: Unique


class NoOperator(nn.Module):
    def forward(self, x):
        return torch.special.bessel_j0(x)  # here: NoOperator


class Custom(nn.Module):
    def forward(self, x):
        return twice(x)  # here: Custom


class Shapeless(nn.Module):
    def forward(self, x):
        return shapeless(x)


class Complex(nn.Module):
    def forward(self, x):
        return torch.exp(torch.complex(x, x)).abs()  # here: Complex


class Sparse(nn.Module):
    def forward(self, x):
        return x.to_sparse() @ x.T  # here: Sparse


class CtcLoss(nn.Module):
    def forward(self, x):
        one = torch.tensor([1])
        return F.ctc_loss(x[:, None].log_softmax(-1), one[None], torch.tensor([3]), one)  # here: CtcLoss


class Doubled(nn.Module):
    def forward(self, x):
        return x * 2


class Boxed(nn.Module):
    def forward(self, x):
        return Box(x * 2)


class ByPointer(nn.Module):
    def forward(self, x):
        return x * (x.data_ptr() % 2 + 1)  # here: ByPointer


class OtherThread(nn.Module):
    def forward(self, x):
        found = []
        worker = threading.Thread(target=lambda: found.append(x * 2))
        worker.start()
        worker.join()
        return found[0]


class Resized(nn.Module):
    def forward(self, x):
        return x.clone().resize_(9)  # here: Resized


class Generator(nn.Module):
    def forward(self, x):
        return x + torch.randn(3, generator=torch.Generator().manual_seed(1))  # here: Generator


class Scripted(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.jit.script(nn.Linear(3, 2))

    def forward(self, x):
        return self.inner(x)  # here: Scripted


class Caught(nn.Module):
    def forward(self, x):
        try:
            return x.reshape(7, 7)  # here: Caught
        except RuntimeError:
            return x


class Sorted(nn.Module):
    def forward(self, x):
        return torch.sort(x, stable=True)[0]  # here: Sorted


class Sampled(nn.Module):
    def forward(self, x):
        return F.grid_sample(x[None, None], torch.zeros(1, 3, 3, 2))  # here: Sampled


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x):
        return torch.special.bessel_j0(self.linear(x))  # here: Inner


class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 3), nn.Sequential(nn.ReLU(), Inner()))

    def forward(self, x):
        return self.layers(x)


def quantized() -> nn.Module:
    return torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(3, 2)), {nn.Linear})


STOPS = [
    # module, exporter, cause, step, the marked line is told
    (RoundOfRatio, "dynamo", "size-as-number", "decomposition", True),
    (RoundOfRatio, "torchscript", "size-as-number", "tracing", True),
    (RoundOfHalf, "dynamo", "size-as-number", "translation", True),
    (RoundByNumpy, "dynamo", "size-as-number", "capture", True),
    (Item, "dynamo", "data-number", "capture", True),
    (Branch, "dynamo", "data-branch", "capture", True),
    (While, "dynamo", "data-branch", "capture", True),
    (Nonzero, "dynamo", "data-size", "capture", True),
    (Unique, "dynamo", "data-size", "capture", True),
    (CtcLoss, "dynamo", "data-size", "capture", True),
    (NoOperator, "dynamo", "no-operator", "translation", True),
    (NoOperator, "torchscript", "no-operator", "tracing", True),
    (Custom, "dynamo", "custom-operator", "translation", True),
    (Custom, "torchscript", "custom-operator", "tracing", False),
    (Shapeless, "dynamo", "no-fake-kernel", "capture", False),
    (Complex, "dynamo", "complex", "translation", True),
    (Complex, "torchscript", "complex", "tracing", True),
    (Sparse, "dynamo", "sparse", "capture", True),
    (Boxed, "dynamo", "output-type", "capture", False),
    (Boxed, "torchscript", "output-type", "tracing", False),
    (ByPointer, "dynamo", "numpy", "capture", True),
    (OtherThread, "dynamo", "untraceable", "capture", False),
    (Resized, "dynamo", "in-place", "capture", True),
    (Generator, "dynamo", "generator", "decomposition", True),
    (Scripted, "dynamo", "script", "capture", True),
    (Scripted, "torchscript", "script", "tracing", True),
    (Caught, "dynamo", "caught-error", "decomposition", True),
    (Sorted, "torchscript", "no-form", "tracing", True),
    (quantized, "dynamo", "quantized", "capture", False),
    (quantized, "torchscript", "quantized", "tracing", False),
]


def stopped(module: nn.Module, exporter: str, *, opset: int | None = None, **options) -> Finding:
    """The finding on an export of a module of one input, whose rows vary."""
    subject = subject_of(module, ["rows", 3], {"rows": (2, 16)}, {"rows": 3})
    return _built(replace(subject, options=replace(subject.options, exporter=exporter, opset=opset, **options)))


def _built(subject: Subject) -> Finding:
    found = graph.build(subject, lambda _: nullcontext())
    assert isinstance(found, list), "it does not stop"
    return next(one for one in found if one.rule == "export.stopped")


@pytest.mark.parametrize(("make", "exporter", "cause", "step", "told"), STOPS)
def test_each_known_cause_is_told_in_plain_words(make, exporter, cause, step, told):
    found = stopped(make(), exporter)
    assert (found.data["cause"], found.data["step"]) == (cause, step), found.message
    known = next(one for one in causes.CATALOGUE if one.name == cause)
    assert known.says.partition("{")[0] in found.message
    assert known.advice.partition("{")[0] in found.hint or known.older.partition("{")[0] in found.hint
    assert not re.search(r"[{}]", found.message.replace(str(found.data["chain"][-1]), ""))
    if told:
        lines = Path(__file__).read_text().splitlines()
        assert found.file == "tests/unit/export/test_stops.py"
        assert f"# here: {make.__name__}" in lines[(found.line or 0) - 1], found.line


def test_every_cause_of_the_catalogue_stops_an_export_here():
    shown = {cause for _, _, cause, _, _ in STOPS} | {"newer-opset", "opset", "range"}
    assert {one.name for one in causes.CATALOGUE} == shown


def test_the_chain_has_no_colours_folders_or_advice_of_torchs():
    found = stopped(NoOperator(), "dynamo")
    chain = found.data["chain"]
    assert chain[0] == "ConversionError: Failed to convert the exported program to an ONNX model"
    assert chain[-1].startswith("DispatchError: No ONNX function found for <OpOverload(op='prims.bessel_j0'")
    assert not any("\x1b" in line or "/torch/" in line or "pull request" in line for line in chain)
    assert len(set(chain)) == len(chain) == 3


def test_an_operator_of_a_newer_opset_names_it():
    found = stopped(Sampled(), "torchscript", opset=12)
    assert found.data["cause"] == "newer-opset"
    assert "needs opset 16" in found.message
    assert "export.opset = 16" in found.hint


def test_an_opset_that_the_exporter_does_not_write_is_named():
    found = stopped(Doubled(), "torchscript", opset=99)
    assert found.data["cause"] == "opset"
    assert "does not write opset 99" in found.message


@pytest.mark.parametrize(
    "dynamic_shapes",
    [
        {"x": {0: torch.export.Dim("rows", min=5, max=9)}},
        {"x": [torch.export.Dim("rows"), None, None]},
        {"y": {0: torch.export.Dim("rows")}},
    ],
)
def test_dims_that_contradict_the_example_are_told(dynamic_shapes):
    found = stopped(Doubled(), "dynamo", dynamic_shapes=dynamic_shapes)
    assert found.data["cause"] == "range", found.message


@pytest.mark.parametrize("exporter", ["dynamo", "torchscript"])
def test_the_submodule_that_was_at_work_is_named(exporter):
    found = stopped(Deep(), exporter)
    assert found.data["module"] == "layers.1.1"
    assert "in layers.1.1 at tests/unit/export/test_stops.py" in found.message


def test_an_unknown_cause_is_told_in_its_own_words():
    class Histogram(nn.Module):
        def forward(self, x):
            return torch.histc(x, 4)

    found = stopped(Histogram(), "dynamo")
    assert "cause" not in found.data
    assert found.data["kind"] == "NotImplementedError"
    assert "NotImplementedError: aten_histc with min == max" in found.message


def test_a_scripted_part_is_no_fault_of_ours():
    module = Scripted()
    with preserved(module):
        module.seen = True
    assert not hasattr(module, "seen")
