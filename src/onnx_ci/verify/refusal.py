"""Stage contract: sizes outside of it are refused, a fixed one by the runtime and a range by the validator.

The validator is the one that a service imports (`onnx_ci.runtime`), made from the artifact's own contract.json.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from onnx_ci.records.contract import Contract
from onnx_ci.records.result import Finding, finding
from onnx_ci.runtime import Validator, sizes
from onnx_ci.runtime.dtypes import kind_of
from onnx_ci.runtime.sizes import Axis, Derived, Fixed, Named
from onnx_ci.verify import dims, signature
from onnx_ci.verify.session import RuntimeFault, Session

MOST_BYTES = 256 << 20
"""Of zeros that a session is fed with; they are refused before anything is computed."""
_MOST_ELEMENTS = 1 << 56
_SHOWN = 3
_HINT = "Report it to onnx-ci: a contract that lets pass what it should refuse protects no service."
Shapes = dict[str, list[int]]


def judge(model: onnx.ModelProto, contract: Contract, session: Session | str) -> list[Finding]:
    """Sizes just outside of what the contract allows, one at a time, all else at its smallest.

    Args:
        model: The file.
        contract: What is promised of it.
        session: An open one, or why there is none.
    """
    axes = {
        item.name: [sizes.axis_of(size, contract.dims) for size in item.shape or []]
        for item in contract.inputs
        if item.shape is not None
    }
    inside = _shapes(axes, _smallest(axes, contract))
    if (
        inside is None
        or not _can_be(inside)
        or any(kind_of(item.dtype).sequence or not item.dtype for item in contract.inputs)
    ):
        message = "not tried: an input is a list, of unknown dtype, or of a size that can't be computed from the dims"
        return [finding("contract.refusal", "skip", "", message)]
    return [*_ranges(contract, axes, inside), *_fixed_sizes(model, contract, axes, inside, session)]


@dataclass(frozen=True, slots=True)
class _Trial:
    """One size outside: of a dim, or of an axis of an input."""

    what: str
    size: int
    shapes: Shapes
    input: str = ""
    axis: int = 0


def _ranges(contract: Contract, axes: Mapping[str, Sequence[Axis]], inside: Shapes) -> list[Finding]:
    validator = Validator(contract)
    problems = validator.problems(_stand_ins(contract, inside))
    if problems:
        message = f"the validator refuses the smallest sizes that the contract allows: {problems[0]}"
        return [finding("contract.refusal", "fail", problems[0].dim or problems[0].input, message, hint=_HINT)]
    trials = list(_outside(contract, axes))
    passed = [trial for trial in trials if not validator.problems(_stand_ins(contract, trial.shapes))]
    found = [
        finding(
            "contract.refusal",
            "fail",
            trial.what,
            f"the validator takes {trial.what} = {trial.size}, which lies outside of {_range(trial.what, contract)}",
            hint=_HINT,
        )
        for trial in passed
    ]
    if found or not trials:
        return found
    message = f"the validator for services refuses what lies outside the ranges: {_listed(trials)}"
    return [finding("contract.refusal", "pass", "", message)]


def _outside(contract: Contract, axes: Mapping[str, Sequence[Axis]]) -> Iterator[_Trial]:
    """Each dim that stands on an axis by itself: below its least size, above its largest, between its multiples."""
    plain = {axis.name: axis.dim for shape in axes.values() for axis in shape if isinstance(axis, Named)}
    smallest = _smallest(axes, contract)
    for name, dim in plain.items():
        wanted = [dim.min - 1]
        wanted += [dim.max + 1] if dim.max is not None else []
        wanted += [smallest[name] + 1] if dim.multiple_of > 1 else []
        for size in wanted:
            shapes = _shapes(axes, {**smallest, name: size})
            if size >= 0 and not sizes.fits(size, dim) and shapes is not None and _can_be(shapes):
                yield _Trial(name, size, shapes)


def _can_be(shapes: Shapes) -> bool:
    """Whether an address space could hold such arrays, and numpy so much as name them."""
    return all(math.prod(shape) <= _MOST_ELEMENTS for shape in shapes.values())


def _range(name: str, contract: Contract) -> str:
    return sizes.allowed(sizes.range_of(name, contract.dims))


def _fixed_sizes(
    model: onnx.ModelProto,
    contract: Contract,
    axes: Mapping[str, Sequence[Axis]],
    inside: Shapes,
    session: Session | str,
) -> list[Finding]:
    trials = list(_off_by_one(axes, inside))
    if not trials:
        return []
    in_file = {item.name: item for item in signature.read(model).inputs}
    reason = _why_not(contract, in_file, inside, session)
    if reason or isinstance(session, str):
        return [finding("contract.refusal", "skip", "", f"fixed sizes were not tried, since {reason}")]
    closed = [trial for trial in trials if _is_fixed(in_file[trial.input], trial.axis)]
    found = []
    if len(closed) < len(trials):
        what = _names([trial for trial in trials if trial not in closed])
        found.append(_taken(what, f"the file leaves {what} open, which the contract fixes"))
    runs = [(trial, _run(session, contract, trial)) for trial in closed]
    taken = [trial for trial, said in runs if said == "taken"]
    unknown = [said for _, said in runs if said not in ("taken", "refused")]
    if taken:
        found.append(
            _taken(_names(taken), f"the runtime takes {_listed(taken)}, which file and contract fix otherwise")
        )
    elif unknown:
        message = f"{len(unknown)} of {len(runs)} fixed sizes could not be tried: {unknown[0]}"
        found.append(finding("contract.refusal", "skip", "", message))
    elif closed:
        message = f"the runtime refuses another size where the file fixes one: {_listed(closed)}"
        found.append(finding("contract.refusal", "pass", "", message))
    return found


def _is_fixed(tensor: dims.Tensor, axis: int) -> bool:
    return tensor.shape is not None and isinstance(tensor.shape[axis], int)


def _run(session: Session, contract: Contract, trial: _Trial) -> str:
    """Says "taken", "refused", or why nobody knows."""
    try:
        session.run(_zeros(contract, trial.shapes))
    except RuntimeFault as fault:
        return fault.message if fault.kind in ("memory", "device") else "refused"
    return "taken"


def _why_not(contract: Contract, in_file: Mapping[str, dims.Tensor], inside: Shapes, session: Session | str) -> str:
    """Why trying would prove nothing: the runtime would refuse for another reason, or can't be asked."""
    if isinstance(session, str):
        return session
    for item in contract.inputs:
        tensor = in_file.get(item.name)
        if tensor is None or tensor.dtype != item.dtype or len(in_file) != len(contract.inputs):
            return "names or dtypes of the file are not the contract's"
        have, want = tensor.shape, inside.get(item.name, [])
        if have is None:
            continue
        if len(have) != len(want) or any(isinstance(a, int) and a != b for a, b in zip(have, want, strict=True)):
            return "the file fixes other sizes than the contract"
    needed = sum(
        math.prod(inside.get(item.name, [])) * np.dtype(_dtype(item.dtype)).itemsize for item in contract.inputs
    )
    return f"even the smallest inputs have {needed / 2**20:.0f} MiB" if needed > MOST_BYTES else ""


