"""The examples of docs/runtime.md run, and print what stands below them."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from onnx_ci.artifact import layout, variants
from onnx_ci.records.model import JobSpec, ModelSpec, TargetSpec

from .contracts import contract, dim, tensor
from .test_router import write_variant

PAGE = Path(__file__).parents[3] / "docs" / "runtime.md"
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:^```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    artifacts = tmp_path / "onnx-ci-out" / "artifacts"
    listed = [
        write_variant(artifacts, f"{height}x{width}", ["batch", 3, height, width])
        for height, width in ((48, 64), (64, 48))
    ]
    variants.write(artifacts, "pool", listed)
    (artifacts / "classifier").mkdir()
    images = tensor("images", "float32", ["batch", 3, "height", "width"])
    dims = {"batch": dim(1, 32), "height": dim(32, 512, 8), "width": dim(32, 512)}
    graph = helper.make_graph(
        [
            helper.make_node("GlobalAveragePool", ["images"], ["pooled"]),
            helper.make_node("Flatten", ["pooled"], ["logits"]),
        ],
        "main",
        [helper.make_tensor_value_info("images", TensorProto.FLOAT, ["batch", 3, "height", "width"])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 3])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    onnx.save_model(model, str(artifacts / "classifier" / layout.MODEL))
    layout.write_record(artifacts / "classifier", layout.CONTRACT, contract([images], dims))
    job = JobSpec(
        model=ModelSpec(name="classifier", entrypoint="model.py:build"),
        targets=[TargetSpec(name="cpu", provider="CPUExecutionProvider")],
    )
    layout.write_record(artifacts / "classifier", layout.CONFIG, job)
    layout.write_manifest(artifacts / "classifier")
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("project")
def test_the_examples_print_what_the_page_says() -> None:
    blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    assert len(blocks) == 4
    names: dict[str, Any] = {}
    for code, expected in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(PAGE), "exec"), names)
        assert printed.getvalue() == expected
