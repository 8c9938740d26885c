"""Where a file first goes wrong beside the captured program that it was translated from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx

from onnx_ci.artifact.tensors import Value
from onnx_ci.divergence.dataflow import Dataflow
from onnx_ci.divergence.locate import Inner, Located, Sweep, locate
from onnx_ci.divergence.session import CpuSession, inner_values
from onnx_ci.export.inner import Replay
from onnx_ci.numerics.deviation import FLOOR
from onnx_ci.twin import Twin, amplification


@dataclass(frozen=True, slots=True)
class How:
    """How inner values are made and judged.

    Attributes:
        budget: What a value may err, as a multiple of PyTorch's own error.
        inner: Makes the file's values by name; None runs it on the CPU provider, as it is in the file.
        limit: Of relL2, for values that `inner` makes in float64 (the twin's); None judges by the budget.
        rounding: By name, the relL2 that rounding of the exporter's constants can bring to a value that is in float64.
        custom_ops: Libraries of operators.
    """

    budget: float = 4.0
    inner: Inner | None = None
    limit: float | None = None
    rounding: Callable[[Sequence[str]], Mapping[str, float]] | None = None
    custom_ops: Sequence[Path] = ()


@dataclass(frozen=True, slots=True)
class Rounded:
    """A graph in float64, and its float constants that the exporter made."""

    twin: Twin
    made: list[str]


def in_float64(file: Rounded, feeds: Mapping[str, Value], *others: Rounded) -> How:
    """The values of a file's twin; each may err by what the rounding of the exporter's constants brings to it.

    Args:
        file: The file's twin.
        feeds: Its inputs.
        others: Graphs with values of the same names: what was folded in the file is there to be rounded in them.

    Raises:
        Unoracled: When values are asked for, and an operator has no path in float64.
    """
    given = {name: value for name, value in feeds.items() if not isinstance(value, dict)}

    def inner(names: Sequence[str]) -> Mapping[str, Value]:
        ran = file.twin.run(given, keep=names)
        return {name: value for name, value in (ran.kept | ran.outputs).items() if name in names}

    def rounding(names: Sequence[str]) -> Mapping[str, float]:
        measured = [amplification(one.twin, given, one.made, keep=names) for one in (file, *others)]
        return {name: max(one.get(name, 0.0) for one in measured) for name in names}

    return How(inner=inner, limit=FLOOR, rounding=rounding)


def diverge(
    replay: Replay, model: Path, feeds: Mapping[str, Value], outputs: Sequence[str], how: How | None = None
) -> Located | None:
    """The first value that goes wrong on the way to these outputs; None where all that can be seen is within budget.

    Args:
        replay: The captured program on the same inputs. The file may be the one that it became, or any with its names.
        model: The file.
        feeds: The inputs, by the file's names.
        outputs: Names of outputs.
        how: See there.

    Raises:
        NotReplayed: The captured program does not run on these inputs.
        Exception: ONNX Runtime's own, which have no common base.
    """
    how = how or How()
    proto = onnx.load(str(model), load_external_data=False)

    def opened(raw: bytes) -> CpuSession:
        return CpuSession(raw, folder=model.parent, optimized=False, custom_ops=how.custom_ops)

    def inner(names: Sequence[str]) -> Mapping[str, Value]:
        return inner_values(proto, opened, feeds, names)

    sweep = Sweep(
        dataflow=Dataflow(proto),
        reference=replay,
        feeds=feeds,
        inner=how.inner or inner,
        folder=model.parent,
        allowed=how.budget,
        limit=how.limit,
        rounding=how.rounding,
        open_part=opened,
    )
    return locate(sweep, outputs)
