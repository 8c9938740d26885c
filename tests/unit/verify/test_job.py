from __future__ import annotations

import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnx_ci import rules
from onnx_ci.artifact import golden, layout
from onnx_ci.artifact.layout import Artifact
from onnx_ci.records import codec
from onnx_ci.records.messages import VerifyRequest
from onnx_ci.records.model import DimSpec, InputSpec, JobSpec, LatencySpec, TargetSpec
from onnx_ci.records.result import STAGES, Finding, Result
from onnx_ci.verify.job import verify

from .artifacts import (
    BIAS,
    CPU,
    GPU,
    WEIGHT,
    MadeCase,
    linear_case,
    linear_job,
    linear_model,
    model_of,
    value,
    write_artifact,
)


def run(artifact: Artifact, job: JobSpec | None = None, target: TargetSpec = CPU, stored: Path | None = None) -> Result:
    job = replace(job or linear_job(), latency=LatencySpec(budget_seconds=0.05))
    request = VerifyRequest(
        artifact=str(artifact.folder), target=target, job=job, golden=str(stored) if stored else None
    )
    result = verify(request, lambda stage: None)
    assert codec.loads(Result, codec.dumps(result)) == result
    known = rules.catalogue()
    assert [one.rule for one in result.findings if one.rule not in known] == []
    return result


def statuses(result: Result) -> dict[str, str]:
    rank = ["pass", "skip", "warn", "fail", "error"]
    found: dict[str, str] = {}
    for one in result.findings:
        found[one.rule] = max(found.get(one.rule, "pass"), one.status, key=rank.index)
    return found


def bad(result: Result) -> dict[str, Finding]:
    return {one.rule: one for one in result.findings if one.status in ("fail", "error", "warn")}


def test_a_healthy_artifact_passes(healthy: Artifact) -> None:
    seen: list[str] = []
    job = replace(linear_job(), latency=LatencySpec(budget_seconds=0.05))
    result = verify(VerifyRequest(artifact=str(healthy.folder), target=CPU, job=job), seen.append)
    stages = {"structure", "contract", "parity", "golden", "provider", "latency"}
    assert result.status == "pass"
    assert bad(result) == {}
    assert result.artifact == healthy.digest()
    assert result.provider == "CPUExecutionProvider"
    assert {one.stage for one in result.findings} == stages
    assert [STAGES.index(one.stage) for one in result.findings] == sorted(
        STAGES.index(one.stage) for one in result.findings
    )
    assert seen[:2] == ["structure", "contract"]
    assert seen[-1] == "unoptimized"
    assert seen.count("parity") == 1
    assert set(result.stages) == stages
    assert all(cost.seconds > 0 and cost.peak_bytes for cost in result.stages.values())
    assert {figures.case for figures in result.parity} == {"example", "batch=5"}


def test_each_output_of_each_case_has_every_figure(healthy: Artifact) -> None:
    rows = run(healthy).parity
    assert [(row.case, row.output) for row in rows] == [("example", "y"), ("batch=5", "y")]
    for row in rows:
        kept = codec.encode(row)
        assert [name for name, found in kept.items() if found is None] == []
        assert len(kept["max_abs_at"]) == 2
        assert row.argmax_agreement == 1.0
        assert row.cosine == pytest.approx(1.0)


def test_latency_keeps_every_sample_with_its_conditions(healthy: Artifact) -> None:
    timing = run(healthy, target=replace(CPU, threads=2)).latency[0]
    assert (timing.runner, timing.case, timing.threads, timing.transfers) == ("onnxruntime", "example", 2, "inside")
    assert timing.warmup >= 1
    assert 5 <= len(timing.samples_ms) <= 200
    assert min(timing.samples_ms) <= timing.p50_ms <= timing.p90_ms <= timing.p99_ms <= max(timing.samples_ms)


