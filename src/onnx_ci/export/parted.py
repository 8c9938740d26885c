"""What is said of an export at another example: the same graph, or where the two part and which one is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from onnx_ci.artifact.layout import Artifact
from onnx_ci.export.difference import Difference
from onnx_ci.export.drawn import constants
from onnx_ci.export.rerun import Comparison
from onnx_ci.export.types import RunCase
from onnx_ci.numerics.words import case_text, counted
from onnx_ci.records.result import Finding, Status, finding
from onnx_ci.records.source_map import Origin, SourceMap

RULE = "contract.second-export"


@dataclass(frozen=True, slots=True)
class Attempt:
    """An export at another example: what came of it, compared with the artifact.

    Attributes:
        stopped: Why there is no second graph; "" where there is one.
        difference: Where the graphs part; None where they are the same.
        captured: Whether the captured programs were the same already, and no second graph was made of it.
    """

    case: RunCase
    stopped: str = ""
    difference: Difference | None = None
    origins: SourceMap | None = None
    numbers: Comparison | None = None
    drawn: str = ""
    captured: bool = False

    @property
    def same(self) -> bool:
        """Whether the other example gave the same graph."""
        return not self.stopped and self.difference is None


@dataclass(frozen=True, slots=True)
class Told:
    """The verdicts on attempts, in words.

    Attributes:
        artifact: Of the first export.
        example: The sizes that it was made at.
        moving: The dims that may have other sizes.
    """

    artifact: Artifact
    example: dict[str, int]
    moving: list[str]

    def passed(self, attempt: Attempt, tried: int) -> Finding:
        """The same graph, or already the same program."""
        same = "program" if attempt.captured else "graph"
        data = {"second": attempt.case.dims, "tried": tried, "same": same}
        return finding(RULE, "pass", "", f"an export at {_at(attempt.case)} gives the same {same}", data=data)

    def failed(self, attempt: Attempt) -> Finding:
        """The file that ships gives other numbers than PyTorch at a size."""
        numbers = attempt.numbers
        assert numbers is not None  # asked for before
        first = numbers.wrong[0]
        message = (
            f"{self._parted(attempt)}. In {len(numbers.wrong)} of {counted(numbers.compared, 'case')} the two files "
            f"give other numbers, and the one that ships is not PyTorch's: "
            f"{case_text(first.case.name, first.case.dims)}, {first.text}"
        )
        hint = (
            "A size of the export example was baked into the graph at that line: compute it with tensors, declare "
            "the dim as a number, or export a variant for each size."
        )
        return self._finding("fail", attempt, message, hint)

    def warned(self, attempt: Attempt) -> Finding:
        """Another graph, of which nothing is known to be wrong; or none."""
        if attempt.stopped:
            message = f"the export at {_at(attempt.case)} stops, though the module runs: {attempt.stopped}"
            return self._finding("warn", attempt, message, "The file may hold for the sizes about its example only.")
        numbers = attempt.numbers or Comparison(0, untold="the files were not run")
        said = f"both give the same numbers in {counted(numbers.compared, 'case')}"
        hint = "Nothing is known to be wrong. Look at that line if its size or value is meant to vary with the inputs."
        if numbers.unsettled:
            other = numbers.unsettled[0]
            said = (
                f"the two files give other numbers in {counted(len(numbers.apart), 'case')}, and which is right can't "
                f"be told, since PyTorch's own outputs change from call to call: "
                f"{case_text(other.case.name, other.case.dims)}, {other.text}"
            )
            hint = "Look at that line for a clock, a counter or a random number, and take it as an input."
        elif numbers.apart:
            other = numbers.apart[0]
            said = (
                f"the file that ships gives PyTorch's outputs in {counted(numbers.compared, 'case')}, the other does "
                f"not in {case_text(other.case.name, other.case.dims)}: {other.text}"
            )
        if numbers.untold:
            said += f"; not all could be told: {numbers.untold}"
        return self._finding("warn", attempt, f"{self._parted(attempt)}; {said}", hint)

    def drawn(self, attempt: Attempt) -> list[Finding]:
        """A constant that was drawn at export."""
        assert attempt.difference is not None  # asked for before
        return constants(RULE, attempt.difference.text, attempt.drawn, self._origin(attempt))

    def _parted(self, attempt: Attempt) -> str:
        found = attempt.difference
        assert found is not None  # asked for before
        origin = self._origin(attempt)
        place = f" ({origin.file}:{origin.line})" if origin and origin.file else ""
        inside = f" in {origin.module}" if origin and origin.module else ""
        count = f" ({found.here_nodes} nodes, and {found.there_nodes} there)"
        return f"an export at {_at(attempt.case)} gives another graph{count}: first, {found.text}{inside}{place}"

    def _origin(self, attempt: Attempt) -> Origin | None:
        """Where the first differing node comes from: the shipped graph's, else the other's."""
        found = attempt.difference
        known = self.artifact.source_map().values
        other = attempt.origins.values if attempt.origins else {}
        both = [known.get(found.here or ""), other.get(found.there or "")] if found else []
        return next((one for one in both if one and one.file), next((one for one in both if one), None))

    def _finding(self, status: Status, attempt: Attempt, message: str, hint: str) -> Finding:
        origin = self._origin(attempt) if attempt.difference else None
        numbers = attempt.numbers
        moved = [name for name in self.moving if attempt.case.dims.get(name) != self.example.get(name)]
        data: dict[str, Any] = {"example": self.example, "second": attempt.case.dims}
        if attempt.difference:
            data["difference"] = attempt.difference.text
        if numbers:
            data["apart"] = [one.case.name for one in numbers.apart]
            data["wrong"] = [one.case.name for one in numbers.wrong]
        return finding(
            RULE, status, ", ".join(moved), message, hint=hint, data=data,
            file=origin.file if origin else None, line=origin.line if origin and origin.file else None,
        )  # fmt: skip


def _at(case: RunCase) -> str:
    return ", ".join(f"{name} = {size}" for name, size in case.dims.items())
