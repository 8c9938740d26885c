from __future__ import annotations

import itertools
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, external_data_helper, helper, numpy_helper

from onnx_ci.artifact.layout import Artifact
from onnx_ci.numerics.regression import Samples
from onnx_ci.numerics.regression import compare as compare_runs
from onnx_ci.numerics.regression import judge as judge_samples
from onnx_ci.records.messages import VerifyRequest
from onnx_ci.records.model import DimSpec, InputSpec, JobSpec, LatencySpec
from onnx_ci.records.result import Finding, Result
from onnx_ci.records.source_map import Origin
from onnx_ci.verify import attribution, regression
from onnx_ci.verify.job import verify
from onnx_ci.verify.profile import NodeCost

from .artifacts import CPU, MadeCase, linear_job, model_of, value, write_artifact

WIDTH = 96
SPEC = LatencySpec(budget_seconds=2.0)


def chain(length: int, *, bias: float = 0.0, name: str = "x"):
    """y = x times the identity, so many times over: more work, the same numbers."""
    values = [name, *(f"h{at}" for at in range(length - 1)), "product"]
    nodes = [
        helper.make_node("MatMul", [given, "weight"], [made], name=f"node_{made}")
        for given, made in itertools.pairwise(values)
    ]
    nodes.append(helper.make_node("Add", ["product", "bias"], ["y"], name="node_y"))
    weights = {"weight": np.eye(WIDTH, dtype=np.float32), "bias": np.full(1, bias, np.float32)}
    return model_of(
        nodes,
        [value(name, TensorProto.FLOAT, ["batch", WIDTH])],
        [value("y", TensorProto.FLOAT, ["batch", WIDTH])],
        [numpy_helper.from_array(array, key) for key, array in weights.items()],
    )


def case(batch: int, origin: str = "example") -> MadeCase:
    x = np.random.default_rng(batch).normal(size=(batch, WIDTH)).astype(np.float32)
    return MadeCase(f"b{batch}", {"x": x}, {"y": x}, {"y": x.astype(np.float64)}, origin, {"batch": batch})


def job_of(spec: LatencySpec = SPEC) -> JobSpec:
    inputs = {"x": InputSpec(dtype="float32", shape=["batch", WIDTH])}
    made = linear_job(inputs=inputs, dims={"batch": DimSpec(min=1, max=256, example=64)})
    return replace(made, latency=spec)


def written(folder: Path, model, **more) -> Artifact:
    more = {"cases": [case(64), case(1, "boundary")], **more}
    return write_artifact(folder, model=model, job=job_of(), **more)


@pytest.fixture
def paced(monkeypatch: pytest.MonkeyPatch):
    """Both files run for real, and a clock that only they move says how long they took: head, base, base again."""

    def pace(head: float, base: float) -> None:
        def compare(*runs, **more):
            now = [0]

            def taking(run, milliseconds: float):
                def timed() -> None:
                    run()
                    now[0] += round(milliseconds * 1e6)

                return timed

            paces = (head, base, base)
            timed = [taking(run, pace) for run, pace in zip(runs, paces, strict=True)]
            return compare_runs(*timed, clock=lambda: now[0], **more)

        monkeypatch.setattr(regression.regression, "compare", compare)

    return pace


def compared(head: Artifact, base: Path, spec: LatencySpec = SPEC) -> tuple[Result, list[Finding]]:
    request = VerifyRequest(artifact=str(head.folder), target=CPU, job=job_of(spec), base=str(base))
    result = verify(request, lambda stage: None)
    return result, [one for one in result.findings if one.rule == regression.RULE]


