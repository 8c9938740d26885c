from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from onnx_ci.numerics.parity import CaseComparison, compare_case, judge
from onnx_ci.records.cases import Case, CaseOutput, Origin
from onnx_ci.records.model import ParitySpec
from onnx_ci.records.result import Finding, OutputFigures


class Bench:
    """Compares cases and judges them, with as few words as a test can have."""

    def __init__(self) -> None:
        self.comparisons: list[CaseComparison] = []
        self.spec = ParitySpec()

    def add(
        self,
        expected: Mapping[str, Any],
        actual: Mapping[str, Any],
        oracle: Mapping[str, Any] | None = None,
        *,
        origin: Origin = "user",
        unsure: tuple[str, ...] = (),
        dims: Mapping[str, int] | None = None,
        advisory: str = "",
        outputs: tuple[CaseOutput, ...] = (),
        blind: bool = False,
        **more: Any,
    ) -> CaseComparison:
        index = len(self.comparisons)
        case = Case(
            index=index,
            name=f"case{index}",
            origin=origin,
            why="a test",
            dims=dict(dims or {}),
            nondeterministic=list(unsure),
            advisory=advisory,
            outputs=list(outputs),
            blind=blind,
        )
        self.comparisons.append(compare_case(case, expected, actual, oracle, self.spec, **more))
        return self.comparisons[-1]

    def judge(self, *, today: str | None = None) -> tuple[dict[str, Finding], list[OutputFigures]]:
        """Findings by rule; a test that expects several of one rule calls `all_findings`."""
        found, figures = judge(self.comparisons, self.spec, today=today)
        return {one.rule: one for one in found}, figures

    def all_findings(self) -> list[Finding]:
        return judge(self.comparisons, self.spec)[0]

    def statuses(self) -> dict[str, str]:
        """Only what is not a pass."""
        return {one.rule: one.status for one in self.all_findings() if one.status != "pass"}


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20)
