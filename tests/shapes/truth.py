"""The truth about a drawn module by brute force: eager PyTorch and the file in ONNX Runtime at every declared size.

Nothing of onnx-ci is used: what it says is held against this.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import logging
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnxruntime
import torch

from tests.shapes.draw import Drawn

NEAR = 1e-3
"""Of the largest number of an output: far above rounding, far below what a frozen size does."""
Answers = dict[tuple[int, ...], np.ndarray]
"""PyTorch's, by sizes."""
Kind = Literal["healthy", "refused", "stopped", "fails", "shape", "numbers"]


@dataclass(frozen=True, slots=True)
class Truth:
    """What holds, and where it first does not.

    Attributes:
        kind: "refused" is eager's own doing, "stopped" an export that gives no file.
        share: Of the declared sizes, at how many it does not hold.
    """

    kind: Kind
    said: str = ""
    share: float = 0.0

    @property
    def healthy(self) -> bool:
        return self.kind == "healthy"


class Module:
    """A drawn module, and its answers at all sizes."""

    def __init__(self, drawn: Drawn) -> None:
        self._drawn = drawn
        self._space: dict[str, Any] = {"__name__": "drawn"}
        exec(compile(drawn.model, f"<{drawn.name}>", "exec"), self._space)

    def points(self) -> Iterator[dict[str, int]]:
        """All declared sizes, in all combinations."""
        names = list(self._drawn.dims)
        for sizes in itertools.product(*(self._drawn.dims[name].sizes() for name in names)):
            yield dict(zip(names, sizes, strict=True))

    def input(self, dims: dict[str, int]) -> torch.Tensor:
        """Numbers that hang on the sizes alone."""
        shape = [dims[one] if isinstance(one, str) else one for one in self._drawn.shape]
        return torch.from_numpy(np.random.default_rng(list(dims.values())).standard_normal(shape, np.float32))

    def eager(self, dims: dict[str, int]) -> np.ndarray | str:
        """What PyTorch gives, or what it says."""
        try:
            with torch.no_grad(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return self._space["build"]()(self.input(dims)).numpy()
        except Exception as error:
            return f"{type(error).__name__}: {error}".splitlines()[0][:200]

    def answers(self) -> tuple[Answers, Truth | None]:
        """PyTorch's by sizes; and where it refuses one, that."""
        found: Answers = {}
        refused: list[str] = []
        for dims in self.points():
            got = self.eager(dims)
            if isinstance(got, str):
                refused.append(f"{dims}: {got}")
            else:
                found[tuple(dims.values())] = got
        if not refused:
            return found, None
        return found, Truth("refused", refused[0], len(refused) / (len(found) + len(refused)))

    def export_plainly(self, file: Path) -> str:
        """Exports as one would without onnx-ci; what stopped it, or ""."""
        dims = self._drawn.dims
        named: dict[int, Any] = {}
        for axis, one in enumerate(self._drawn.shape):
            if isinstance(one, str):
                step, least, most = dims[one].step, dims[one].least, dims[one].most
                dim = torch.export.Dim(one, min=-(-least // step), max=most // step)
                named[axis] = step * dim if step > 1 else dim
        example = self.input({name: dim.example for name, dim in dims.items()})
        try:
            with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), _without_log():
                warnings.simplefilter("ignore")
                torch.onnx.export(
                    self._space["build"](), (example,), str(file),
                    dynamo=True, dynamic_shapes=(named,), verbose=False,
                )  # fmt: skip
        except Exception as error:
            return f"{type(error).__name__}: {error}".splitlines()[0][:200]
        return ""


@contextlib.contextmanager
def _without_log() -> Iterator[None]:
    """The exporter says each time what is not installed."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        yield
    finally:
        logging.disable(before)


def judge(module: Module, answers: Answers, file: Path) -> Truth:
    """Holds a file against PyTorch's answers, at every size."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    try:
        session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        return Truth("fails", f"it does not load: {error}"[:200], 1.0)
    name = session.get_inputs()[0].name
    wrong: list[Truth] = []
    for dims in module.points():
        expected = answers[tuple(dims.values())]
        try:
            (actual,) = session.run(None, {name: module.input(dims).numpy()})
        except Exception as error:
            wrong.append(Truth("fails", f"{dims}: {error}"[:300]))
            continue
        if actual.shape != expected.shape:
            wrong.append(Truth("shape", f"{dims}: {list(actual.shape)}, and PyTorch {list(expected.shape)}"))
        elif expected.size and not _near(actual, expected):
            apart = float(np.abs(actual - expected).max() / np.abs(expected).max())
            wrong.append(Truth("numbers", f"{dims}: {apart:.2g} of the largest number apart"))
    if not wrong:
        return Truth("healthy")
    return Truth(wrong[0].kind, wrong[0].said, len(wrong) / len(answers))


def _near(actual: np.ndarray, expected: np.ndarray) -> bool:
    limit = NEAR * float(np.abs(expected).max()) + 1e-7
    return bool((np.abs(actual - expected) <= limit).all())