def test_findings_do_not_grow_with_the_number_of_cases(tmp_path: Path) -> None:
    cases = [linear_case(), *(linear_case(f"c{n}", n, "boundary") for n in range(1, 40))]
    job = linear_job(dims={"batch": DimSpec(min=1, max=64, example=2)})
    result = run(write_artifact(tmp_path / "a", cases=cases, job=job), job)
    assert result.status == "pass"
    assert max(Counter(one.rule for one in result.findings).values()) <= 2


def test_other_weights_than_pytorchs_fail_parity_and_are_not_timed(tmp_path: Path) -> None:
    wrong = WEIGHT.copy()
    wrong[1, 1] *= 1.01
    result = run(write_artifact(tmp_path / "a", model=linear_model(weight=wrong)))
    assert result.status == "fail"
    assert set(bad(result)) == {"parity.function", "parity.runtime", "parity.unoptimized"}
    assert "fails too, so the fault lies in the file" in bad(result)["parity.unoptimized"].message
    latency = next(one for one in result.findings if one.rule == "latency.measured")
    assert latency.status == "skip"
    assert "parity did not pass" in latency.message
    assert result.latency == []


def test_a_size_inside_the_contract_that_the_file_refuses(tmp_path: Path) -> None:
    result = run(write_artifact(tmp_path / "a", model=linear_model(batch=2)))
    assert bad(result)["contract.static-dim"].status == "fail"
    assert "batch=5" in bad(result)["parity.run"].message
    assert "Got invalid dimensions for input: x" in bad(result)["parity.run"].message


def test_production_sends_int32_where_the_file_takes_int64(tmp_path: Path) -> None:
    model = model_of(
        [helper.make_node("Gather", ["table", "ids"], ["y"], name="gather")],
        [value("ids", TensorProto.INT64, ["batch"])],
        [value("y", TensorProto.FLOAT, ["batch", 2])],
        [numpy_helper.from_array(WEIGHT, "table")],
    )
    ids = np.array([0, 2])
    cases = [
        MadeCase(name, {"ids": ids.astype(dtype)}, {"y": WEIGHT[ids]}, {"y": WEIGHT[ids].astype(float)}, origin)
        for name, dtype, origin in (("example", np.int64, "example"), ("production", np.int32, "user"))
    ]
    job = linear_job(inputs={"ids": InputSpec(dtype="int32", shape=["batch"])})
    result = run(write_artifact(tmp_path / "a", model=model, cases=cases, job=job), job)
    assert bad(result)["contract.dtype"].message == "ids: production sends int32, the file takes int64"
    assert bad(result)["contract.dtype"].file == "onnx-ci.toml"
    assert "production" in bad(result)["parity.run"].message
    assert statuses(result)["parity.unoptimized"] == "skip"


def test_a_missing_provider_is_an_error_and_nothing_is_measured(healthy: Artifact) -> None:
    result = run(healthy, target=GPU)
    assert result.status == "error"
    assert result.provider is None
    assert [one.rule for one in result.findings if one.status == "error"] == ["provider.active"]
    found = statuses(result)
    assert {rule for rule, status in found.items() if status == "skip"} == {
        "structure.load",
        "contract.refusal",
        "parity.run",
        "golden.missing",
        "latency.measured",
    }
    assert (result.parity, result.latency) == ([], [])


def test_an_operator_without_a_kernel_fails_structure(tmp_path: Path) -> None:
    kinds = [value(name, TensorProto.BFLOAT16, ["batch", 3]) for name in ("x", "y")]
    square = numpy_helper.from_array(np.eye(3, dtype=np.float32), "w")
    weight = helper.make_tensor("w", TensorProto.BFLOAT16, [3, 3], numpy_helper.to_array(square).ravel())
    model = model_of([helper.make_node("Gemm", ["x", "w"], ["y"], name="node_linear")], kinds[:1], kinds[1:], [weight])
    job = linear_job(inputs={})
    result = run(write_artifact(tmp_path / "a", model=model, cases=[], job=job), job)
    assert bad(result)["structure.load"].status == "fail"
    assert "no kernel for Gemm(13) of bfloat16" in bad(result)["structure.load"].message
    assert statuses(result)["parity.run"] == "skip"


