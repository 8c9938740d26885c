"""PyTorch's own outputs against the golden: whether the module still gives what was reviewed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch

from onnx_ci.artifact import golden, tensors
from onnx_ci.artifact.golden import Golden
from onnx_ci.artifact.layout import ArtifactError
from onnx_ci.artifact.tensors import Value
from onnx_ci.export import arguments, arrays, casefiles
from onnx_ci.export.state import answer
from onnx_ci.export.subject import Graph, Subject
from onnx_ci.numerics.golden import GoldenComparison, compare_golden, judge_golden
from onnx_ci.records.result import Finding, finding


def judge(subject: Subject, graph: Graph, folder: Path) -> list[Finding]:
    """Runs the module on the stored inputs; a golden of other inputs or outputs is left to `verify`, which calls it
    stale.
    """
    try:
        return _compared(subject, graph, folder, golden.read(folder))
    except ArtifactError as error:
        message = f"the golden can't be read: {str(error).replace(f'{folder}{os.sep}', '')}"
        return [finding("golden.unreadable", "error", "PyTorch", message, hint=error.hint)]


def _compared(subject: Subject, graph: Graph, folder: Path, stored: Golden) -> list[Finding]:
    found: list[GoldenComparison] = []
    for case in stored.cases:
        where = folder / f"test_data_set_{case.index}"
        given, expected = tensors.read_values(where, "input"), tensors.read_values(where, "output")
        if set(given) != set(graph.inputs):
            return [
                finding(
                    "golden.drift", "skip", "PyTorch",
                    "the golden was made for other inputs: PyTorch's outputs were not compared with it",
                )
            ]  # fmt: skip
        actual = _run(subject, graph, given)
        if isinstance(actual, str):
            return [
                finding("golden.drift", "fail", "PyTorch", f"the module refuses the golden case {case.name}: {actual}")
            ]
        expected = {name: value for name, value in expected.items() if name not in case.nondeterministic}
        actual = {name: value for name, value in actual.items() if name not in case.nondeterministic}
        found += compare_golden(
            case.name, expected, actual, who="PyTorch", e_torch=case.e_torch, spec=subject.spec.parity, dims=case.dims,
            orders=case.orders,
        )  # fmt: skip
    return judge_golden(found) if found else []


def _run(subject: Subject, graph: Graph, given: dict[str, Value]) -> dict[str, Value] | str:
    named = {graph.inputs[name].path: value for name, value in given.items()}

    def change(path: str, leaf: Any) -> Any:
        return casefiles.to_tensor(named[path], where=path) if isinstance(leaf, torch.Tensor) else leaf

    inputs = arguments.rebuild(subject.example, change)
    outputs = answer(subject.module, arguments.bind(subject.module, inputs))
    if outputs.error or len(outputs.values) != len(subject.eager.values):
        return outputs.error or "it gives another number of outputs"
    return {name: arrays.to_value(outputs.values[at]) for name, at in graph.outputs.items()}


def readable(folder: str | None) -> Path | None:
    """The golden's folder, where there is one to read: that it is missing is for `verify` to say."""
    if folder is None or not (Path(folder) / golden.RECORD).is_file():
        return None
    return Path(folder)
