"""The file in float64 against the oracle: what a small change does, whose fault it is, and what can't be told."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnx_ci.artifact import layout
from onnx_ci.records.result import OutputFigures
from onnx_ci.verify import function

from .artifacts import WEIGHT, linear_case, linear_model, model_of, value, write_artifact

OFF = WEIGHT.copy()
OFF[1, 1] *= 1 + 2e-6


def artifact_of(folder, weight=None, made=(), e_unoptimized=1e-16, e_exported=1e-6, rounding=None, **more):
    """A linear model whose export looked at the unoptimized graph, and found this."""
    artifact = write_artifact(folder, model=linear_model(weight=weight), **more)
    listed = artifact.cases()
    for at, case in enumerate(listed.cases):
        outputs = [
            replace(one, e_unoptimized=e_unoptimized, e_exported=e_exported, rounding=rounding) for one in case.outputs
        ]
        listed.cases[at] = replace(case, outputs=outputs)
    layout.write_record(folder, layout.CASES, replace(listed, made=None if made is None else list(made)))
    return artifact


def judged(artifact):
    return function.judge(artifact, artifact.cases())


def only(artifact):
    (found,) = judged(artifact).findings
    return found


def test_the_function_is_the_same(tmp_path):
    found = only(artifact_of(tmp_path))
    assert (found.rule, found.status, found.subject) == ("parity.function", "pass", "y")
    assert found.data["e"] < 1e-15
    assert found.data["limit"] == 1e-9


def test_a_weight_that_is_off_by_two_millionths_is_found_and_laid_at_the_optimizer(tmp_path):
    found = only(artifact_of(tmp_path, OFF))
    assert found.status == "fail"
    assert "so the optimizer brought it in" in found.message
    assert found.data["cases"] == ["example", "batch=5"]


def test_a_file_that_was_right_when_it_was_exported_was_changed_since(tmp_path):
    found = only(artifact_of(tmp_path, OFF, e_exported=1e-16))
    assert "a change of the file since then brought it in" in found.message
    assert "optimizer" not in found.message + found.hint


def test_an_artifact_that_does_not_say_what_its_file_was_leaves_both_open(tmp_path):
    found = only(artifact_of(tmp_path, OFF, e_exported=None))
    assert "so the optimizer or a later change of the file brought it in" in found.message


def test_the_older_exporter_has_no_optimizer_to_switch_off(tmp_path):
    artifact = artifact_of(tmp_path, OFF, e_unoptimized=None, e_exported=None)
    (found,) = function.judge(artifact, artifact.cases(), "torchscript").findings
    assert found.status == "fail"
    assert "optimizer" not in found.message + found.hint
    assert "do_constant_folding=False" in found.hint


def test_what_the_unoptimized_graph_has_too_is_laid_at_the_translation(tmp_path):
    assert "so capture or translation brought it in" in only(artifact_of(tmp_path, OFF, e_unoptimized=1e-6)).message


def test_rounding_of_constants_that_the_exporter_made_is_measured_where_it_is_asked_for(tmp_path):
    nearly = np.nextafter(WEIGHT, np.float32(9))
    assert only(artifact_of(tmp_path / "own", nearly)).status == "fail"
    found = only(artifact_of(tmp_path / "made", nearly, made=["weight"]))
    assert found.status == "pass"
    assert 1e-8 < found.data["rounding"] < 1e-7
    assert only(artifact_of(tmp_path / "off", OFF, made=["weight"])).status == "fail"


def test_rounding_that_only_the_unoptimized_graph_shows_counts_too(tmp_path):
    assert only(artifact_of(tmp_path, OFF, rounding=2e-6)).status == "pass"


def test_an_artifact_of_before_has_the_wider_limit(tmp_path):
    nearly = np.nextafter(WEIGHT, np.float32(9))
    assert only(artifact_of(tmp_path / "near", nearly, made=None, e_unoptimized=None)).status == "pass"
    assert only(artifact_of(tmp_path / "far", OFF, made=None, e_unoptimized=None)).status == "fail"


def test_without_an_oracle_it_says_why(tmp_path):
    case = linear_case()
    case.oracle, case.more = None, {"unoracled": "the module can't run in float64"}
    found = only(write_artifact(tmp_path, cases=[case]))
    assert (found.status, found.subject) == ("skip", "")
    assert "the module can't run in float64" in found.message


def test_an_operator_without_a_float64_form_is_named(tmp_path):
    nodes = [helper.make_node("Strange", ["x"], ["y"], domain="my.ops")]
    x, y = value("x", TensorProto.FLOAT, ["batch", 3]), value("y", TensorProto.FLOAT, ["batch", 2])
    found = only(write_artifact(tmp_path, model=model_of(nodes, [x], [y], domains={"my.ops": 1})))
    assert found.status == "skip"
    assert "my.ops:Strange" in found.message


def test_a_case_that_can_not_be_read_is_left_to_the_rule_that_says_so(tmp_path):
    artifact = artifact_of(tmp_path)
    (artifact.case_folder(0) / "oracle_0.pb").write_bytes(b"\xff")
    assert only(artifact).status == "skip"


def test_what_one_case_shows_stands_though_the_next_can_not_be_told(tmp_path):
    artifact = artifact_of(tmp_path, OFF)
    (artifact.case_folder(1) / "oracle_0.pb").write_bytes(b"\xff")
    fault, rest = judged(artifact).findings
    assert (fault.status, fault.data["cases"]) == ("fail", ["example"])
    assert (rest.status, rest.subject) == ("skip", "")
    assert rest.message.startswith("further cases were not judged, since a case can't be read")


def test_weights_beside_the_file_are_read(tmp_path):
    assert only(artifact_of(tmp_path, external=True)).status == "pass"


def test_the_figures_stand_beside_those_of_the_target_and_the_worse_counts(tmp_path):
    row = OutputFigures(
        case="example", output="y", dtype="float32", shape=[2, 2], dims={}, status="pass", against="oracle"
    )
    rows = [row, replace(row, case="another")]
    seen = function.shown(rows, judged(artifact_of(tmp_path, OFF)))
    assert [one.status for one in seen] == ["fail", "pass"]
    assert seen[0].e_function == pytest.approx(1e-6, rel=0.9)
    assert seen[0].function_limit == 1e-9
    assert seen[1] == rows[1]


def test_a_shape_that_is_another_in_float64_fails(tmp_path):
    artifact = artifact_of(tmp_path)
    model = onnx.load(str(artifact.model))
    model.graph.node[1].output[0] = "wide"
    model.graph.node.append(helper.make_node("Concat", ["wide", "wide"], ["y"], axis=0))
    onnx.save(model, str(artifact.model))
    found = only(artifact)
    assert found.status == "fail"
    assert "another shape, expected [2, 2], got [4, 2]" in found.message