def noisy_model():
    return model_of(
        [
            helper.make_node("RandomNormalLike", ["x"], ["noise"], name="noise"),
            helper.make_node("Add", ["x", "noise"], ["y"], name="add"),
        ],
        [value("x", TensorProto.FLOAT, ["batch", 3])],
        [value("y", TensorProto.FLOAT, ["batch", 3])],
    )


def test_noise_in_the_graph_fails_and_is_called_that(tmp_path: Path) -> None:
    x = np.ones((2, 3), np.float32)
    case = MadeCase("example", {"x": x}, {"y": x}, {"y": x.astype(float)}, "example", {"batch": 2})
    result = run(write_artifact(tmp_path / "a", model=noisy_model(), cases=[case]))
    assert result.status == "fail"
    assert "two runs" in " ".join(one.message for one in result.findings) or any(
        "nondeterministic" in figures.note or "two runs" in figures.note for figures in result.parity
    )


def test_dropout_that_only_optimization_removes_is_found(tmp_path: Path) -> None:
    # Without optimization a training-mode dropout runs; the optimizer takes it out, and the file seems right.
    model = linear_model()
    drop = helper.make_node("Dropout", ["product", "ratio", "training"], ["kept"], name="drop", seed=3)
    model.graph.node.insert(1, drop)
    model.graph.node[2].input[0] = "kept"
    model.graph.initializer.append(numpy_helper.from_array(np.array(0.5, np.float32), "ratio"))
    model.graph.initializer.append(numpy_helper.from_array(np.array(True), "training"))
    result = run(write_artifact(tmp_path / "a", model=model))
    assert result.status == "fail"


def test_a_case_that_pytorch_refuses_is_skipped_with_its_reason(tmp_path: Path) -> None:
    refused = MadeCase(
        "long", {"x": np.zeros((9, 3), np.float32)}, {}, None, "boundary", {}, {"refused": "IndexError: 9"}
    )
    result = run(write_artifact(tmp_path / "a", cases=[linear_case(), refused]))
    assert result.status == "pass"
    skipped = next(one for one in result.findings if one.rule == "parity.refused")
    assert "long: IndexError: 9" in skipped.message


def test_inputs_that_the_file_does_not_take_are_said(tmp_path: Path) -> None:
    case = linear_case()
    case.inputs["scale"] = np.ones(1, np.float32)
    result = run(write_artifact(tmp_path / "a", cases=[case]))
    assert set(bad(result)) == {"parity.unused-input"}
    assert result.status == "warn"


def test_bfloat16_goes_in_and_out(tmp_path: Path) -> None:
    kinds = [value(name, TensorProto.BFLOAT16, ["batch", 3]) for name in ("x", "y")]
    model = model_of(
        [
            helper.make_node("Cast", ["x"], ["wide"], name="up", to=TensorProto.FLOAT),
            helper.make_node("Cast", ["wide"], ["y"], name="down", to=TensorProto.BFLOAT16),
        ],
        kinds[:1],
        kinds[1:],
    )
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    half = x.astype(helper.tensor_dtype_to_np_dtype(TensorProto.BFLOAT16))
    case = MadeCase("example", {"x": half}, {"y": half}, {"y": x.astype(float)}, "example", {"batch": 2})
    job = linear_job(inputs={"x": InputSpec(dtype="bfloat16", shape=["batch", 3])})
    result = run(write_artifact(tmp_path / "a", model=model, cases=[case], job=job), job)
    assert bad(result) == {}


def tampered(artifact: Artifact, name: str, content: bytes | None) -> Artifact:
    if content is None:
        (artifact.folder / name).unlink()
    else:
        (artifact.folder / name).write_bytes(content)
    layout.write_manifest(artifact.folder)
    return artifact


@pytest.mark.parametrize("name", [layout.CONTRACT, layout.CASES, layout.SOURCE_MAP])
@pytest.mark.parametrize("content", [None, b"", b"[]", b"\xff\xfe", b'{"schema_version": 2}'])
def test_a_record_that_cannot_be_read_is_an_error_and_the_rest_is_judged(
    healthy: Artifact, name: str, content: bytes | None
) -> None:
    result = run(tampered(healthy, name, content))
    assert result.status == "error"
    assert [one.subject for one in result.findings if one.status == "error"] == [name]
    assert statuses(result)["structure.load"] == "pass"


