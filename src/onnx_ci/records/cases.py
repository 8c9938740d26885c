"""The cases of an artifact: ``cases.json``, beside the tensors of each in ``test_data_set_<n>/``."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from onnx_ci.records.base import record

SCHEMA_VERSION = 1
"""Version of case lists. 1: the first."""

Origin = Literal["user", "example", "boundary", "special"]


@record
class OpenOrder:
    """An axis of an output along which the order is not promised: it is that of a TopK with ``sorted=0``.

    Attributes:
        node: The first output of the TopK: what hangs on the same one is in the same order.
        axis: Of the output, along which the selected lie.
        rows: Axes of the output whose every place has an order of its own.
    """

    node: str
    axis: int
    rows: list[int] = field(default_factory=list)


@record
class CaseOutput:
    """One output of a case as PyTorch gave it.

    Attributes:
        e_torch: relL2 of PyTorch in its own dtype against the oracle; None without an oracle, or for exact dtypes.
        e_unoptimized: relL2 of the unoptimized graph in float64 against the oracle; None where that was not run.
        e_exported: The same of the file as it was exported.
        rounding: What rounding of the constants that the exporter made can do to it in the unoptimized graph, as relL2;
            None where nobody measured it, which is also where `e_unoptimized` left no doubt.
        sway: Of tied values that PyTorch's own answer hangs on, how far an element of it moves where they are a
            millionth apart; None where nobody asked.
        firm: Likewise, whether its NaN and infinities stay where they are: rounding is no excuse for others.
        order: Where no order is promised; None where it is, and where that could not be told.
    """

    name: str
    dtype: str
    shape: list[int]
    e_torch: float | None = None
    e_unoptimized: float | None = None
    e_exported: float | None = None
    rounding: float | None = None
    sway: float | None = None
    firm: bool = False
    order: OpenOrder | None = None


@record
class Case:
    """One named set of input arrays.

    Attributes:
        index: The n of its folder ``test_data_set_<n>``.
        origin: "user": from the config; "example": what the export ran on; "boundary": made from the declared dims;
            "special": of values at which operators part, at the example's sizes.
        why: Why it exists, in a few words: "height at its minimum".
        refused: What the eager module said, when it would not run at this size; such a case has no outputs.
        unoracled: Why there is no float64 form; empty when there is one.
        nondeterministic: Outputs that differ when the eager module is called twice.
        advisory: Why what a case of ours shows is a warning at most; empty where it is judged in full.
        blind: Whether a mask hides all that some query of an attention could see: what comes of it is arbitrary.
    """

    index: int
    name: str
    origin: Origin
    why: str
    dims: dict[str, int] = field(default_factory=dict)
    outputs: list[CaseOutput] = field(default_factory=list)
    refused: str = ""
    unoracled: str = ""
    nondeterministic: list[str] = field(default_factory=list)
    advisory: str = ""
    blind: bool = False

    @property
    def orders(self) -> dict[str, OpenOrder]:
        """By name the outputs along which no order is promised."""
        return {output.name: output.order for output in self.outputs if output.order is not None}

    @property
    def is_special(self) -> bool:
        """Whether its values are no ordinary ones: it says nothing of sizes, time, or rounding in general."""
        return self.origin == "special" or bool(self.advisory)


@record
class BatchIdentity:
    """Cases that are one batch in parts and in another order, and for which outputs PyTorch gives the same rows.

    Attributes:
        dim: The batch's name; empty where there is none, or it can't be split.
        whole: The index of the case with all rows; likewise `parts`, in order, and `permuted`.
        order: Row i of the permuted case is row ``order[i]`` of the whole.
        split: Outputs of the file for which PyTorch's rows of the parts are those of the whole.
        permutes: Outputs for which PyTorch's rows move with the rows of the inputs.
        not_held: Why an output is in neither list; under "" why nothing was tried.
    """

    dim: str = ""
    whole: int | None = None
    parts: list[int] = field(default_factory=list)
    permuted: int | None = None
    order: list[int] = field(default_factory=list)
    split: list[str] = field(default_factory=list)
    permutes: list[str] = field(default_factory=list)
    not_held: dict[str, str] = field(default_factory=dict)


@record
class CaseList:
    """All cases of an artifact, in the order of their folders.

    Attributes:
        batch: What is known of rows that do not depend on each other; None in lists of before it was looked at.
        made: Float constants of the shipped file that are not the module's own, but made by the exporter and rounded to
            the file's dtype; None where that is not known.
    """

    schema_version: int
    cases: list[Case]
    notes: list[str] = field(default_factory=list)
    batch: BatchIdentity | None = None
    made: list[str] | None = None
