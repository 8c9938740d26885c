"""What the steps of one export hand to each other; nothing of it leaves the worker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from onnx_ci.records.cases import Origin
from onnx_ci.records.model import DimSpec

NamedInputs = dict[str, Any]
"""Values by parameter of forward: tensors, numbers, None, and dicts, lists and tuples of them."""


REDRAWS = 2
"""Other values that a made case can be given: drawn anew, and repeated from the export example."""


@dataclass(frozen=True, slots=True)
class Entrypoint:
    """What the user's file gave.

    Attributes:
        module: Fresh from the user's function, in whatever mode it came.
        make_inputs: The short form's; None in the long form without one.
        export_kwargs: The short form's, as torch.onnx.export takes them; empty in the long form.
        file: The user's file, or the imported module's, for messages.
        short: Whether it is the short form.
    """

    module: torch.nn.Module
    make_inputs: Callable[[], list[tuple[str, NamedInputs]]] | None
    export_kwargs: dict[str, Any]
    file: Path
    short: bool


@dataclass(frozen=True, slots=True)
class Call:
    """How forward is called: positional as far as its signature allows, keyword-only parameters by keyword."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Leaf:
    """A tensor (or a frozen Python value) inside a call, in the exporter's order of flattening.

    Attributes:
        path: "images", "batch.images", "states[1]": the parameter, then keys and indices.
        parameter: The parameter of forward that it belongs to.
    """

    path: str
    parameter: str
    value: Any

    @property
    def is_tensor(self) -> bool:
        """Whether it becomes an input of the file; other values are frozen into the graph."""
        return isinstance(self.value, torch.Tensor)


@dataclass(frozen=True, slots=True)
class DeclaredInput:
    """What is declared of one tensor leaf.

    Attributes:
        axes: For each axis a dim name (dynamic), or a size (static).
        auto: Axes whose dim was left to the exporter (Dim.AUTO, Dim.DYNAMIC); their names are made from the path.
        dtype: What production sends, by numpy's name.
    """

    path: str
    axes: list[str | int]
    dtype: str
    auto: frozenset[int] = frozenset()
    low: float | None = None
    high: float | None = None
    values: list[float] | None = None
    nonfinite: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Declared:
    """The declared contract of all inputs: from the config, or read out of the short form's export_kwargs."""

    inputs: list[DeclaredInput]
    dims: dict[str, DimSpec] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunCase:
    """A case before it is written: inputs as forward takes them.

    Attributes:
        problems: Where a user's case contradicts the declaration, a sentence each; `why` tells it too.
        redrawn: Other values of the same sizes, by a number below `REDRAWS`; None for a case whose values must stay.
        given: What the module gave for these inputs, where it was called already: a large module is called once a case.
        advisory: See `Case.advisory`.
        tied: Inputs whose elements were made equal: an answer that hangs on their last digits can't be judged.
    """

    name: str
    origin: Origin
    why: str
    inputs: NamedInputs
    dims: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    redrawn: Callable[[int], NamedInputs] | None = None
    given: Outputs | None = None
    advisory: str = ""
    tied: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Outputs:
    """What one call of the module gave: tensors (or sequences) in the exporter's order of flattening.

    Attributes:
        keys: For each value the dict key or attribute under which the module gave it; "" where there is none.
        error: What the module raised instead, as "Type: message"; then there are no values.
        frames: (file, line) of the calls that led there, the outermost first.
    """

    values: list[Any]
    keys: list[str]
    error: str = ""
    frames: tuple[tuple[str, int], ...] = ()
