"""The sizes that a dim may have: as the config declares them, and as a capture holds for them."""

from __future__ import annotations

from dataclasses import dataclass

from onnx_ci.records.model import DimSpec


@dataclass(frozen=True, slots=True)
class Range:
    """The sizes of a dim, both ends included; `most` None is without end."""

    least: int
    most: int | None

    def __contains__(self, size: int) -> bool:
        return self.least <= size and (self.most is None or size <= self.most)

    def __str__(self) -> str:
        if self.least == self.most:
            return f"only {self.least}"
        return f"{self.least}..{self.most}" if self.most is not None else f"{self.least} and more"


def declared_range(spec: DimSpec | None) -> Range:
    """The range that the config states; without one, every size from 1 on."""
    if spec is None:
        return Range(1, None)
    return Range(spec.min if spec.min is not None else 1, spec.max)


def is_declared(spec: DimSpec | None) -> bool:
    """Whether the config states a range, at either end."""
    return spec is not None and (spec.min is not None or spec.max is not None)
