from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from onnx_ci.records.result import Finding, finding
from onnx_ci.records.source_map import Origin, SourceMap
from onnx_ci.verify.places import placed

from .artifacts import WEIGHT, linear_job, linear_model, write_artifact
from .test_job import bad, run

MODEL = linear_job().model
ORIGINS = SourceMap(
    schema_version=1,
    values={
        "5": Origin(node="n5", op="Add", file="net.py", line=12, module="1"),
        "logits": Origin(node="n7", op="MatMul", file="net.py", line=20, fx="linear"),
        "linear_1": Origin(node="n8", op="MatMul", fx="linear_1"),
        "view": Origin(node="node_view", op="Reshape", file="net.py", line=31),
    },
)


def one(made: Finding, outputs: tuple[str, ...] = ("5", "logits", "linear_1", "getitem")) -> Finding:
    (found,) = placed([made], outputs, ORIGINS, MODEL)
    return found


@pytest.mark.parametrize("name", ["5", "getitem", "linear_1"])
@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("{}: relL2 1e-3", 'output "{}": relL2 1e-3'),
        ("{} of cpu drifted in batch 5: 5", 'output "{}" of cpu drifted in batch 5: 5'),
        ("in PyTorch it is so, not in the file: {}: off", 'in PyTorch it is so, not in the file: output "{}": off'),
    ],
)
def test_an_output_that_nobody_named_is_quoted(name: str, message: str, shown: str) -> None:
    found = one(finding("parity.runtime", "fail", name, message.format(name)))
    assert found.message == shown.format(name)
    assert found.subject == name


def test_a_name_that_the_user_gave_stays_as_it_is() -> None:
    assert one(finding("parity.runtime", "fail", "logits", "logits: off")).message == "logits: off"
    named = replace(MODEL, outputs=["5"])
    (found,) = placed([finding("parity.runtime", "fail", "5", "5: off")], ["5"], ORIGINS, named)
    assert found.message == "5: off"
    assert one(finding("provider.active", "error", "5", "5: no output"), ("logits",)).message == "5: no output"


def test_a_finding_points_to_the_line_of_its_output() -> None:
    found = one(finding("parity.runtime", "fail", "5", "5: off"))
    assert (found.file, found.line) == ("net.py", 12)


def test_a_case_that_stopped_points_to_the_line_of_the_node_that_the_runtime_names() -> None:
    said = "2 of 3 cases stopped: Non-zero status code returned while running Reshape node. Name:'node_view' Status"
    found = one(finding("parity.run", "fail", "", said))
    assert (found.file, found.line) == ("net.py", 31)


def test_without_a_known_line_it_is_the_models_in_the_config() -> None:
    for subject, message in (("linear_1", "off"), ("", "stopped in Name:'of_the_runtime_itself'")):
        found = one(finding("parity.runtime", "warn", subject, message))
        assert (found.file, found.line) == ("onnx-ci.toml", 3)


def test_a_line_that_is_known_stays_and_what_holds_has_none() -> None:
    known = finding("contract.dtype", "fail", "5", "off", file="other.py", line=1)
    assert one(known) == known
    for status in ("pass", "skip", "error"):
        assert one(finding("parity.runtime", status, "5", "fine")).file is None


def test_a_parity_failure_of_a_whole_artifact_has_its_line(tmp_path: Path) -> None:
    origins = {"y": Origin(node="node_add", op="Add", file="net.py", line=7)}
    found = bad(run(write_artifact(tmp_path / "a", model=linear_model(weight=WEIGHT * 2), origins=origins)))
    assert {(one.file, one.line) for one in found.values()} == {("net.py", 7)}
    stopped = bad(run(write_artifact(tmp_path / "b", model=linear_model(batch=2))))["parity.run"]
    assert (stopped.file, stopped.line) == ("onnx-ci.toml", 3)
