"""Whether what forward keeps changes a later answer: ``contract.state``. A file answers each call like the first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from onnx_ci.export import seeded, state
from onnx_ci.export.agreement import Difference, differ
from onnx_ci.export.kept import Kept
from onnx_ci.export.types import Call, Outputs
from onnx_ci.numerics.words import some
from onnx_ci.records.result import Finding, finding

RULE = "contract.state"
_MOST_OTHERS = 3


@dataclass(frozen=True, slots=True)
class Other:
    """Another input than the example, and how a message names it."""

    named: str
    call: Call


@dataclass(frozen=True, slots=True)
class Written:
    """What forward wrote to; false where it wrote nothing that can be seen."""

    buffers: list[str]
    attributes: list[str]

    @classmethod
    def of(cls, kept: Kept) -> Written:
        """What was written since it was read."""
        return cls(kept.written(), kept.changed())

    def __bool__(self) -> bool:
        return bool(self.buffers or self.attributes)

    @property
    def first(self) -> str:
        """The first one's name."""
        return next(iter([*self.buffers, *self.attributes]), "")

    def __str__(self) -> str:
        return some(
            [f"the buffer {name}" for name in self.buffers] or [f"the attribute {name}" for name in self.attributes]
        )


def repeats(module: torch.nn.Module, call: Call, first: Outputs) -> bool:
    """Whether a call from the same state gives the same: then a difference after a call is the state's."""
    with state.preserved(module, weights=True):
        return not differ(first, seeded.run(module, call))


def judge(module: torch.nn.Module, call: Call, written: Written, others: Callable[[], Iterator[Other]]) -> Finding:
    """The verdict on a module that answers a second call with the example like the first.

    What a first call keeps for good shows only with another input: a statistic, a table of the first sizes. Where
    nothing was written there is nothing to look for, and the module is not called again.
    """
    if not written:
        return finding(RULE, "pass", "", "forward keeps no state")
    tried = []
    for other in others():
        difference = _carried(module, call, other.call)
        if difference:
            return failed(written, f"{other.named} gets another answer after the export example ({difference})")
        if difference is not None:
            tried.append(other.named)
        if len(tried) == _MOST_OTHERS:
            break
    beside = f" with {some(tried)}" if tried else " with the same input"
    return finding(RULE, "pass", "", f"forward writes {written}, without effect on the next call{beside}")


def failed(written: Written, effect: str) -> Finding:
    """The finding on a module whose answer hangs on the calls before."""
    hint = "The file keeps no state: take it as an input and return it as an output, or compute it in every call."
    return finding(RULE, "fail", written.first, f"forward writes {written}, and {effect}", hint=hint)


def _carried(module: torch.nn.Module, call: Call, other: Call) -> Difference | None:
    """How the answer to another input differs after the example's call; None where the module takes no such input."""
    with state.preserved(module, weights=True):
        fresh = seeded.run(module, other)
    if fresh.error:
        return None
    with state.preserved(module, weights=True):
        seeded.run(module, call)
        later = seeded.run(module, other)
    difference = differ(fresh, later)
    return difference if not difference or repeats(module, other, fresh) else Difference()
