from __future__ import annotations

from pathlib import Path

import pytest

from onnx_ci.artifact.layout import Artifact

from .artifacts import write_artifact


@pytest.fixture
def healthy(tmp_path: Path) -> Artifact:
    return write_artifact(tmp_path / "linear")
