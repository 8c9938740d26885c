"""The first pass of parity: the outputs of one case into figures that need no arrays any more.

What a float output may err is known only when all cases were seen (`parity.judge`); a case's arrays can go at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from onnx_ci.numerics.comparison import CaseComparison, OutputComparison
from onnx_ci.numerics.dtypes import Value, arrays_of, finite, float_dtype, real_parts, widen
from onnx_ci.numerics.exact import CaseContext
from onnx_ci.numerics.layers import compare_outputs
from onnx_ci.numerics.ties import Pairs
from onnx_ci.numerics.unordered import aligned
from onnx_ci.records.cases import Case
from onnx_ci.records.model import ParitySpec


def not_run(case: Case, message: str) -> CaseComparison:
    """A case that the runtime refused or that stopped in it: a promise broken, since PyTorch did run it."""
    return CaseComparison(case=case, outputs=[], stopped=message or "no message")


def compare_case(
    case: Case,
    expected: Mapping[str, Value],
    actual: Mapping[str, Value],
    oracle: Mapping[str, Value] | None,
    spec: ParitySpec,
    *,
    again: Mapping[str, Value] | None = None,
    unit: float = 1.0,
    inner: Mapping[str, Pairs] | None = None,
) -> CaseComparison:
    """Compares the outputs of one case, by name.

    Args:
        case: Its description.
        expected: From PyTorch in the deployment dtype.
        actual: From the target.
        oracle: From PyTorch in float64, by the same names; None, or an output missing in it, where there is none.
        spec: For the budget, the manual tolerances and `ties`.
        again: From a second run of the same session; the worse of the two is kept, output by output.
        unit: The largest magnitude among the case's inputs (`largest_magnitude`); it scales the floors of outputs
            that are zero but for rounding.
        inner: By exact output, the scores inside the graph that it was chosen by.
    """
    problem = _names_problem(list(expected), list(actual))
    actual = aligned(case.orders, expected, actual)
    oracle = None if oracle is None else aligned(case.orders, expected, oracle)
    shared = [name for name in expected if name in actual]
    first = compare_outputs(shared, expected, actual, oracle or {}, _context(case, oracle, spec, unit, inner))
    if again is None:
        return CaseComparison(case=case, outputs=first, names=problem)
    again = aligned(case.orders, expected, again)
    if list(again) != list(actual):
        problem = problem or "the second run gave other outputs than the first"
        return CaseComparison(case=case, outputs=first, names=problem)
    changed = {name for name in shared if not same_bits(actual[name], again[name])}
    if not changed:
        return CaseComparison(case=case, outputs=first, names=problem)
    second = compare_outputs(shared, expected, again, oracle or {}, _context(case, oracle, spec, unit, inner))
    outputs = [item for name in shared for item in _worse(name, first, second, name in changed)]
    return CaseComparison(case=case, outputs=outputs, names=problem)


def largest_magnitude(values: Mapping[str, Value]) -> float:
    """The largest finite magnitude among float inputs: what `unit` wants. 1.0 when there is none, or all are small."""
    largest = 1.0
    for value in values.values():
        for array in arrays_of(value):
            if array.size and float_dtype(array.dtype) is not None:
                real = real_parts(array)
                kept = real[finite(real)]
                largest = max(largest, float(np.abs(widen(kept)).max())) if kept.size else largest
    return largest


def same_bits(left: Value, right: Value) -> bool:
    """Whether two values are equal bit for bit; NaN equals the same NaN."""
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(same_bits(a, b) for a, b in zip(left, right, strict=True))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same_bits(left[key], right[key]) for key in left)
    if not isinstance(left, np.ndarray) or not isinstance(right, np.ndarray):
        return left is None and right is None
    if left.dtype != right.dtype or left.shape != right.shape:
        return False
    if left.dtype.hasobject:
        return bool((left == right).all())
    a, b = (np.ascontiguousarray(array).reshape(-1).view(np.uint8) for array in (left, right))
    return bool(np.array_equal(a, b))


def _context(
    case: Case,
    oracle: Mapping[str, Value] | None,
    spec: ParitySpec,
    unit: float,
    inner: Mapping[str, Pairs] | None,
) -> CaseContext:
    why = case.unoracled or ("no oracle was stored" if oracle is None else "")
    unsure = frozenset(case.nondeterministic)
    return CaseContext(spec=spec, unit=unit, no_oracle=why, unsure=unsure, inner=inner or {})


def _names_problem(expected: list[str], actual: list[str]) -> str:
    if not expected:
        return "PyTorch gave no output at all"
    missing = [name for name in expected if name not in actual]
    added = [name for name in actual if name not in expected]
    parts = [f"{', '.join(missing)} missing"] if missing else []
    parts += [f"{', '.join(added)} not expected"] if added else []
    return f"{len(expected)} expected, {len(actual)} given: {'; '.join(parts)}" if parts else ""


def _worse(
    name: str, first: list[OutputComparison], second: list[OutputComparison], changed: bool
) -> list[OutputComparison]:
    """The worse run of one output, all its items together."""
    one, two = ([item for item in run if item.base == name] for run in (first, second))
    worse = two if max(map(_badness, two)) > max(map(_badness, one)) else one
    return [replace(item, varies=True) for item in worse] if changed else worse


def _badness(item: OutputComparison) -> tuple[float, float, float]:
    if item.fault is not None:
        return (2.0 if item.fault.status == "fail" else 0.5, 0.0, 0.0)
    if item.exact is not None:
        return (1.0 if item.exact.differ else 0.0, float(item.exact.differ), float(item.exact.explained))
    return (0.0, item.floats.e_runtime, item.floats.max_abs) if item.floats else (0.0, 0.0, 0.0)
