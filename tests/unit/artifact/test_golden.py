from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from onnx_ci.artifact import golden, layout
from onnx_ci.artifact.layout import ArtifactError
from onnx_ci.records.cases import Case, CaseList, CaseOutput
from onnx_ci.records.changes import changes
from onnx_ci.records.contract import Contract, DimContract, TensorContract
from onnx_ci.records.environment import Environment

CONTRACT = Contract(
    schema_version=1,
    model="net",
    variant=None,
    contract_version=1,
    inputs=[TensorContract(name="x", dtype="float32", shape=["batch", 3])],
    outputs=[TensorContract(name="y", dtype="float32", shape=["batch", "2*batch", 4])],
    dims={"batch": DimContract(min=1, max=8, declared=True)},
    batch="independent",
    strategy="own",
    exporter="dynamo",
    opset=20,
    ir_version=10,
    domains={"": 20},
    environment=Environment(
        onnx_ci="1", python="3.11.9", platform="Linux", cpu="a cpu", cores=2, packages={"torch": "2.13.0", "pip": "1"}
    ),
)


def write_artifact(folder: Path, *, content: bytes = b"1", contract: Contract = CONTRACT) -> Path:
    output = CaseOutput(name="y", dtype="float32", shape=[2, 4, 4], e_torch=1e-7)
    cases = [
        Case(index=0, name="example", origin="example", why="", dims={"batch": 2}, outputs=[output]),
        Case(index=1, name="batch=1", origin="boundary", why="", outputs=[output]),
        Case(index=2, name="refused", origin="user", why="", refused="too long"),
        Case(index=3, name="photo", origin="user", why="", outputs=[output]),
    ]
    folder.mkdir()
    for case in cases:
        where = folder / f"test_data_set_{case.index}"
        where.mkdir()
        for kind in ("input", "output", "oracle"):
            (where / f"{kind}_0.pb").write_bytes(content + str(case.index).encode())
    layout.write_record(folder, layout.CONTRACT, contract)
    layout.write_record(folder, layout.CASES, CaseList(schema_version=1, cases=cases))
    layout.write_manifest(folder)
    return folder


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_accept_keeps_the_users_cases_and_the_example_with_inputs_and_outputs(tmp_path: Path) -> None:
    target = tmp_path / "golden" / "net"
    written = golden.accept(write_artifact(tmp_path / "net"), target)
    files = tree(target)
    assert sorted(files) == [
        "golden.json",
        "test_data_set_0/input_0.pb",
        "test_data_set_0/output_0.pb",
        "test_data_set_1/input_0.pb",
        "test_data_set_1/output_0.pb",
    ]
    assert files["test_data_set_1/input_0.pb"] == b"13"
    assert sorted(str(path.relative_to(target)) for path in written) == sorted(files)
    record = golden.read(target)
    assert [(case.index, case.name, case.e_torch) for case in record.cases] == [
        (0, "example", {"y": 1e-7}),
        (1, "photo", {"y": 1e-7}),
    ]
    assert record.versions == {"torch": "2.13.0", "python": "3.11.9"}
    assert record.contract_digest == golden.digest(golden.promise(CONTRACT))


def test_accepting_the_same_artifact_again_changes_no_byte(tmp_path: Path) -> None:
    artifact, target = write_artifact(tmp_path / "net"), tmp_path / "golden" / "net"
    golden.accept(artifact, target)
    before = tree(target)
    golden.accept(artifact, target)
    assert tree(target) == before
    assert [path.name for path in target.parent.iterdir()] == ["net"]


def test_accept_takes_the_place_of_the_old_golden_and_leaves_other_files(tmp_path: Path) -> None:
    target = tmp_path / "golden" / "net"
    golden.accept(write_artifact(tmp_path / "old"), target)
    (target / "README.md").write_text("why these")
    (target / "test_data_set_7").mkdir()
    golden.accept(write_artifact(tmp_path / "new", content=b"2"), target)
    files = tree(target)
    assert files["README.md"] == b"why these"
    assert files["test_data_set_0/output_0.pb"] == b"20"
    assert not (target / "test_data_set_7").exists()


