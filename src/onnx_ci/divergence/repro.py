"""A folder that shows a fault without this project: a part of the model, its inputs, what it should give, a script."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from onnx_ci.divergence.dataflow import Part
from onnx_ci.numerics.dtypes import float_dtype, widen
from onnx_ci.records.model import CPU

FOLDER = "repro"
MODEL = "submodel.onnx"
VALUES = "values.npz"
SCRIPT = "repro.py"
LARGEST = 64 << 20
"""Bytes of inputs and expected values: what is larger helps nobody to look at a node."""
_PLAIN = re.compile(r"[^A-Za-z0-9._@+-]+")
_TEXT = '''"""{title}

Needs onnxruntime and numpy only; exits with 1 while the fault is there.
"""
import sys
from pathlib import Path

import numpy as np
import onnxruntime

here, options = Path(__file__).parent, onnxruntime.SessionOptions()
options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.{level}
session = onnxruntime.InferenceSession(str(here / "{model}"), options, providers=["{provider}"])
data = np.load(here / "{values}", allow_pickle=False)
actual = session.run(None, {{item.name: data[f"input_{{at}}"] for at, item in enumerate(session.get_inputs())}})[0]
expected = data["expected"]
if actual.shape != expected.shape:
    sys.exit(f"shape {{list(actual.shape)}}, expected {{list(expected.shape)}}")
wrong = ~np.isclose(actual, expected, rtol=0, atol={allowed!r}, equal_nan=True)
apart = np.abs(actual.astype("float64") - expected.astype("float64"))
print(f"{{wrong.sum()}} of {{wrong.size}} elements differ, by up to {{apart.max(initial=0.0):.6g}}")
sys.exit(int(wrong.any()))
'''


def plain(name: str) -> str:
    """A name that a file can have on every system, never one of dots alone; names that differ stay different."""
    made = _PLAIN.sub("_", name).strip(".")
    return made if made and made == name else f"{made or '_'}-{hashlib.sha256(name.encode()).hexdigest()[:6]}"


def write(folder: Path, part: Part, *, title: str, optimized: bool = False, provider: str = CPU) -> str:
    """Writes the folder; gives why it was not, or "" when it was.

    Args:
        folder: Made, with its parents.
        part: The model, and what its output should be.
        title: What is wrong, for the head of the script.
        optimized: Whether the script lets ONNX Runtime optimize.
        provider: On which it runs.
    """
    given = [part.inputs[item.name] for item in part.model.graph.input]
    values = [value for value in (*given, part.expected) if isinstance(value, np.ndarray)]
    arrays = [value for value in values if value.dtype.kind in "biuf"]
    if len(arrays) <= len(given):
        return "its values are none that numpy can store"
    if sum(array.nbytes for array in arrays) > LARGEST:
        return f"its values have more than {LARGEST >> 20} MiB"
    stored: dict[str, Any] = {f"input_{at}": array for at, array in enumerate(arrays[:-1])}
    level = "ORT_ENABLE_ALL" if optimized else "ORT_DISABLE_ALL"
    told = title.replace("\\", "/").replace('"', "'")
    text = _TEXT.format(title=told, level=level, model=MODEL, provider=provider, values=VALUES, allowed=allowed(part))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        onnx.save(part.model, str(folder / MODEL))
        np.savez(folder / VALUES, allow_pickle=False, expected=arrays[-1], **stored)
        (folder / SCRIPT).write_text(text, encoding="utf-8")
    except OSError as error:
        return f"it can't be written: {error.strerror or error}"
    return ""


def allowed(part: Part) -> float:
    """Absolute difference of an element that is no fault: a little rounding, and less than what is there now."""
    expected, actual = part.expected, part.actual
    kind = float_dtype(expected.dtype) if isinstance(expected, np.ndarray) else None
    if kind is None or not isinstance(expected, np.ndarray) or not isinstance(actual, np.ndarray):
        return 0.0
    if actual.shape != expected.shape or not expected.size:
        return 0.0
    with np.errstate(invalid="ignore", over="ignore"):
        peak, apart = np.abs(widen(expected)), np.abs(widen(actual) - widen(expected))
    rounding = 2 * kind.floor * float(np.max(peak, where=np.isfinite(peak), initial=0.0))
    return min(rounding, 0.5 * float(np.max(apart, where=np.isfinite(apart), initial=0.0)))
