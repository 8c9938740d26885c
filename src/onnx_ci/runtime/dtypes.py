"""Whether a value is a tensor of the dtype that the file takes, and what to do where it is not.

ONNX Runtime itself reads a big-endian array, an array of bytes and the masked places of a masked array without an
error and wrongly; all else it refuses in words that do not say what to do.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

_WRAPPED = re.compile(r"(sequence|optional)\((.*)\)")


class Kind(NamedTuple):
    """A dtype of the contract, made ready.

    Attributes:
        name: Of the element: numpy's, "bfloat16", "string"; empty where the contract does not tell.
        dtype: None for text, and for dtypes that numpy lacks: those go by their name.
        sequence: Whether it is a list of tensors.
        optional: Whether None may stand for it.
    """

    name: str
    dtype: np.dtype[Any] | None
    sequence: bool = False
    optional: bool = False

    def holds(self, dtype: np.dtype[Any]) -> bool:
        """Whether an array of this dtype is taken as it is."""
        if self.dtype is not None:
            return dtype == self.dtype
        if self.name == "string":
            return dtype.kind in "OU"
        return not self.name or dtype.name == self.name


def kind_of(text: str) -> Kind:
    """Reads a dtype of the contract: "float32", "string", "sequence(int64)", "optional(float32)"."""
    wrappers = set()
    while match := _WRAPPED.fullmatch(text):
        wrappers.add(match[1])
        text = match[2]
    try:
        dtype = np.dtype(text) if text and text != "string" else None
    except TypeError:  # bfloat16 and smaller are types of ml_dtypes
        dtype = None
    return Kind(text, dtype, "sequence" in wrappers, "optional" in wrappers)


def wrong_type(name: str, value: object, kind: Kind) -> str:
    """What to say of a value that is no array; empty for an array."""
    if isinstance(value, np.ma.MaskedArray):
        return "a masked array, of which the runtime reads the masked places too; fill them: " + f"{name}.filled(…)"
    if isinstance(value, np.ndarray):
        return ""
    make = f"numpy.asarray({name}, dtype={_code(kind)})"
    if value is None:
        return "None; only an optional input may be left out so"
    if isinstance(value, (bool, int, float, complex, str, bytes)):
        return f"a Python {type(value).__name__}, an array is needed: {make}"
    if isinstance(value, np.generic):
        return f"a numpy scalar, an array is needed: {make}"
    if isinstance(value, (list, tuple)):
        return f"a Python {type(value).__name__}, an array is needed: {make}"
    root = type(value).__module__.partition(".")[0]
    if root == "torch":
        return f"a torch tensor, a numpy array is needed: {name}.detach().cpu().numpy()"
    return f"of type {root}.{type(value).__name__}, a numpy array is needed: {make}"


def wrong_dtype(name: str, array: np.ndarray[Any, Any], kind: Kind) -> str:
    """What to say of an array of another dtype."""
    have, want = array.dtype, kind.name
    came = "string" if have.kind in "USO" and kind.name == "string" else have.name
    cast = f"convert it: {name}.astype({_code(kind)})"
    if kind.dtype is not None and have.newbyteorder("=") == kind.dtype:
        return f"{want} of the other byte order, which the runtime reads wrongly; {cast}"
    if have.kind == "O":
        return (
            f"Python objects (dtype object), allowed is {want}; rows of unequal length or None among them make such an "
            f"array: make them equal, then numpy.asarray(…, dtype={_code(kind)})"
        )
    if want == "string":
        return _not_text(name, have)
    if have.kind in "US":
        return f"text ({have}), allowed is {want}; parse it before the call"
    words = f"dtype {came}, allowed is {want}; "
    if have.kind in "iub" and _is_float(want) and have.name == "uint8":
        return words + cast + " changes the type alone: scale the values as the model's preprocessing does"
    if have.kind == "f" and want.startswith(("int", "uint")):
        return words + cast + " drops what stands after the point: is it the right array?"
    if have.name == "float64":
        return words + f"numpy makes float64 where nothing else is said; {cast}"
    return words + cast


def _not_text(name: str, have: np.dtype[Any]) -> str:
    if have.kind == "S":
        return f"bytes ({have}), which the runtime reads wrongly; allowed is text: {name}.astype(str)"
    return f"dtype {have.name}, allowed is text: {name}.astype(object) with a str in each place"


def _is_float(name: str) -> bool:
    return name.startswith(("float", "bfloat"))


def _code(kind: Kind) -> str:
    """The dtype as it stands in the reader's own code."""
    if kind.name in ("string", ""):
        return "object"
    if kind.name == "bool":
        return "bool"
    return f"{'numpy' if hasattr(np, kind.name) else 'ml_dtypes'}.{kind.name}"
