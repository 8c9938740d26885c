"""The layers of one output in one case: structure, dtype, shape, non-finite places, values; the first to fail ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from onnx_ci.numerics import figures, ties
from onnx_ci.numerics.budget import element_limit, judged_by
from onnx_ci.numerics.comparison import ExactFigures, Fault, OutputComparison
from onnx_ci.numerics.dtypes import (
    Array,
    Mask,
    Value,
    dtype_name,
    finite,
    float_dtype,
    place,
    real_parts,
    widen,
)
from onnx_ci.numerics.exact import CaseContext, compare_exact
from onnx_ci.numerics.words import at_text, counted
from onnx_ci.records.model import Tolerance

Triple = tuple[str, str, Value, Value, Value]
_EDGE = 10  # how many floors below its largest number a dtype may overflow on one side and not on the other


def compare_outputs(
    names: list[str],
    expected: Mapping[str, Value],
    actual: Mapping[str, Value],
    oracle: Mapping[str, Value],
    context: CaseContext,
) -> list[OutputComparison]:
    """Compares outputs by name; exact ones first, since an explained flip excuses the floats that it chose."""
    triples = [t for name in names for t in items(name, name, expected[name], actual[name], oracle.get(name))]
    for output, _, want, got, _ in triples:
        if isinstance(want, np.ndarray) and isinstance(got, np.ndarray) and _alike(want, got) and _is_float(want):
            context.scores[output] = ties.ScorePair(expected=real_parts(want), actual=real_parts(got))
    done: dict[int, OutputComparison] = {}
    for floats in (False, True):
        for at, triple in enumerate(triples):
            if (isinstance(triple[2], np.ndarray) and _is_float(triple[2])) is floats:
                done[at] = _compare(*triple, context)
    return [done[at] for at in range(len(triples))]


def items(output: str, base: str, want: Value, got: Value, truth: Value) -> Iterator[Triple]:
    """The tensors of an output: a sequence is taken apart, and a map becomes one vector, where both sides fit."""
    if isinstance(want, list) and isinstance(got, list) and len(want) == len(got) and want:
        truths = truth if isinstance(truth, list) and len(truth) == len(want) else [None] * len(want)
        for at, (one, other, third) in enumerate(zip(want, got, truths, strict=True)):
            yield from items(f"{output}[{at}]", base, one, other, third)
    elif isinstance(want, dict) and isinstance(got, dict) and want.keys() == got.keys() and want:
        fits = isinstance(truth, dict) and truth.keys() == want.keys()
        yield output, base, _vector(want, want), _vector(got, want), _vector(truth, want) if fits else None
    else:
        yield output, base, want, got, truth


def _vector(value: Value, keys: Iterable[object]) -> Value:
    """The values of a map in the order of the keys."""
    return np.stack([np.asarray(value[key]) for key in keys]) if isinstance(value, dict) else None


def _compare(output: str, base: str, want: Value, got: Value, truth: Value, context: CaseContext) -> OutputComparison:
    shape = list(want.shape) if isinstance(want, np.ndarray) else []
    unsure = base in context.unsure

    def result(**more: object) -> OutputComparison:
        return OutputComparison(
            output=output,
            base=base,
            dtype=dtype_name(want),
            shape=shape,
            given=list(got.shape) if isinstance(got, np.ndarray) else None,
            unsure=unsure,
            **more,  # type: ignore[arg-type]
        )

    if not isinstance(want, np.ndarray) or not isinstance(got, np.ndarray):
        fault = structure_fault(want, got)
        return result(fault=fault) if fault else result(exact=_nothing_to_compare(want))
    fault = _dtype(want, got) or _shape(want, got, truth)
    if fault:
        return result(fault=fault)
    oracle = truth if isinstance(truth, np.ndarray) and truth.shape == want.shape else None
    if not _is_float(want):
        return result(exact=compare_exact(base, want, got, oracle, context))
    nans = int(np.isnan(real_parts(want)).sum())
    fault = nonfinite_fault(want, got, oracle)
    if fault:
        return result(fault=fault, nans=nans)
    return _floats(result(nans=nans), want, got, oracle, truth, context)


def structure_fault(want: Value, got: Value) -> Fault | None:
    """Where one side is a tensor and the other is none, or a sequence or a map of other length or keys."""
    kinds = _kind(want), _kind(got)
    if kinds[0] != kinds[1]:
        return Fault(rule="parity.structure", text=f"expected {kinds[0]}, got {kinds[1]}")
    if isinstance(want, dict) and isinstance(got, dict) and want.keys() != got.keys():
        missing = next(key for key in want if key not in got)
        added = next(key for key in got if key not in want)
        return Fault(rule="parity.structure", text=f"the map has no key {missing!r}, and {added!r} instead")
    return None


def _kind(value: Value) -> str:
    if value is None:
        return "an empty optional"
    if isinstance(value, dict):
        return f"a map of {counted(len(value), 'key')}"
    return f"a sequence of {len(value)}" if isinstance(value, list) else "a tensor"


def _nothing_to_compare(want: Value) -> ExactFigures:
    kind = "optionals" if want is None else "maps" if isinstance(want, dict) else "sequences"
    note = f"both are empty {kind}"
    return ExactFigures(count=0, differ=0, explained=0, at=[], expected="", actual="", max_abs=None, note=note)


def _dtype(want: Array, got: Array) -> Fault | None:
    names = dtype_name(want), dtype_name(got)
    return None if names[0] == names[1] else Fault(rule="parity.dtype", text=f"expected {names[0]}, got {names[1]}")


def _shape(want: Array, got: Array, truth: Value) -> Fault | None:
    if want.shape == got.shape:
        return None
    text = f"expected {_dims(want)}, got {_dims(got)}"
    if isinstance(truth, np.ndarray) and truth.ndim == want.ndim == got.ndim and truth.shape != want.shape:
        text += f"; PyTorch in float64 gives {_dims(truth)}, so this size hangs on rounding"
        return Fault(rule="parity.shape", text=text, status="warn")
    return Fault(rule="parity.shape", text=text)


def _dims(array: Array) -> str:
    return f"[{', '.join(map(str, array.shape))}]"


def _alike(want: Array, got: Array) -> bool:
    return want.shape == got.shape and want.dtype == got.dtype


def _is_float(array: Array) -> bool:
    return float_dtype(array.dtype) is not None


def nonfinite_fault(want: Array, got: Array, oracle: Array | None) -> Fault | None:
    """NaN and ±Inf must stand at the same places with the same signs.

    One exception: at the very end of a dtype's range one side may overflow and the other just not.
    """
    want, got = real_parts(want), real_parts(got)
    inside = finite(want), finite(got)
    if bool(inside[0].all()) and bool(inside[1].all()):
        return None
    nans = np.isnan(want) != np.isnan(got)
    with np.errstate(invalid="ignore"):
        signs = (inside[0] != inside[1]) | (~inside[0] & ~inside[1] & (widen(want) != widen(got)))
    wrong = nans | (signs & ~np.isnan(want) & ~np.isnan(got) & ~_at_the_edge(want, got))
    count = int(wrong.sum())
    if not count:
        return None
    at = int(wrong.reshape(-1).argmax())
    values = [float(widen(array.reshape(-1)[at : at + 1])[0]) for array in (want, got)]
    text = f"{count} of {want.size} places; first{at_text(place(at, want.shape))}: "
    text += f"expected {values[0]:.7g}, got {values[1]:.7g}"
    if oracle is not None:
        text += f" (in float64: {float(widen(real_parts(oracle).reshape(-1)[at : at + 1])[0]):.7g})"
    return Fault(rule="parity.nonfinite", text=text)


def _at_the_edge(want: Array, got: Array) -> Mask:
    kind = float_dtype(want.dtype)
    if kind is None or want.dtype.kind != "f" or want.dtype.name.startswith("float8_"):
        return np.zeros(want.shape, np.bool_)
    edge = float(np.finfo(want.dtype).max) * (1 - _EDGE * kind.floor)
    a, b = widen(want), widen(got)
    return np.asarray((np.abs(a) >= edge) & (np.abs(b) >= edge) & (np.sign(a) == np.sign(b)), np.bool_)


def _floats(
    item: OutputComparison, want: Array, got: Array, oracle: Array | None, truth: Value, context: CaseContext
) -> OutputComparison:
    kind = float_dtype(want.dtype)
    assert kind is not None  # `_is_float` said so
    kind, allowed = judged_by(kind, context.spec, item.base)
    left_out = chosen_by_flips(want, context.flips)
    why = "" if oracle is not None else context.no_oracle or _why_no_oracle(truth, want)
    want, got = real_parts(want), real_parts(got)
    oracle = None if oracle is None else real_parts(oracle)
    if left_out is not None and left_out.shape != want.shape:
        left_out = np.repeat(left_out[..., None], 2, axis=-1)
    found = figures.measure(got, want, oracle, leave_out=left_out, unit=context.unit)
    limit = element_limit(found, kind, allowed)
    reference = want if oracle is None else oracle
    beyond = figures.elements_beyond(got, reference, limit, left_out) if not found.max_abs <= limit else 0.0
    manual = context.spec.outputs.get(item.base)
    return replace(
        item,
        floats=found,
        unoracled=why,
        beyond=beyond,
        left_out=0 if left_out is None else int(left_out.sum()),
        over_default=None if oracle is not None else _over(got, want, kind.rtol, kind.atol * found.peak, left_out),
        over_manual=None if manual is None else _over_manual(got, want, manual, left_out),
    )


def chosen_by_flips(want: Array, flips: list[Mask]) -> Mask | None:
    """Elements that an explained flip chose: the places of every mask whose shape is a prefix of this one's."""
    fitting = [mask for mask in flips if mask.ndim and mask.shape == want.shape[: mask.ndim] and mask.any()]
    if not fitting:
        return None
    out = np.zeros(want.shape, np.bool_)
    for mask in fitting:
        out |= mask.reshape(mask.shape + (1,) * (want.ndim - mask.ndim))
    return out


def _why_no_oracle(truth: Value, want: Array) -> str:
    if isinstance(truth, np.ndarray):
        return f"in float64 the output has another shape: {_dims(truth)} instead of {_dims(want)}"
    return "no float64 form of this output"


def _over(got: Array, want: Array, rtol: float, atol: float, left_out: Mask | None) -> float:
    """The largest of ``|actual - expected| / (atol + rtol * |expected|)``: above 1 something is not allowed."""
    keep = finite(got) & finite(want)
    if left_out is not None:
        keep &= ~left_out
    if not keep.any():
        return 0.0
    wide = widen(want[keep])
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        apart = np.abs(widen(got[keep]) - wide)
        over = np.where(apart == 0.0, 0.0, apart / (atol + rtol * np.abs(wide)))
    return float(np.nan_to_num(over, nan=np.inf).max())


def _over_manual(got: Array, want: Array, manual: Tolerance, left_out: Mask | None) -> float:
    return _over(got, want, manual.rtol, manual.atol, left_out)
