"""The examples of docs/runtime.md run, and print what stands below them."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

from onnx_ci.artifact import layout, variants

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
    layout.write_record(artifacts / "classifier", layout.CONTRACT, contract([images], dims))
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("project")
def test_the_examples_print_what_the_page_says() -> None:
    blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    assert len(blocks) == 3
    names: dict[str, Any] = {}
    for code, expected in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(PAGE), "exec"), names)
        assert printed.getvalue() == expected
