"""Training mode, state and chance are found where they matter, and nowhere else."""

from __future__ import annotations

import time
from pathlib import Path
from time import perf_counter

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from onnx_ci.export.checks import mode_and_state_findings
from onnx_ci.export.held import Other
from onnx_ci.export.places import Places
from onnx_ci.export.types import Call

HERE = Path(__file__)
PLACES = Places(HERE.parent, HERE.parent)
X = torch.randn(4, 6, generator=torch.Generator().manual_seed(1))


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


def judge(module, x=X, others=()):
    rng, buffers = torch.get_rng_state(), {name: value.clone() for name, value in module.named_buffers()}
    modes = [part.training for part in module.modules()]
    found = {one.rule: one for one in mode_and_state_findings(module, Call((x,), {}), PLACES, lambda: named(others))}
    assert torch.equal(torch.get_rng_state(), rng)
    assert all(torch.equal(value, buffers[name]) for name, value in module.named_buffers())
    assert [part.training for part in module.modules()] == modes
    assert list(found) == ["export.training-mode", "contract.state", "export.random"]
    return found


def named(others):
    return (Other(f"input {at}", Call((x,), {})) for at, x in enumerate(others))


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


OTHERS = (X * 2 + 1, torch.ones(4, 6), torch.ones(9, 6), torch.ones(2, 6))


class FirstMean(nn.Module):
    """Keeps a statistic of its first call for good, in one of many ways."""

    def __init__(self, how):
        super().__init__()
        self.how, self.mean, self.kept, self.box = how, None, {}, Box()
        self.plain, self.loc = torch.zeros(1), nn.Parameter(torch.zeros(1))
        self.register_buffer("known", torch.zeros(()))
        self.register_buffer("held", torch.zeros(1))

    def forward(self, x):
        return x - getattr(self, f"by_{self.how}")(x.mean())

    def by_attribute(self, mean):
        if self.mean is None:
            self.mean = mean
        return self.mean

    def by_dict(self, mean):
        return self.kept.setdefault("mean", mean)

    def by_object(self, mean):
        if self.box.mean is None:
            self.box.mean = mean
        return self.box.mean

    def by_buffer(self, mean):
        self.held.copy_(torch.where(self.known > 0, self.held, mean))
        self.known.fill_(1)
        return self.held

    def by_tensor(self, mean):
        if not self.plain.any():
            self.plain.fill_(mean)
        return self.plain

    def by_parameter(self, mean):
        if not self.loc.any():
            self.loc.data.fill_(mean)
        return self.loc


class Box:
    mean = None


@pytest.mark.parametrize(
    ("how", "subject"),
    [
        ("attribute", "0.mean"),
        ("dict", "0.kept"),
        ("object", "0.box.mean"),
        ("buffer", "0.known"),
        ("tensor", "0.plain"),
        ("parameter", "0.loc"),
    ],
)
def test_a_statistic_that_the_first_call_keeps_fails(how, subject):
    module = nn.Sequential(FirstMean(how)).eval()
    assert statuses(judge(module)) == ("pass", "pass", "pass"), "the same input can't tell"
    found = judge(module, others=OTHERS[:1])
    assert statuses(found) == ("pass", "fail", "pass")
    assert found["contract.state"].subject == subject
    assert "input 0 gets another answer after the export example" in found["contract.state"].message
    kept = module[0]
    assert (kept.mean, kept.kept, vars(kept.box), kept.plain.item(), kept.loc.item()) == (None, {}, {}, 0, 0)


class Remakes(nn.Module):
    """Makes a table again where the size is another one, or a larger one, and notes what it saw."""

    def __init__(self, grows=False):
        super().__init__()
        self.grows, self.table, self.last, self.calls = grows, None, None, [0]

    def forward(self, x):
        self.last, length = x.shape, x.shape[0]
        self.calls[0] += 1
        if self.table is None or (len(self.table) < length if self.grows else len(self.table) != length):
            self.table = torch.arange(length).float()[:, None]
        return x + self.table[:length]


