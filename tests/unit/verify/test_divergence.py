"""The provider's rung, with another file in the place of a provider that computes otherwise."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import onnx
import pytest

from onnx_ci.artifact import layout, tensors
from onnx_ci.artifact.layout import Artifact
from onnx_ci.divergence.session import CpuSession
from onnx_ci.numerics import parity
from onnx_ci.records.cases import Case
from onnx_ci.records.model import ParitySpec
from onnx_ci.records.source_map import Origin, SourceMap
from onnx_ci.twin import Twin
from onnx_ci.verify import divergence
from onnx_ci.verify.divergence import Providers

X = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32)
TEXT = (
    '<ir_version: 10, opset_import: ["" : 20]> g (float[n, 8] x) => (float[n, 8] y) {'
    " [up] a = Exp(x) [act] b = Gelu(a) y = Tanh(b) }"
)
CASE = Case(index=0, name="example", origin="example", why="")
ORIGINS = SourceMap(schema_version=1, values={"b": Origin(node="act", op="Gelu", file="m.py", line=7, module="act")})


@pytest.fixture
def artifact(tmp_path):
    """A file, its case, and what it gives in float64 as the oracle."""
    folder = tmp_path / "artifact"
    folder.mkdir()
    onnx.save(onnx.parser.parse_model(TEXT), folder / layout.MODEL)
    made = Artifact(folder)
    tensors.write_values(made.case_folder(0), "input", ["x"], [X])
    tensors.write_values(made.case_folder(0), "output", ["y"], [CpuSession(made.model).run({"x": X})["y"]])
    tensors.write_values(made.case_folder(0), "oracle", ["y"], [Twin.open(made.model).run({"x": X}).outputs["y"]])
    return made


def on_cpu(raw):
    return CpuSession(raw, optimized=False)


def other(raw):
    """A provider whose Gelu is the other one, in whatever model it is given."""
    model = onnx.load_from_string(raw)
    for node in model.graph.node:
        if node.op_type == "Gelu":
            node.attribute.append(onnx.helper.make_attribute("approximate", "tanh"))
    return CpuSession(model.SerializeToString(), optimized=False)


def judged(artifact, target, cpu=on_cpu, repros=None):
    values = [tensors.read_values(artifact.case_folder(0), kind) for kind in ("output", "oracle")]
    actual = target(artifact.model.read_bytes()).run({"x": X})
    compared = [parity.compare_case(CASE, values[0], actual, values[1], ParitySpec())]
    _, figures = parity.judge(compared, ParitySpec())
    providers = Providers("CPUExecutionProvider", target, cpu)
    return divergence.judge(artifact, compared, figures, ParitySpec(), providers, ORIGINS, repros)


def test_the_node_that_the_provider_computes_otherwise_is_named_and_shown(artifact, tmp_path):
    (found,) = judged(artifact, other, repros=tmp_path / "out" / "repro" / "m.gpu")
    assert (found.rule, found.status, found.subject) == ("parity.divergence", "fail", "y")
    assert (found.file, found.line) == ("m.py", 7)
    assert "node act (Gelu) of module act, made by m.py:7" in found.message
    assert "the provider is at fault: on the CPU the file is right" in found.message
    assert "times its budget (the CPU itself: " in found.message
    assert found.data["repro"] == "repro/m.gpu/y"
    script = tmp_path / "out" / found.data["repro"] / "repro.py"
    done = subprocess.run([sys.executable, "-I", str(script)], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")  # on this provider it is right: the fault is the other's


def test_a_provider_that_computes_the_same_is_not_looked_into(artifact):
    assert judged(artifact, lambda raw: CpuSession(raw)) == []


def test_what_the_cpu_gets_wrong_too_is_no_provider_s_fault(artifact):
    assert judged(artifact, other, cpu=other) == []
