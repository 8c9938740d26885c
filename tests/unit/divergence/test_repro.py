"""The folder shows the fault to whoever has onnxruntime and numpy."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import onnx

from onnx_ci.divergence import repro
from onnx_ci.divergence.dataflow import Part

X = np.linspace(-1, 1, 8, dtype=np.float32)
MODEL = onnx.parser.parse_model(
    '<ir_version: 10, opset_import: ["" : 20]> g (float[8] x) => (float[8] y) { y = Gelu(x) }'
)
TANH = onnx.parser.parse_model(
    '<ir_version: 10, opset_import: ["" : 20]> g (float[8] x) => (float[8] y) { y = Gelu<approximate = "tanh">(x) }'
)


def run(model):
    import onnxruntime

    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(
        None, {"x": X}
    )[0]


def executed(folder):
    command = [sys.executable, "-I", str(folder / "repro.py")]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_the_script_shows_the_difference_until_it_is_gone(tmp_path):
    part = Part(model=TANH, inputs={"x": X}, expected=run(MODEL), actual=run(TANH))
    title = 'y goes wrong at "node_gelu" in C:\\models\\mlp.py'
    assert repro.write(tmp_path / "new" / "y", part, title=title) == ""
    folder = tmp_path / "new" / "y"
    assert sorted(path.name for path in folder.iterdir()) == ["repro.py", "submodel.onnx", "values.npz"]
    assert len((folder / "repro.py").read_text().splitlines()) <= 22
    shown = executed(folder)
    assert (shown.returncode, shown.stderr) == (1, "")
    assert "elements differ, by up to 0.000" in shown.stdout
    onnx.save(MODEL, folder / "submodel.onnx")
    assert executed(folder).returncode == 0


def test_nothing_in_it_is_pickled(tmp_path):
    values = np.array(["a", "b"], object)
    part = Part(model=MODEL, inputs={"x": values}, expected=X, actual=X)
    assert "numpy can store" in repro.write(tmp_path / "y", part, title="")
    assert not (tmp_path / "y").exists()


def test_a_folder_that_can_not_be_made_is_told_and_ends_nothing(tmp_path):
    (tmp_path / "file").write_text("")
    part = Part(model=MODEL, inputs={"x": X}, expected=X, actual=X)
    assert repro.write(tmp_path / "file" / "y", part, title="").startswith("it can't be written: ")


def test_a_name_is_never_a_path_and_no_two_become_one():
    names = ["logits", "a/b:0", "a_b_0", "a/b/0", "..", "../x", "_x", ""]
    made = [repro.plain(name) for name in names]
    assert made[0] == "logits"
    assert made[1].startswith("a_b_0-")
    assert len(set(made)) == len(names)
    assert all("/" not in one and one.strip(".") for one in made)
