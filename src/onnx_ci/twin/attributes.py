"""Attributes of a node as their author meant them: a float as the number that was written, not its float32."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto

_NAMED = (
    1.6732632423543772848170429916717,  # Selu's alpha and gamma
    1.0507009873554804934193349852946,
    math.sqrt(2 / math.pi),
    math.pi,
    2 * math.pi,
    math.e,
    math.log(2),
    math.log(10),
)
_EXACT_DIGITS = 6  # float32 keeps these of any decimal: what is longer was computed, not written
_DENOMINATORS = range(2, 257)


@lru_cache(maxsize=4096)
def meant(value: float) -> float:
    """The float64 that a float32 was rounded from, as far as that can be told; never more than its rounding away.

    The shortest decimal (1e-5, not 9.99999975e-06), or where that is long a named constant, a fraction (1/6) or the
    root of one (1/√3), which is how scales are computed.
    """
    narrow = np.float32(value)
    if not math.isfinite(value) or value.is_integer() or float(narrow) != value:
        return value
    shortest = float(str(narrow))
    if _digits(shortest) <= _EXACT_DIGITS:
        return shortest
    for named in _NAMED:
        if np.float32(named) == abs(narrow):
            return math.copysign(named, value)
    size = abs(value)
    fraction = _fraction(size, narrow)
    if fraction is not None:
        return math.copysign(fraction, value)
    root = _fraction(size * size, None)
    if root is not None and np.float32(math.sqrt(root)) == abs(narrow):
        return math.copysign(math.sqrt(root), value)
    return shortest


def _digits(value: float) -> int:
    return len(repr(abs(value)).partition("e")[0].replace(".", "").strip("0"))


def _fraction(value: float, narrow: np.float32 | None) -> float | None:
    """The fraction of a small denominator that lies within float32's rounding of a value."""
    for denominator in _DENOMINATORS:
        numerator = round(value * denominator)
        if not 0 < numerator < 4096:
            continue
        found = numerator / denominator
        if np.float32(found) == abs(narrow) if narrow is not None else abs(found - value) <= 2.0**-23 * value:
            return found
    return None


def decoded(attribute: AttributeProto) -> Any:
    """An attribute's value: numbers, text, lists of them; tensors, graphs and types as the messages they are."""
    if attribute.type == AttributeProto.FLOAT:
        return meant(attribute.f)
    if attribute.type == AttributeProto.FLOATS:
        return [meant(value) for value in attribute.floats]
    value = onnx.helper.get_attribute_value(attribute)
    if attribute.type == AttributeProto.STRING:
        return value.decode("utf-8", "replace")
    if attribute.type == AttributeProto.STRINGS:
        return [item.decode("utf-8", "replace") for item in value]
    return list(value) if isinstance(value, Sequence) and not isinstance(value, (str, bytes)) else value


@lru_cache(maxsize=1024)
def defaults(op: str, version: int) -> dict[str, Any]:
    """The defaults that the operator's schema gives its attributes."""
    try:
        schema = onnx.defs.get_schema(op, version, "")
    except onnx.defs.SchemaError:
        return {}
    given = {name: item.default_value for name, item in schema.attributes.items()}
    return {name: decoded(value) for name, value in given.items() if value.type != AttributeProto.UNDEFINED}