def test_work_done_many_times_over_is_slower_and_says_where(tmp_path: Path, paced) -> None:
    paced(12.0, 1.0)
    origins = {made: Origin(node=f"node_{made}", op="MatMul", file="model.py", line=7) for made in ("h3", "product")}
    head, base = written(tmp_path / "head", chain(12), origins=origins), written(tmp_path / "base", chain(1))
    result, (found,) = compared(head, base.folder)
    assert found.status == "fail"
    assert found.data["low"] > found.data["limit"] >= 1.1
    operators = {one["op"]: (one["base"], one["head"]) for one in found.data["why"]["operators"]}
    assert operators["MatMul"] == (1, 12)
    assert "1 → 12 × MatMul" in found.message
    assert (found.file, found.line) == ("model.py", 7)
    assert {"onnxruntime", "head", "base"} == {timing.runner for timing in result.latency}


def test_work_saved_is_not_slower(tmp_path: Path, paced) -> None:
    paced(1.0, 12.0)
    head, base = written(tmp_path / "head", chain(1)), written(tmp_path / "base", chain(12))
    _, (found,) = compared(head, base.folder)
    assert (found.status, found.file) == ("pass", None)
    assert found.data["ratio"] < 1.0


def test_a_machine_that_differs_from_itself_is_told_and_no_time_is_promised(tmp_path: Path, monkeypatch) -> None:
    samples = Samples(head=[13.0] * 40, base=[10.0] * 40, again=[15.0] * 40, runs=1, warmup=1, seconds=2.0)
    monkeypatch.setattr(regression.regression, "compare", lambda *runs, **more: judge_samples(samples, 1.1, 1))
    _, (found,) = compared(written(tmp_path / "head", chain(2)), written(tmp_path / "base", chain(1)).folder)
    assert (found.status, "inconclusive" in found.message) == ("warn", True)
    assert "differ by as much on this machine" in found.hint


def test_the_same_bytes_are_not_timed(tmp_path: Path) -> None:
    head, base = written(tmp_path / "head", chain(2)), written(tmp_path / "base", chain(2))
    result, (found,) = compared(head, base.folder)
    assert found.status == "pass"
    assert "very bytes" in found.message
    assert [timing.runner for timing in result.latency] == ["onnxruntime"]


def test_without_a_base_nothing_is_said(tmp_path: Path) -> None:
    head = written(tmp_path / "head", chain(1))
    result = verify(VerifyRequest(artifact=str(head.folder), target=CPU, job=job_of()), lambda stage: None)
    assert [one for one in result.findings if one.rule == regression.RULE] == []


def test_a_base_that_was_tampered_with_is_no_base(tmp_path: Path) -> None:
    head, base = written(tmp_path / "head", chain(2)), written(tmp_path / "base", chain(1))
    base.model.write_bytes(head.model.read_bytes())
    _, (found,) = compared(head, base.folder)
    assert found.status == "skip"
    assert "model.onnx was changed after the export" in found.message


def test_a_base_is_kept_without_its_cases(tmp_path: Path, paced) -> None:
    paced(1.0, 1.0)
    head, base = written(tmp_path / "head", chain(2)), written(tmp_path / "base", chain(1))
    for folder in base.folder.glob("test_data_set_*"):
        shutil.rmtree(folder)
    _, (found,) = compared(head, base.folder)
    assert found.status == "pass", found.message


def test_a_base_whose_weights_lie_elsewhere_is_not_opened(tmp_path: Path) -> None:
    model = chain(1)
    external_data_helper.set_external_data(model.graph.initializer[0], "../../elsewhere.bin")
    model.graph.initializer[0].ClearField("raw_data")
    head, base = written(tmp_path / "head", chain(2)), written(tmp_path / "base", model)
    _, (found,) = compared(head, base.folder)
    assert found.status == "skip"
    assert "elsewhere.bin" in found.message


def test_a_base_without_the_model_is_said(tmp_path: Path) -> None:
    head = written(tmp_path / "head", chain(2))
    _, (found,) = compared(head, tmp_path / "none")
    assert (found.status, found.message) == (
        "skip",
        "not compared with the base, since there is none of this model",
    )


