"""The script that shows an export that stops: here of models that export well, so that it ends without a word."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from onnx_ci.export import repro
from onnx_ci.export.loading import load
from onnx_ci.export.smallest import Part
from onnx_ci.export.types import Call
from onnx_ci.records.model import ModelSpec

pytestmark = pytest.mark.torch

MODEL = """
import torch
from torch import nn

class Part(nn.Module):
    def forward(self, pair, scale=1.0, *, more=None):
        return pair["a"] * scale + pair["b"][0].float() + more[0]

class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.part = Part()

    def forward(self, x):
        return self.part({"a": x, "b": (x.bfloat16(),)}, more=[x])

def make_model(width=4):
    return Model(width).eval()

def make_inputs():
    return [("one", {"x": torch.ones(2, 4)})]

def export_kwargs():
    return {"opset_version": 20, "custom_translation_table": {}}
"""


@pytest.fixture
def model(tmp_path, monkeypatch):
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "shown_model.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield load(ModelSpec(name="m", entrypoint="models/shown_model.py", kwargs={"width": 4}), tmp_path)
    del sys.modules["shown_model"]


def write(model, call, axes=None):
    folder = Path("out") / "export"
    part = Part("part", model.loaded.module.get_submodule("part"), call)
    repro.write(folder, part, axes, model, root=Path.cwd(), title='stops at """ here \\')
    return folder


def test_nested_and_keyword_inputs_and_options_are_those_of_the_export(model):
    x = torch.rand(2, 4)
    call = Call(({"a": x, "b": (x.bfloat16(),)},), {"scale": float("inf"), "more": [x]})
    folder = write(model, call, [[0], [0], [], [0]])
    text = (folder / repro.SCRIPT).read_text()
    assert "make_model(**{'width': 4}).get_submodule('part')" in text
    assert "({'a': given[0], 'b': (given[1].view(torch.bfloat16),)},), kwargs={'scale': float('inf')," in text
    assert "opset_version=20" in text
    command = [sys.executable, str(folder / repro.SCRIPT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def test_what_python_can_not_write_is_told(model):
    with pytest.raises(repro.NotWritten, match="of type object can't be written down"):
        write(model, Call((object(),), {}))
    assert not Path("out").exists()
