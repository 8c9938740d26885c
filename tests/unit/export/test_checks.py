"""Training mode, state and chance are found where they matter, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from onnx_ci.export.checks import mode_and_state_findings
from onnx_ci.export.places import Places
from onnx_ci.export.types import Call

HERE = Path(__file__)
PLACES = Places(HERE.parent, HERE.parent)
X = torch.randn(4, 6, generator=torch.Generator().manual_seed(1))


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


def judge(module, x=X):
    rng, buffers = torch.get_rng_state(), {name: value.clone() for name, value in module.named_buffers()}
    modes = [part.training for part in module.modules()]
    found = {one.rule: one for one in mode_and_state_findings(module, Call((x,), {}), PLACES)}
    assert torch.equal(torch.get_rng_state(), rng)
    assert all(torch.equal(value, buffers[name]) for name, value in module.named_buffers())
    assert [part.training for part in module.modules()] == modes
    assert list(found) == ["export.training-mode", "contract.state", "export.random"]
    return found


def statuses(found):
    return tuple(one.status for one in found.values())


class FunctionalDropout(nn.Module):
    def __init__(self, always=False):
        super().__init__()
        self.always = always

    def forward(self, x):
        return F.dropout(x, 0.5, training=self.always or self.training)


class Noise(nn.Module):
    def forward(self, x):
        return x + torch.randn_like(x)


class Counter(nn.Module):
    def __init__(self, use=True):
        super().__init__()
        self.register_buffer("calls", torch.zeros(1))
        self.use = use

    def forward(self, x):
        self.calls += 1
        return x + self.calls if self.use else x


class Remembers(nn.Module):
    def __init__(self):
        super().__init__()
        self.history = []

    def forward(self, x):
        self.history.append(x)
        return x + len(self.history)


class Caches(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = None

    def forward(self, x):
        if self.table is None:
            self.table = torch.arange(x.shape[-1]).float()
        return x + self.table


class Unused(nn.Module):
    """Has a dropout in training mode that forward does not use, and draws what it throws away."""

    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        torch.rand(3)
        return x * 2


@pytest.mark.parametrize(
    "module",
    [
        nn.Sequential(nn.Linear(6, 6), nn.Dropout(0.5), nn.BatchNorm1d(6)).eval(),
        nn.TransformerEncoderLayer(6, 2, 8, dropout=0.5).eval(),
        FunctionalDropout().eval(),
        Counter(use=False).eval(),
        Caches().eval(),
    ],
    ids=lambda module: type(module).__name__,
)
def test_healthy_modules_pass(module):
    assert statuses(judge(module)) == ("pass", "pass", "pass")


@pytest.mark.parametrize(
    ("module", "named"),
    [
        (nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6)), "1 (BatchNorm1d)"),
        (nn.Sequential(nn.Linear(6, 6), nn.Dropout(0.3)), "1 (Dropout)"),
        (nn.Sequential(nn.Linear(6, 6), FunctionalDropout()), "1 (FunctionalDropout)"),
        (nn.Sequential(nn.LSTM(6, 6, 2, dropout=0.5)), "0 (LSTM)"),
        (nn.RReLU(), "the module itself (RReLU)"),
    ],
    ids=["batch norm", "dropout", "functional dropout", "lstm", "rrelu"],
)
def test_training_mode_with_an_effect_fails_and_names_the_submodule(module, named):
    finding = judge(module)["export.training-mode"]
    assert finding.status == "fail"
    assert "reference is in training mode" in finding.message
    assert named in finding.message
    assert "Linear" not in finding.message
    assert finding.hint


def test_a_child_in_training_mode_is_seen_below_a_parent_in_eval_mode():
    module = nn.Sequential(nn.Linear(6, 6), nn.Sequential(nn.Dropout(0.3))).eval()
    module[1][0].train()
    found = judge(module)
    assert found["export.training-mode"].subject == "1.0"
    assert statuses(found) == ("fail", "pass", "pass")


def test_dropout_that_ran_fails_even_if_this_input_hides_it():
    module = nn.Sequential(nn.Dropout(0.5), nn.Linear(6, 6))
    assert judge(module, torch.zeros(4, 6))["export.training-mode"].status == "fail"


@pytest.mark.parametrize("module", [nn.Linear(6, 6), nn.Sequential(nn.Dropout(0.0)), Unused()])
def test_training_mode_without_an_effect_only_warns(module):
    assert statuses(judge(module)) == ("warn", "pass", "pass")


def test_a_buffer_that_changes_the_next_answer_fails():
    finding = judge(nn.Sequential(Counter()).eval())["contract.state"]
    assert (finding.status, finding.subject) == ("fail", "0.calls")
    assert "the buffer 0.calls" in finding.message


def test_an_attribute_that_changes_the_next_answer_fails():
    found = judge(Remembers().eval())
    assert statuses(found) == ("pass", "fail", "pass")
    assert found["contract.state"].subject == "history"


def test_random_numbers_fail_with_operator_and_line():
    finding = judge(nn.Sequential(nn.Linear(6, 6), Noise()).eval())["export.random"]
    assert finding.status == "fail"
    assert "nondeterministic" in finding.message
    assert "aten.randn_like" in finding.message
    assert finding.file == HERE.name
    assert "randn_like" in HERE.read_text().splitlines()[finding.line - 1]


def test_functional_dropout_that_forgets_the_mode_is_chance_not_mode():
    assert statuses(judge(FunctionalDropout(always=True).eval())) == ("pass", "pass", "fail")


def test_a_generator_of_its_own_is_chance_too():
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.draw = torch.Generator().manual_seed(3).manual_seed

        def forward(self, x):
            generator = torch.Generator()
            generator.seed()
            return x + torch.rand(x.shape, generator=generator)

    assert statuses(judge(nn.Sequential(Own()).eval())) == ("pass", "pass", "fail")


def test_last_digits_that_threads_shuffle_are_no_chance():
    class Shuffles(nn.Module):
        """Adds in another order at every other call, as atomic additions do."""

        def forward(self, x):
            order = torch.randperm(x.shape[-1])
            return x[..., order] @ torch.ones(x.shape[-1])

    module = Shuffles().eval()
    wide = torch.rand(4, 4096) + 0.1
    assert not torch.equal(module(wide), module(wide))
    assert judge(module, wide)["export.random"].status == "pass"


def test_a_module_that_raises_is_not_judged():
    class Raises(nn.Module):
        def forward(self, x):
            raise ValueError("no")

    found = judge(Raises().eval())
    assert statuses(found) == ("skip", "skip", "skip")
    assert "ValueError: no" in found["contract.state"].message
