"""Runs a model's inner values in one session, and finds the optimization of ONNX Runtime that changes an answer."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import onnx
import onnxruntime

from onnx_ci.artifact.tensors import Value
from onnx_ci.divergence.dataflow import with_outputs
from onnx_ci.records.model import CPU

_FOLDER = "session.model_external_initializers_file_folder_path"
_APPLIED = re.compile(r"GraphTransformer (\S+?)(?:_CPUExecutionProvider)? modified: 1\b")
_BY_RULES = re.compile(r"Level(\d)_RuleBasedTransformer")
_RULES = {
    "1": (
        "EliminateIdentity", "EliminateSlice", "UnsqueezeElimination", "EliminateDropout", "ExpandElimination",
        "CastElimination", "CastChainElimination", "PreShapeNodeElimination", "NoopElimination", "DivMulFusion",
        "FuseReluClip", "GemmSumFusion", "GemmTransposeFusion", "NotWhereFusion", "ConvAddFusion", "ConvMulFusion",
        "ConvBNFusion", "PadFusion", "MatMulBNFusion", "LabelEncoderFusion", "ReluClipFusion",
    ),
    "2": ("ClipQuantRewrite", "ReluQuantRewrite", "GatherToSplitFusion", "ConcatSliceElimination"),
}  # fmt: skip
"""What a transformer of rules holds; its log line does not name them. One that a version lacks is ignored."""


class Runs(Protocol):
    """An open session."""

    def run(self, feeds: Mapping[str, Value]) -> dict[str, Value]:
        """All outputs by name."""


Open = Callable[[bytes], Runs]
"""Opens a model whose external data lies where the opener knows."""


class CpuSession:
    """A model on the CPU provider.

    Args:
        model: A path, or bytes whose external data lies in `folder`.
        optimized: False leaves the graph as it is in the file.
        without: Optimizations to leave out, by name.

    Raises:
        Exception: ONNX Runtime's own, which have no common base.
    """

    def __init__(
        self,
        model: Path | bytes,
        *,
        folder: Path | None = None,
        optimized: bool = True,
        without: Sequence[str] = (),
        custom_ops: Sequence[Path] = (),
        log_level: int = 4,
    ) -> None:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = log_level
        options.inter_op_num_threads = options.intra_op_num_threads = 1
        options.use_deterministic_compute = True
        if not optimized:
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        if folder is not None:
            options.add_session_config_entry(_FOLDER, str(folder.resolve()))
        for library in custom_ops:
            options.register_custom_ops_library(str(library))
        given = model if isinstance(model, bytes) else str(model.resolve())
        self._session: Any = onnxruntime.InferenceSession(
            given, options, providers=[CPU], disabled_optimizers=list(without) or None
        )
        self.inputs = [item.name for item in self._session.get_inputs()]
        self._outputs = [item.name for item in self._session.get_outputs()]

    def run(self, feeds: Mapping[str, Value]) -> dict[str, Value]:
        """All outputs by name; feeds that the model does not take are left out."""
        given = {name: feeds[name] for name in self.inputs}
        return dict(zip(self._outputs, self._session.run(None, given), strict=True))


def inner_values(
    model: onnx.ModelProto, open_: Open, feeds: Mapping[str, Value], names: Sequence[str]
) -> dict[str, Value]:
    """These inner values of a model, from one session and one run."""
    given = open_(with_outputs(model, names)).run(feeds)
    return {name: given[name] for name in names}


def applied_optimizers(open_: Callable[[int], object]) -> list[str]:
    """Names of the optimizations that change a graph while it is opened, in their order.

    Args:
        open_: Opens the session at a log level; only the runtime's log tells which of them found something to do.
    """
    names: dict[str, None] = {}
    for found in _APPLIED.findall(_log_of(lambda: open_(1))):
        rules = _BY_RULES.fullmatch(found)
        names.update(dict.fromkeys(_RULES.get(rules[1], ()) if rules else [found]))
    return list(names)


def culprit(names: Sequence[str], right_without: Callable[[Sequence[str]], bool]) -> list[str]:
    """The fewest neighbouring optimizations without which the answer is right, by halves; empty where none tells.

    One where one is enough; two that do the same job in turn are both named.
    """
    if not names or not right_without(names):
        return []
    left = list(names)
    while len(left) > 1:
        half = len(left) // 2
        kept = next((part for part in (left[:half], left[half:]) if right_without(part)), None)
        if kept is None:
            break
        left = kept
    for name in list(left):
        fewer = [one for one in left if one != name]
        if fewer and right_without(fewer):
            left = fewer
    return left


def _log_of(act: Callable[[], object]) -> str:
    """What the runtime, which is no Python, writes to stderr meanwhile."""
    sys.stderr.flush()
    with tempfile.TemporaryFile() as file:
        kept = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            act()
        finally:
            os.dup2(kept, 2)
            os.close(kept)
        file.seek(0)
        return file.read().decode("utf-8", "replace")