def test_a_changed_artifact_is_not_accepted_and_the_old_golden_stays(tmp_path: Path) -> None:
    artifact, target = write_artifact(tmp_path / "net"), tmp_path / "golden" / "net"
    golden.accept(artifact, target)
    before = tree(target)
    (artifact / "test_data_set_0" / "output_0.pb").write_bytes(b"other")
    with pytest.raises(ArtifactError, match="changed after the export"):
        golden.accept(artifact, target)
    assert tree(target) == before


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"schema_version": 1}', b'{"schema_version": 9}'])
def test_a_record_that_is_none_is_an_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / golden.RECORD).write_bytes(content)
    with pytest.raises(ArtifactError) as caught:
        golden.read(tmp_path)
    if b"9" in content:
        assert "schema version 9, this onnx-ci reads 1" in str(caught.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"contract_version": 2}, "contract_version was 1, is 2"),
        ({"dims": {"batch": DimContract(min=1, max=16, declared=True)}}, "dims.batch.max was 8, is 16"),
        (
            {"inputs": [TensorContract(name="x", dtype="float16", shape=["batch", 3])]},
            'inputs.x.dtype was "float32", is "float16"',
        ),
        (
            {"outputs": [TensorContract(name="z", dtype="float32", shape=["batch", "2*batch", 4])]},
            'outputs.y was {"dtype": "float32", "shape": ["batch", "*", 4]}, is absent',
        ),
        ({"frozen": {"scale": 2.0}}, "frozen.scale was absent, is 2.0"),
    ],
)
def test_a_changed_contract_is_named_by_its_field(change: dict[str, object], said: str) -> None:
    found = changes(golden.promise(CONTRACT), golden.promise(replace(CONTRACT, **change)))
    assert found[0] == said


@pytest.mark.parametrize(
    "change",
    [
        {"environment": replace(CONTRACT.environment, packages={"torch": "2.14.0"}, cpu="another")},
        {"opset": 21, "ir_version": 11, "domains": {"": 21}, "strategy": "public"},
        {"outputs": [TensorContract(name="y", dtype="float32", shape=["batch", "batch + batch", 4])]},
        {"dims": CONTRACT.dims | {"width": DimContract(min=2, max=None)}},
    ],
)
def test_another_version_or_machine_does_not_make_a_golden_stale(change: dict[str, object]) -> None:
    assert changes(golden.promise(CONTRACT), golden.promise(replace(CONTRACT, **change))) == []


def test_inputs_in_another_order_are_a_change() -> None:
    two = [TensorContract(name=name, dtype="int64", shape=["batch"]) for name in ("ids", "mask")]
    old, new = replace(CONTRACT, inputs=two), replace(CONTRACT, inputs=two[::-1])
    assert changes(golden.promise(old), golden.promise(new)) == ["the order of inputs changed"]


def test_a_promise_survives_json(tmp_path: Path) -> None:
    target = tmp_path / "golden" / "net"
    golden.accept(write_artifact(tmp_path / "net"), target)
    assert changes(golden.read(target).contract, golden.promise(CONTRACT)) == []


def test_goldens_of_models_that_are_gone_are_orphans(tmp_path: Path) -> None:
    for name in ("net", "old@480"):
        (tmp_path / name).mkdir()
        (tmp_path / name / golden.RECORD).write_text(json.dumps({}))
    (tmp_path / "README.md").write_text("not a golden")
    (tmp_path / "notes").mkdir()
    assert golden.orphans(tmp_path, {"net"}) == ["old@480"]
    assert golden.orphans(tmp_path / "absent", {"net"}) == []
    found = golden.orphan_findings(tmp_path, {"net"})
    assert [(one.rule, one.status, one.subject) for one in found] == [("golden.orphaned", "warn", "old@480")]


def test_the_tool_reads_goldens_without_numpy() -> None:
    code = "import sys, onnx_ci.artifact.golden; print(sorted({'numpy', 'onnx', 'onnxruntime'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kwargs": {"labels": 5}}, ["kwargs.labels was absent, is 5"]),
        ({"preprocessing": {"io.py": "b" * 64}}, ["io.py was changed (aaaaaaaa → bbbbbbbb)"]),
        ({"preprocessing": {"a.txt": "c" * 64}}, ["a.txt is new", "io.py is no longer named"]),
        ({"opset": 99, "strategy": "public"}, []),
    ],
)
def test_conditions_that_changed_are_named_by_their_field(change: dict[str, object], said: list[str]) -> None:
    made = replace(CONTRACT, preprocessing={"io.py": "a" * 64})
    assert golden.moved(golden.conditions(made), golden.conditions(replace(made, **change))) == said


def test_accepting_writes_down_the_conditions_and_an_older_record_has_none(tmp_path: Path) -> None:
    contract = replace(CONTRACT, kwargs={"labels": 5})
    golden.accept(write_artifact(tmp_path / "net", contract=contract), tmp_path / "golden")
    assert golden.read(tmp_path / "golden").made_under == {"kwargs": {"labels": 5}, "preprocessing": {}}
    record = tmp_path / "golden" / golden.RECORD
    older = {key: value for key, value in json.loads(record.read_text()).items() if key != "made_under"}
    record.write_text(json.dumps(older))
    assert golden.read(tmp_path / "golden").made_under is None