# An empty oracle is no damage: it is an empty optional, and the output then has no float64 form.
DAMAGE = [b"garbage", b"\x08\x01\x10\x01\x4a\x01\x00"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *((name, content) for name in ("input_0.pb", "output_0.pb", "oracle_0.pb") for content in DAMAGE),
        ("input_0.pb", b""),
        ("output_0.pb", b""),
    ],
)
def test_damaged_test_data_never_passes(healthy: Artifact, name: str, content: bytes) -> None:
    result = run(tampered(healthy, f"test_data_set_0/{name}", content))
    assert result.status in ("error", "fail")
    assert {one.stage for one in result.findings if one.status in ("error", "fail")} <= {"parity"}


@pytest.mark.parametrize("content", [b"", b"garbage" * 50, None])
def test_a_model_file_that_is_none_ends_in_structure(healthy: Artifact, content: bytes | None) -> None:
    result = run(tampered(healthy, layout.MODEL, content))
    assert result.status in ("fail", "error")
    assert {one.stage for one in result.findings if one.status in ("fail", "error")} == {"structure"}
    assert statuses(result)["latency.measured"] == "skip"


def test_no_folder_at_all_is_an_error(tmp_path: Path) -> None:
    result = run(Artifact(tmp_path / "absent"))
    assert result.status == "error"
    assert result.artifact is None


def test_no_case_at_all_is_an_error(tmp_path: Path) -> None:
    result = run(write_artifact(tmp_path / "a", cases=[]))
    assert result.status == "error"


def stored_golden(artifact: Artifact, root: Path) -> Path:
    golden.accept(artifact.folder, root / "golden" / "linear")
    return root / "golden" / "linear"


def test_a_golden_that_still_holds_passes_and_stays_as_it_is(healthy: Artifact, tmp_path: Path) -> None:
    stored = stored_golden(healthy, tmp_path)
    before = {path: path.read_bytes() for path in stored.rglob("*") if path.is_file()}
    result = run(healthy, stored=stored)
    assert statuses(result)["golden.drift"] == "pass"
    assert {path: path.read_bytes() for path in stored.rglob("*") if path.is_file()} == before


def test_weights_that_moved_since_are_drift_though_parity_passes(healthy: Artifact, tmp_path: Path) -> None:
    stored = stored_golden(healthy, tmp_path)
    moved = WEIGHT + np.float32(0.01)
    case = linear_case()
    x = case.inputs["x"]
    exact = x.astype(float) @ moved.astype(float) + BIAS.astype(float)
    case = replace(case, outputs={"y": x @ moved + BIAS}, oracle={"y": exact})
    result = run(write_artifact(tmp_path / "moved", model=linear_model(weight=moved), cases=[case]), stored=stored)
    assert set(bad(result)) == {"golden.drift"}


def test_a_golden_of_another_contract_is_stale(healthy: Artifact, tmp_path: Path) -> None:
    stored = stored_golden(healthy, tmp_path)
    record = golden.read(stored)
    record.contract["dims"]["batch"]["max"] = 4
    (stored / golden.RECORD).write_text(codec.dumps(record))
    result = run(healthy, stored=stored)
    assert bad(result)["golden.stale"].message == (
        "the golden was accepted for another contract: dims.batch.max was 4, is 8"
    )


def test_a_golden_that_cannot_be_read_is_an_error(healthy: Artifact, tmp_path: Path) -> None:
    stored = stored_golden(healthy, tmp_path)
    (stored / "test_data_set_0" / "output_0.pb").write_bytes(b"garbage")
    assert statuses(run(healthy, stored=stored))["golden.unreadable"] == "error"
    (stored / golden.RECORD).unlink()
    assert statuses(run(healthy, stored=stored))["golden.unreadable"] == "error"


