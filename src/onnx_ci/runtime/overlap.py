"""Whether two contracts take one and the same input: then nobody could say which of two variants is meant."""

from __future__ import annotations

from math import lcm

from onnx_ci.records.contract import Contract
from onnx_ci.records.expression import Expression
from onnx_ci.runtime import sizes
from onnx_ci.runtime.sizes import Derived, Fixed, Named, Range

_Key = tuple[str, str]
"""An unknown size: a dim of one of the two contracts, or an axis of an input."""


def taken_by_both(one: Contract, other: Contract) -> dict[str, list[int]] | None:
    """The smallest sizes by input that both contracts take; None where there are none.

    Where sizes hang on expressions that can't be solved the answer is None too: who asks looks at both contracts again
    when an input comes.
    """
    mine, others = ({item.name: item for item in contract.inputs} for contract in (one, other))
    if mine.keys() != others.keys() or any(mine[name].dtype != others[name].dtype for name in mine):
        return None
    system = _System()
    axes: dict[str, list[_Key]] = {}
    try:
        for name, item in mine.items():
            first, second = item.shape, others[name].shape
            if first is None or second is None:
                continue
            if len(first) != len(second):
                return None
            axes[name] = [("axis", f"{name}, {place}") for place in range(len(first))]
            for key, left, right in zip(axes[name], first, second, strict=True):
                system.state(key, left, "one", one)
                system.state(key, right, "other", other)
        return {name: [system.smallest(key) for key in keys] for name, keys in axes.items()} if system.solve() else None
    except _NoSolution:
        return None


class _NoSolution(Exception):
    """Two sizes that are to be equal can't be."""


class _System:
    """Sizes that must be equal, since they measure one axis, with what each may be."""

    def __init__(self) -> None:
        self._parent: dict[_Key, _Key] = {}
        self._fixed: dict[_Key, int] = {}
        self._dims: dict[_Key, Range] = {}
        self._equations: list[tuple[str, Expression, _Key]] = []

    def state(self, key: _Key, size: int | str, which: str, contract: Contract) -> None:
        """States what one contract says of an axis."""
        axis = sizes.axis_of(size, contract.dims)
        if isinstance(axis, Fixed):
            self._fix(key, axis.size)
        elif isinstance(axis, Named):
            dim = (which, axis.name)
            self._know(dim, axis.dim)
            self._join(key, dim)
        elif isinstance(axis, Derived):
            for name in axis.expression.names:
                self._know((which, name), sizes.range_of(name, contract.dims))
            self._equations.append((which, axis.expression, key))

    def solve(self) -> bool:
        """Finds what follows; False where an expression stays open."""
        left = self._equations
        while left:
            still = [one for one in left if not self._settle(*one)]
            if len(still) == len(left):
                return False
            left = still
        for key in list(self._dims):
            self.smallest(key)
        return True

    def smallest(self, key: _Key) -> int:
        """The smallest size that all of one class may have."""
        root = self._root(key)
        dims = [dim for other, dim in self._dims.items() if self._root(other) == root]
        step = lcm(*(dim.multiple_of for dim in dims))
        least = max((dim.min for dim in dims), default=0)
        size = self._fixed.get(root, -(-least // step) * step)
        if not all(sizes.fits(size, dim) for dim in dims):
            raise _NoSolution
        return size

    def _settle(self, which: str, expression: Expression, key: _Key) -> bool:
        """Draws the one conclusion that an equation allows, if it allows one yet."""
        roots = {name: self._root((which, name)) for name in expression.names}
        known = {name: self._fixed[root] for name, root in roots.items() if root in self._fixed}
        unknown = sorted(expression.names - known.keys())
        if not unknown:
            size = sizes.value_of(expression, known)
            if size is not None:
                self._fix(key, size)
            return size is not None
        target = self._fixed.get(self._root(key))
        if len(unknown) > 1 or target is None:
            return False
        dim = (which, unknown[0])
        solved = sizes.solve(expression, known, unknown[0], target, self._dims[dim])
        if solved == "none":
            raise _NoSolution
        if solved == "many":
            return False
        self._fix(dim, solved)
        return True

    def _know(self, key: _Key, dim: Range) -> None:
        self._dims[key] = dim
        if dim.min == dim.max:
            self._fix(key, dim.min)

    def _root(self, key: _Key) -> _Key:
        while (above := self._parent.get(key, key)) != key:
            key = above
        return key

    def _join(self, one: _Key, other: _Key) -> None:
        first, second = self._root(one), self._root(other)
        if first != second:
            self._parent[second] = first
            if second in self._fixed:
                self._fix(first, self._fixed.pop(second))

    def _fix(self, key: _Key, size: int) -> None:
        if self._fixed.setdefault(self._root(key), size) != size:
            raise _NoSolution
