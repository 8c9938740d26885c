"""Calls are bound, named and flattened as torch.export does it."""

from __future__ import annotations

import dataclasses
import warnings
from collections import OrderedDict, namedtuple

import pytest
import torch
from torch import nn
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from onnx_ci.errors import OnnxCiError
from onnx_ci.export import arguments
from onnx_ci.export.types import Call

Pair = namedtuple("Pair", "left right")


@dataclasses.dataclass
class Batch:
    images: torch.Tensor
    sizes: list[torch.Tensor]
    mask: torch.Tensor | None = None


class Takes(nn.Module):
    def forward(self, ids, mask=None, segment=None, *, scale=1.0): ...


class TakesMore(nn.Module):
    def forward(self, first, /, second=2, *rest, flag, **more): ...


def test_positional_parameters_are_given_by_position_and_the_others_by_keyword():
    call = arguments.bind(Takes(), {"scale": 2.0, "mask": 1, "ids": 0})
    assert call == Call((0, 1), {"scale": 2.0})


def test_after_a_gap_the_default_stays_out_of_the_call():
    assert arguments.bind(Takes(), {"segment": 2, "ids": 0}) == Call((0,), {"segment": 2})


def test_star_arguments_follow_the_defaults_before_them():
    call = arguments.bind(TakesMore(), {"first": 1, "rest": (5, 6), "flag": True, "more": {"a": 7}, "b": 8})
    assert call == Call((1, 2, 5, 6), {"flag": True, "a": 7, "b": 8})


def test_an_unknown_name_is_refused_with_the_near_one():
    with pytest.raises(OnnxCiError, match="no parameter maks") as caught:
        arguments.bind(Takes(), {"ids": 0, "maks": 1})
    assert caught.value.hint == "Did you mean mask?"


def test_a_missing_parameter_is_named():
    with pytest.raises(OnnxCiError, match="no value is given for ids"):
        arguments.bind(Takes(), {"mask": 1})


def test_leaves_stand_in_the_order_in_which_torch_flattens_the_call():
    tensors = [torch.full((1,), float(at)) for at in range(7)]
    inputs = {
        "more": {"z": tensors[6], "y": "text"},
        "first": Batch(tensors[0], [tensors[1], tensors[2]]),
        "rest": ({"b": tensors[3], "a": None}, Pair(tensors[4], 5)),
        "flag": OrderedDict(on=tensors[5]),
        "second": 1,
    }
    leaves = arguments.leaves(TakesMore(), inputs)
    call = arguments.bind(TakesMore(), inputs)
    assert [leaf.value for leaf in leaves] == pytree.tree_leaves((call.args, call.kwargs))
    assert [leaf.path for leaf in leaves if leaf.is_tensor] == [
        "first.images",
        "first.sizes[0]",
        "first.sizes[1]",
        "rest[0].b",
        "rest[1].left",
        "flag.on",
        "more.z",
    ]
    assert {leaf.path: leaf.value for leaf in leaves if not leaf.is_tensor} == {
        "second": 1,
        "rest[0].a": None,
        "rest[1].right": 5,
        "more.y": "text",
    }
    assert {leaf.parameter for leaf in leaves} == {"first", "second", "rest", "flag", "more"}


def test_rebuilding_keeps_the_nesting():
    inputs = {"batch": Batch(torch.zeros(1), [torch.zeros(2)]), "states": (Pair(1, None), [2])}
    again = arguments.rebuild(inputs, lambda path, leaf: path)
    assert again == {
        "batch": Batch("batch.images", ["batch.sizes[0]"]),
        "states": (Pair("states[0].left", "states[0].right"), ["states[1][0]"]),
    }


def test_a_call_leaves_its_inputs_alone_and_makes_no_gradients():
    class Writes(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(2))

        def forward(self, x):
            return x.add_(1) * self.weight

    x = torch.zeros(2)
    (value,) = arguments.call(Writes(), Call((x,), {})).values
    assert torch.equal(x, torch.zeros(2))
    assert value.tolist() == [1.0, 1.0]
    assert not value.requires_grad


def test_outputs_keep_the_names_under_which_the_module_gave_them():
    class Gives(nn.Module):
        def forward(self, x):
            return {"scores": x, "boxes": [x, None, x]}, Pair(x, x), Batch(x, [x])

    outputs = arguments.call(Gives(), Call((torch.ones(1),), {}))
    assert outputs.keys == ["scores", "boxes[0]", "boxes[2]", "left", "right", "images", "sizes[0]"]


def test_outputs_of_a_tuple_have_no_names():
    class Gives(nn.Module):
        def forward(self, x):
            return (x, (x, {"same": x}), {"same": x})

    assert arguments.call(Gives(), Call((torch.ones(1),), {})).keys == ["", "", "", ""]


def test_outputs_registered_without_key_names_still_have_their_keys():
    class Output(OrderedDict):
        """As transformers registers its outputs."""

    pytree.register_pytree_node(
        Output,
        lambda value: (list(value.values()), list(value)),
        lambda values, keys: Output(zip(keys, values, strict=True)),
    )

    class Gives(nn.Module):
        def forward(self, x):
            return Output(logits=x, states=(x, x))

    assert arguments.call(Gives(), Call((torch.ones(1),), {})).keys == ["logits", "states[0]", "states[1]"]


@pytest.mark.parametrize("error", [ValueError("too small"), SystemExit(3)])
def test_what_forward_raises_is_the_error_and_there_are_no_values(error):
    class Raises(nn.Module):
        def forward(self, x):
            raise error

    outputs = arguments.call(Raises(), Call((torch.ones(1),), {}))
    assert outputs.values == []
    assert outputs.error == f"{type(error).__name__}: {error}"


def test_a_dataclass_that_nobody_registered_can_be_exported_after_it_was_seen():
    @dataclasses.dataclass
    class Fresh:
        x: torch.Tensor

    class Uses(nn.Module):
        def forward(self, batch):
            return batch.x * 2

    call = arguments.bind(Uses(), {"batch": Fresh(torch.ones(3))})
    arguments.leaves(Uses(), {"batch": call.args[0]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own deprecations while it traces
        program = torch.export.export(Uses(), call.args)
    assert len(program.graph_signature.user_inputs) == 1


class _Watch(TorchDispatchMode):
    """Knows nothing of control flow, as most watches."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class Choosing(torch.nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))


class Counting(torch.nn.Module):
    def forward(self, x):
        until = lambda at, x: at < 3  # noqa: E731 - as the operator takes it
        return torch.while_loop(until, lambda at, x: (at + 1, x * 2), (torch.tensor(0), x))[1]


@pytest.mark.parametrize(("module", "expected"), [(Choosing(), 2.0), (Counting(), 8.0)])
def test_control_flow_that_failed_under_a_watch_runs_afterwards(module, expected):
    given = Call((torch.ones(3),), {})
    with _Watch():
        assert arguments.call(module, given).error
    after = arguments.call(module, given)
    assert not after.error
    assert after.values[0].tolist() == [expected] * 3