def test_a_missing_golden_warns_only_beside_others(
    healthy: Artifact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert statuses(run(healthy))["golden.missing"] == "skip"
    golden.accept(healthy.folder, tmp_path / "golden" / "other")
    assert statuses(run(healthy))["golden.missing"] == "warn"


@pytest.mark.parametrize(
    ("models", "output", "status"),
    [
        (["linear"], "y", "fail"),
        (["linear", "other"], "y", "warn"),  # the golden is another model's
        ([], "y", "warn"),  # an artifact of before the config's models were written down
        (["linear"], "scores", "warn"),  # the golden of a model with other outputs, which is gone
    ],
)
def test_a_golden_of_nobody_that_fits_a_model_without_one_was_renamed(
    models: list[str], output: str, status: str, healthy: Artifact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    stored = tmp_path / "golden" / "other"
    golden.accept(healthy.folder, stored)
    record = golden.read(stored)
    record.contract["outputs"][0]["name"] = output
    (stored / golden.RECORD).write_text(codec.dumps(record))
    found = bad(run(healthy, replace(linear_job(), models=models)))["golden.missing"]
    assert found.status == status
    assert ("the golden of linear looks renamed to other" in found.message) == (status == "fail")
    assert ("Rename the folder golden/other to linear" in found.hint) == (status == "fail")


def test_a_record_of_nobody_that_is_broken_is_nobodys_guard(
    healthy: Artifact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    stored = tmp_path / "golden" / "other"
    golden.accept(healthy.folder, stored)
    job = replace(linear_job(), models=["linear"])
    (stored / golden.RECORD).write_text("{")
    assert bad(run(healthy, job))["golden.missing"].status == "warn"


def test_torch_is_never_imported(healthy: Artifact) -> None:
    code = (
        "import sys\n"
        "class Refuse:\n"
        "    def find_spec(self, name, *more):\n"
        "        if name.partition('.')[0] in ('torch', 'pydantic', 'click', 'rich', 'github', 'onnxscript'):\n"
        "            raise ImportError(f'{name} is refused')\n"
        "sys.meta_path.insert(0, Refuse())\n"
        "from onnx_ci.records import codec\n"
        "from onnx_ci.records.messages import VerifyRequest\n"
        "from onnx_ci.verify.job import verify\n"
        "print(verify(codec.loads(VerifyRequest, sys.stdin.read()), lambda stage: None).status)\n"
    )
    job = replace(linear_job(), latency=LatencySpec(budget_seconds=0.05))
    request = codec.dumps(VerifyRequest(artifact=str(healthy.folder), target=CPU, job=job))
    done = subprocess.run([sys.executable, "-c", code], input=request, capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.returncode) == ("pass", 0), done.stderr


def test_what_an_earlier_run_showed_is_gone(tmp_path):
    artifact, repro = write_artifact(tmp_path / "linear"), tmp_path / "repro" / "linear.cpu"
    (repro / "y").mkdir(parents=True)
    job = replace(linear_job(), latency=LatencySpec(budget_seconds=0.05))
    verify(VerifyRequest(artifact=str(artifact.folder), target=CPU, job=job, repro=str(repro)), lambda stage: None)
    assert not repro.exists()


def test_weights_outside_the_folder_never_reach_the_twin(tmp_path):
    """They are the right ones, so that a twin that read them would pass."""
    artifact = write_artifact(tmp_path / "artifact", external=True)
    assert statuses(run(artifact))["parity.function"] == "pass"
    (beside,) = (path for path in artifact.folder.glob("*.data"))
    beside.rename(tmp_path / "outside.data")
    model = onnx.load(str(artifact.model), load_external_data=False)
    for tensor in model.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = "../outside.data"
    artifact.model.write_bytes(model.SerializeToString())
    layout.write_manifest(artifact.folder)
    result = run(artifact)
    (found,) = (one for one in result.findings if one.rule == "parity.function")
    assert (result.status, found.status) == ("fail", "skip")
    assert "not sound" in found.message