def test_a_base_that_takes_other_inputs_can_not_be_sent_the_same_request(tmp_path: Path) -> None:
    renamed = replace(case(64), inputs={"pixels": case(64).inputs["x"]})
    head = written(tmp_path / "head", chain(2))
    base = written(tmp_path / "base", chain(1, name="pixels"), cases=[renamed])
    _, (found,) = compared(head, base.folder)
    assert found.status == "skip"
    assert "other inputs (pixels)" in found.message


def test_a_base_that_can_not_be_read_is_no_base(tmp_path: Path) -> None:
    head = written(tmp_path / "head", chain(2))
    (tmp_path / "empty").mkdir()
    _, (found,) = compared(head, tmp_path / "empty")
    assert found.status == "skip"
    assert "can't be read" in found.message


def test_each_size_of_the_mix_is_timed_and_a_missing_one_is_said(tmp_path: Path, paced) -> None:
    paced(12.0, 1.0)
    head, base = written(tmp_path / "head", chain(12)), written(tmp_path / "base", chain(1))
    shapes = [{"batch": 64, "weight": 0.8}, {"batch": 1, "weight": 0.2}, {"batch": 128, "weight": 1.0}]
    result, found = compared(head, base.folder, replace(SPEC, shapes=shapes))
    assert [one.status for one in found] == ["warn", "fail"]
    assert "no case has batch=128" in found[0].message
    assert [(one["case"], one["weight"]) for one in found[1].data["sizes"]] == [("b64", 0.8), ("b1", 0.2)]
    assert [(one.runner, one.case) for one in result.latency[1:]] == [
        ("head", "b64"), ("base", "b64"), ("head", "b1"), ("base", "b1"),
    ]  # fmt: skip


@pytest.mark.parametrize("transfers", ["inside", "outside"])
def test_where_the_copies_are_is_recorded(tmp_path: Path, transfers) -> None:
    head, base = written(tmp_path / "head", chain(12)), written(tmp_path / "base", chain(1))
    result, _ = compared(head, base.folder, replace(SPEC, transfers=transfers))
    assert {timing.transfers for timing in result.latency} == {transfers}
    measured = next(one for one in result.findings if one.rule == "latency.measured")
    assert f"copies to the device {transfers}" in measured.message


class TestAttribution:
    def test_fused_and_lost_operators_are_counted_on_both_sides(self) -> None:
        head = [NodeCost("a", "Conv", "CPU", 50.0), NodeCost("t_kernel", "Transpose", "CPU", 30.0)]
        base = [NodeCost("a", "FusedConv", "CPU", 40.0)]
        why = attribution.compare(head, base, {"a": Origin(node="a", op="Conv", file="m.py", line=3)})
        assert {one["op"]: (one["base"], one["head"]) for one in why["operators"]} == {
            "Conv": (0, 1), "FusedConv": (1, 0), "Transpose": (0, 1),
        }  # fmt: skip
        assert why["overhead_us"] == {"head": 30.0, "base": 0.0}
        assert attribution.line_of(why) == {"file": "m.py", "line": 3}
        assert attribution.told(why) == "0 → 1 × Conv 0 → 0.05 ms, 0 → 1 × Transpose 0 → 0.03 ms"

    @pytest.mark.parametrize(("node", "line"), [("node_add", 3), ("node_add/fused", 3), ("node_add_1", None)])
    def test_a_line_is_that_of_a_node_it_was_made_of(self, node: str, line: int | None) -> None:
        origins = {"node_add": Origin(node="node_add", op="Add", file="m.py", line=3)}
        found = attribution.compare([NodeCost(node, "Add", "CPU", 1.0)], [], origins)
        assert found["hottest"][0].get("line") == line

    def test_nothing_that_takes_longer_is_nothing_told(self) -> None:
        base = [NodeCost("a", "Conv", "CPU", 50.0)]
        assert attribution.told(attribution.compare([], base, {})) == ""