@pytest.mark.parametrize("grows", [False, True])
def test_a_table_by_size_is_no_state(grows):
    finding = judge(Remakes(grows).eval(), others=OTHERS)["contract.state"]
    assert finding.status == "pass"
    assert "without effect on the next call with input 0, input 1, input 2" in finding.message


def test_a_table_of_the_first_size_fails_at_another():
    class Table(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = None

        def forward(self, x):
            if self.table is None:
                self.table = torch.arange(x.shape[0]).float()[:, None]
            return x + self.table[: x.shape[0]]

    assert judge(Table().eval(), others=OTHERS)["contract.state"].status == "fail"


def test_an_input_that_the_module_refuses_says_nothing_of_state():
    class Picky(FirstMean):
        def forward(self, x):
            assert len(x) == 4
            return super().forward(x)

    assert judge(Picky("attribute").eval(), others=OTHERS[2:])["contract.state"].status == "pass"


def test_chance_is_not_taken_for_state():
    class Both(nn.Module):
        def forward(self, x):
            self.last = x.shape
            generator = torch.Generator()
            generator.seed()
            return x + torch.rand(x.shape, generator=generator)

    assert statuses(judge(Both().eval(), others=OTHERS)) == ("pass", "pass", "fail")


def test_an_output_that_is_a_buffer_is_compared_as_it_was():
    class Gives(Counter):
        def forward(self, x):
            self.calls += 1
            return self.calls

    assert judge(Gives().eval())["contract.state"].status == "fail"


class Switches(nn.Module):
    """Puts a part in training mode on its way, and, if it is tidy, back."""

    def __init__(self, part, tidy=False):
        super().__init__()
        self.part, self.tidy = part, tidy

    def forward(self, x):
        self.part.train()
        y = self.part(x)
        if self.tidy:
            self.part.eval()
        return y


@pytest.mark.parametrize("tidy", [False, True])
@pytest.mark.parametrize("part", [nn.BatchNorm1d(6), nn.Dropout(0.5), FunctionalDropout()], ids=lambda part: str(part))
def test_training_mode_that_forward_itself_sets_fails_at_its_line(part, tidy):
    found = judge(Switches(part, tidy).eval())
    finding = found["export.training-mode"]
    assert statuses(found) == ("fail", "pass", "pass")
    assert finding.subject == "part"
    assert "forward puts part" in finding.message
    assert "self.part.train()" in HERE.read_text().splitlines()[finding.line - 1]


def test_training_mode_that_forward_sets_without_an_effect_only_warns():
    found = judge(Switches(nn.Linear(6, 6)).eval())
    assert statuses(found) == ("warn", "pass", "pass")
    assert "forward puts part (Linear) in training mode, without effect" in found["export.training-mode"].message


def test_a_part_that_forward_puts_in_eval_mode_first_is_in_it():
    class Asleep(nn.Module):
        def __init__(self):
            super().__init__()
            self.drop = nn.Dropout(0.5)

        def forward(self, x):
            return self.drop.eval()(x)

    assert statuses(judge(Asleep())) == ("warn", "pass", "pass")


@pytest.mark.parametrize(
    "read", [lambda: time.time(), lambda: perf_counter(), lambda: time.time_ns() / 1e9], ids=["time", "by name", "ns"]
)
def test_an_answer_that_changes_with_the_clock_is_chance(read):
    class Timed(nn.Module):
        def forward(self, x):
            return x + read() // 3000 % 5

    found = judge(Timed().eval())
    assert statuses(found) == ("pass", "pass", "fail")
    assert "forward reads the clock (time." in found["export.random"].message
    assert "lambda: time.time()" in HERE.read_text().splitlines()[found["export.random"].line - 1]


def test_a_clock_that_only_measures_is_none():
    class Measures(nn.Module):
        def forward(self, x):
            start = time.perf_counter()
            y = x * 2
            self.seconds = time.perf_counter() - start
            return y

    clock = time.perf_counter
    assert statuses(judge(Measures().eval(), others=OTHERS)) == ("pass", "pass", "pass")
    assert time.perf_counter is clock
