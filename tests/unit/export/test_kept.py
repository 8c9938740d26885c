"""What forward changes on a module is told, and put back."""

from __future__ import annotations

from collections import OrderedDict, deque

import pytest
import torch
from torch import nn

from onnx_ci.export.kept import Kept
from onnx_ci.export.state import preserved


class Notes:
    def __init__(self):
        self.seen, self.inner = 0, {"last": []}


class Module(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = nn.Linear(2, 2)
        self.register_buffer("mean", torch.zeros(2))
        self.register_buffer("later", None)
        self.nothing, self.size, self.table = None, (1, 2), torch.arange(3.0)
        self.queue, self.names, self.ordered = deque([1, 2]), {"a"}, OrderedDict(a=1)
        self.notes, self.pair, self.loose = Notes(), ([1], {}), [nn.BatchNorm1d(2)]


def assign(name, value):
    return lambda m: setattr(m, name, value)


CHANGES = {
    "nothing": assign("nothing", torch.ones(1)),
    "new": assign("new", 1),
    "size": assign("size", (3, 4)),
    "table": lambda m: m.table.add_(1),
    "mean": lambda m: m.mean.resize_(3).fill_(1),
    "later": assign("later", torch.ones(1)),
    "queue": lambda m: m.queue.append(3),
    "names": lambda m: m.names.add("b"),
    "ordered": lambda m: m.ordered.update(a=2),
    "notes.seen": lambda m: setattr(m.notes, "seen", 5),
    "notes.inner": lambda m: m.notes.inner["last"].append(4),
    "pair": lambda m: m.pair[0].append(2),
    "loose.running_mean": lambda m: m.loose[0](torch.randn(4, 2)),
    "part.training": lambda m: m.part.eval(),
    "part.weight": lambda m: m.part.weight.data.zero_(),
    "extra": lambda m: m.add_module("extra", nn.ReLU()),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_told_and_put_back(name):
    module = Module()
    before = Kept(module, weights=True)
    with preserved(module, weights=True) as kept:
        CHANGES[name](module)
        found = kept.written() + kept.changed()
    assert name in found
    assert before.written() + before.changed() == []


def test_an_equal_number_is_no_change():
    module = nn.Module()
    module.size, module.scale = 4000, 0.5
    kept = Kept(module)
    module.size, module.scale = int("4000"), 1.0 / 2
    assert kept.written() + kept.changed() == []


def test_what_can_t_be_read_is_left_alone():
    module = nn.Module()
    module.sparse, module.meta = torch.eye(2).to_sparse(), torch.ones(2, device="meta")
    module.circle = [module]
    module.circle.append(module.circle)
    with preserved(module) as kept:
        module.sparse = None
        assert kept.changed() == ["sparse"]
    assert module.sparse is not None


def test_a_buffer_that_took_a_gradient_is_put_back_without_it():
    module = nn.BatchNorm1d(2)
    weight = torch.ones(2, requires_grad=True)
    with preserved(module):
        module.running_mean.mul_(weight + 1).add_(weight)
        assert module.running_mean.requires_grad
    assert not module.running_mean.requires_grad
    assert module.running_mean.tolist() == [0, 0]


def test_a_lazy_module_is_read_with_its_weights():
    module = nn.Sequential(nn.LazyLinear(3))
    with preserved(module, weights=True):
        module(torch.ones(2, 4))