def _taken(subject: str, said: str) -> Finding:
    return finding(
        "contract.refusal",
        "warn",
        subject,
        f"{said}: nothing but the validator refuses other sizes",
        hint="Check inputs with onnx_ci.runtime.validate in the service, or declare the axis as a dim with a range.",
    )


def _off_by_one(axes: Mapping[str, Sequence[Axis]], inside: Shapes) -> Iterator[_Trial]:
    for name, shape in axes.items():
        for place, axis in enumerate(shape):
            if not isinstance(axis, Fixed):
                continue
            for size in (axis.size - 1, axis.size + 1):
                if size >= 0:
                    changed = [*inside[name][:place], size, *inside[name][place + 1 :]]
                    yield _Trial(f"{name}, axis {place}", size, {**inside, name: changed}, name, place)


def _smallest(axes: Mapping[str, Sequence[Axis]], contract: Contract) -> dict[str, int]:
    """The smallest size of every dim, not 0 where it can be helped: an empty array proves little."""
    names = {axis.name for shape in axes.values() for axis in shape if isinstance(axis, Named)}
    names |= {
        name for shape in axes.values() for axis in shape if isinstance(axis, Derived) for name in axis.expression.names
    }
    found = {}
    for name in names:
        dim = sizes.range_of(name, contract.dims)
        step = dim.multiple_of
        size = -(-max(dim.min, 1) // step) * step
        found[name] = size if dim.max is None or size <= dim.max else dim.min
    return found


def _shapes(axes: Mapping[str, Sequence[Axis]], at: Mapping[str, int]) -> Shapes | None:
    """The shape of each input at these sizes; None where an expression has no size there."""
    shapes: Shapes = {}
    for name, shape in axes.items():
        found = [_size(axis, at) for axis in shape]
        if any(size is None or size < 0 for size in found):
            return None
        shapes[name] = [size for size in found if size is not None]
    return shapes


def _size(axis: Axis, at: Mapping[str, int]) -> int | None:
    if isinstance(axis, Fixed):
        return axis.size
    if isinstance(axis, Named):
        return at[axis.name]
    return sizes.value_of(axis.expression, at) if isinstance(axis, Derived) else 1


def _dtype(name: str) -> str:
    return "object" if name == "string" else name


def _stand_ins(contract: Contract, shapes: Shapes) -> dict[str, Any]:
    """Arrays of any size in no memory: one zero, seen everywhere."""
    return {
        item.name: np.broadcast_to(np.zeros((), _dtype(item.dtype)), shapes.get(item.name, []))
        for item in contract.inputs
    }


def _zeros(contract: Contract, shapes: Shapes) -> dict[str, Any]:
    return {
        item.name: np.full(shapes.get(item.name, []), "" if item.dtype == "string" else 0, _dtype(item.dtype))
        for item in contract.inputs
    }


def _names(trials: Sequence[_Trial]) -> str:
    return ", ".join(dict.fromkeys(trial.what for trial in trials))


def _listed(trials: Sequence[_Trial]) -> str:
    by_name: dict[str, list[int]] = {}
    for trial in trials:
        by_name.setdefault(trial.what, []).append(trial.size)
    told = [f"{name} = {', '.join(map(str, sorted(found)))}" for name, found in by_name.items()]
    more = f"; and {len(told) - 2 * _SHOWN} more" if len(told) > 2 * _SHOWN else ""
    return "; ".join(told[: 2 * _SHOWN]) + more
