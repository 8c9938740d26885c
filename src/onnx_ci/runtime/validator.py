"""Checks a service's inputs against a contract: what it lets through, the file was proved for.

The runtime checks names, dtypes, ranks and fixed sizes, each with its first fault only. It does not know ranges, and
it does not look whether two inputs agree in a dim that they share.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onnx_ci.runtime import sizes, words
from onnx_ci.runtime.dtypes import Kind, kind_of, wrong_dtype, wrong_type
from onnx_ci.runtime.problems import ContractError, Problem
from onnx_ci.runtime.sizes import Axis, Derived, Fixed, Named
from onnx_ci.runtime.values import wrong_values

if TYPE_CHECKING:
    from pathlib import Path

    from onnx_ci.records.contract import Contract, DimContract, TensorContract


def validate(contract: Contract | Path | str, inputs: Mapping[str, object], *, check_values: bool = False) -> None:
    """Checks the inputs of one call.

    It reads the contract every time; a service that answers many requests keeps a `Validator`.

    Args:
        contract: Or the path of a contract.json, or of the artifact folder that it lies in.
        inputs: Arrays by name; lists of arrays for sequence inputs, None for optional ones.
        check_values: Whether the values are looked at too: NaN, and what the contract says of low, high and values.

    Raises:
        ContractError: With all that is wrong.
        OnnxCiError: The contract can't be read.
    """
    Validator(contract, check_values=check_values)(inputs)


def load_contract(path: Path | str) -> Contract:
    """Reads a contract.json, or that of an artifact folder.

    Raises:
        OnnxCiError: It is not there, or is no contract that this version reads.
    """
    # Together these take longer to import than all that checking needs.
    from pathlib import Path

    from onnx_ci.errors import OnnxCiError
    from onnx_ci.records import codec
    from onnx_ci.records.contract import SCHEMA_VERSION, Contract

    file = Path(path)
    file = file / "contract.json" if file.is_dir() else file
    try:
        found = codec.loads(Contract, file.read_bytes())
    except OSError as error:
        hint = "Name a contract.json, or the artifact folder that holds it."
        raise OnnxCiError(
            f"the contract can't be read: {error.strerror or error}", where=str(file), hint=hint
        ) from None
    except codec.RecordError as error:
        hint = "Was it written by another version of onnx-ci?"
        raise OnnxCiError(f"not a contract: {error}", where=str(file), hint=hint) from error
    if found.schema_version != SCHEMA_VERSION:
        message = f"the contract has schema version {found.schema_version}, this onnx-ci reads {SCHEMA_VERSION}"
        raise OnnxCiError(message, where=str(file), hint="Install the version of onnx-ci that exported the model.")
    return found


class _Input(NamedTuple):
    """An input made ready: its axes sorted by what is to be done, since this runs at every call."""

    name: str
    kind: Kind
    tensor: TensorContract
    axes: tuple[Axis, ...] | None
    fixed: tuple[tuple[int, int], ...]
    named: tuple[tuple[int, Named, str, int, int, int], ...]
    """Axis, dim, and of the dim: name, lowest, highest, step."""
    derived: tuple[tuple[int, Derived], ...]


class Validator:
    """A contract made ready for many calls; it keeps nothing of a call, so threads may share it.

    Args:
        contract: Or the path of a contract.json, or of the artifact folder that it lies in.
        check_values: Whether the values are looked at too, which takes as long as reading every element.

    Raises:
        OnnxCiError: The contract can't be read.
    """

    def __init__(self, contract: Contract | Path | str, *, check_values: bool = False) -> None:
        self.contract = load_contract(contract) if isinstance(contract, (str, PathLike)) else contract
        self.check_values = check_values
        self.model = self.contract.model + (f"@{self.contract.variant}" if self.contract.variant else "")
        self._inputs = [_prepare(item, self.contract.dims) for item in self.contract.inputs]
        self._names = {item.name for item in self._inputs}

    def __call__(self, inputs: Mapping[str, object]) -> None:
        """Checks the inputs of one call.

        Raises:
            ContractError: With all that is wrong.
        """
        problems = self.problems(inputs)
        if problems:
            raise ContractError(self.model, problems)

    def problems(self, inputs: Mapping[str, object]) -> list[Problem]:
        """All that is wrong with the inputs, in the order of the file's; empty where they are taken."""
        if not isinstance(inputs, Mapping):
            return [words.no_mapping(inputs, [item.name for item in self._inputs])]
        call = _Call(self.contract.dims, check_values=self.check_values)
        taken = 0
        for item in self._inputs:
            if item.name in inputs:
                taken += 1
                call.look(item, inputs[item.name])
        if call.derived:
            call.compute()
        if taken != len(self._inputs) or taken != len(inputs):
            names = [item.name for item in self._inputs]
            return words.wrong_names(names, inputs, self.contract.frozen) + call.found
        return call.found

    def shapes(self) -> dict[str, str]:
        """What each input may measure, to be shown: ``{"image": "[batch 1..8, 3, 480, 640]"}``."""
        return {
            item.name: "any shape" if item.axes is None else f"[{', '.join(map(sizes.shown, item.axes))}]"
            for item in self._inputs
        }


def _prepare(tensor: TensorContract, dims: Mapping[str, DimContract]) -> _Input:
    axes = None if tensor.shape is None else tuple(sizes.axis_of(size, dims) for size in tensor.shape)
    places = list(enumerate(axes or ()))
    return _Input(
        name=tensor.name,
        kind=kind_of(tensor.dtype),
        tensor=tensor,
        axes=axes,
        fixed=tuple((place, axis.size) for place, axis in places if isinstance(axis, Fixed)),
        named=tuple((place, axis, *_ends(axis)) for place, axis in places if isinstance(axis, Named)),
        derived=tuple((place, axis) for place, axis in places if isinstance(axis, Derived)),
    )


def _ends(axis: Named) -> tuple[str, int, int, int]:
    dim = axis.dim
    return axis.name, dim.min, sys.maxsize if dim.max is None else dim.max, dim.multiple_of


class _Call:
    """The sizes seen in one call, and what is wrong with it."""

    __slots__ = ("_check_values", "_dims", "_seen", "derived", "found")

    def __init__(self, dims: Mapping[str, DimContract], *, check_values: bool) -> None:
        self.found: list[Problem] = []
        self._dims = dims
        self._check_values = check_values
        self._seen: dict[str, tuple[int, str, int]] = {}
        """Size by dim, and the input and axis where it was seen first."""
        self.derived: list[tuple[str, int, Derived, int]] = []

    def look(self, item: _Input, value: object) -> None:
        """Checks one input."""
        kind = item.kind
        if type(value) is np.ndarray and not kind.sequence:
            self._array(item, value)
        elif value is None and kind.optional:
            return
        elif not kind.sequence:
            self._one(item, value, None)
        elif not isinstance(value, list):  # the runtime takes no tuple
            message = f"of type {type(value).__name__}, a list of arrays is needed"
            self.found.append(Problem(input=item.name, axis=None, message=message))
        else:
            for at, one in enumerate(value):
                # The tensors of a list need not agree with each other: a detector's boxes, image by image.
                alone = _Call(self._dims, check_values=self._check_values)
                alone._one(item, one, at)
                alone.compute()
                self.found += alone.found

    def _one(self, item: _Input, value: object, at: int | None) -> None:
        wrong = wrong_type(item.name, value, item.kind)
        if wrong or not isinstance(value, np.ndarray):
            self.found.append(Problem(input=item.name, axis=None, message=wrong, item=at))
        else:
            self._array(item, value, at)

    def _array(self, item: _Input, array: np.ndarray[Any, Any], at: int | None = None) -> None:
        if not item.kind.holds(array.dtype):
            self._add(item.name, wrong_dtype(item.name, array, item.kind), at=at)
        elif self._check_values:
            for message in wrong_values(array, item.tensor):
                self._add(item.name, message, at=at)
        axes, shape = item.axes, array.shape
        if axes is None:
            return
        if len(axes) != len(shape):
            self._add(item.name, words.wrong_rank(item.name, shape, axes), at=at)
            return
        name, seen = item.name, self._seen
        for place, wanted in item.fixed:
            if shape[place] != wanted:
                self._add(name, words.wrong_fixed(name, place, shape, axes), place, at=at)
        for place, axis, dim, low, high, step in item.named:
            size = shape[place]
            first = seen.setdefault(dim, (size, name, place))
            if first[0] != size:
                self._add(name, words.not_shared(size, *first), place, dim, at=at)
            if size < low or size > high or size % step:
                self._add(name, words.wrong_range(axis, size), place, dim, at=at)
        for place, derived in item.derived:
            self.derived.append((name, place, derived, shape[place]))

    def _add(self, name: str, message: str, axis: int | None = None, dim: str = "", *, at: int | None = None) -> None:
        self.found.append(Problem(input=name, axis=axis, message=message, dim=dim, item=at))

    def compute(self) -> None:
        """Checks the axes that are expressions: those of known dims first, since they make others known."""
        left = self.derived
        while left:
            # Of two dims that stand nowhere else nothing can be said.
            next_ = min(left, key=lambda one: (self._unknown(one[2]), len(one[2].expression.names)))
            if self._unknown(next_[2]) > 1:
                return
            self._computed(*next_)
            left = [one for one in left if one is not next_]

    def _unknown(self, axis: Derived) -> int:
        return len(axis.expression.names - self._seen.keys())

    def _computed(self, name: str, place: int, axis: Derived, size: int) -> None:
        expression = axis.expression
        known = {dim: self._seen[dim][0] for dim in expression.names if dim in self._seen}
        unknown = next(iter(expression.names - known.keys()), None)
        if unknown is None:
            wanted = sizes.value_of(expression, known)
            if wanted is not None and wanted != size:
                self._add(name, words.not_computed(size, wanted, expression.text, known), place)
            return
        dim = sizes.range_of(unknown, self._dims)
        solved = sizes.solve(expression, known, unknown, size, dim)
        if solved == "none":
            self._add(name, words.not_solved(size, expression.text, unknown, dim), place)
        elif solved != "many":
            self._seen[unknown] = (solved, name, place)
            if not sizes.fits(solved, dim):
                makes = f" makes {unknown} {solved}"
                self._add(
                    name, words.wrong_range(Named(unknown, dim), solved, f"{size}{makes}"), place, expression.text
                )
