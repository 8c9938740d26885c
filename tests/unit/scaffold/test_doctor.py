"""What is missing here."""

import dataclasses

from onnx_ci.errors import ExitCode, UsageError
from onnx_ci.records.environment import Environment
from onnx_ci.records.model import Config, LockSpec, Pin, TargetSpec
from onnx_ci.scaffold import doctor

PACKAGES = {"torch": "2.13.0", "onnx": "1.23.2", "onnxruntime": "1.32.0", "onnxscript": "0.7.2", "numpy": "2.1"}
ENVIRONMENT = Environment(
    onnx_ci="1",
    python="3.11.7",
    platform="Linux",
    cpu="",
    cores=2,
    packages=PACKAGES,
    providers=["CPUExecutionProvider"],
)
CONFIG = Config(
    path="onnx-ci.toml",
    models=[],
    targets=[TargetSpec(name="cpu", provider="CPUExecutionProvider")],
    lock=LockSpec(files={"a.lock": ""}, pins=[Pin(name="torch", version="2.13.0", file="a.lock")]),
)


def statuses(checks):
    found = {}
    for check in checks:
        found.setdefault(check.name, []).append(check.status)
    return found


def test_a_machine_that_has_all(tmp_path):
    (tmp_path / ".github/workflows").mkdir(parents=True)
    (tmp_path / ".github/workflows/ci.yml").write_text("    - uses: org/onnx-ci@v1\n")
    checks = doctor.examine(CONFIG, ENVIRONMENT, tmp_path)
    assert {status for many in statuses(checks).values() for status in many} == {"pass"}
    assert doctor.exit_code(checks) == ExitCode.PASS


def test_what_is_missing_is_told_with_what_to_do(tmp_path):
    bare = dataclasses.replace(ENVIRONMENT, packages={"onnx": "1.20"}, providers=[])
    checks = doctor.examine(CONFIG, bare, tmp_path)
    found = statuses(checks)
    assert found["packages"].count("error") == 4
    assert found["packages"].count("fail") == 1
    assert (found["target cpu"], found["lock"], found["workflow"]) == (["warn"], ["fail"], ["warn"])
    assert doctor.exit_code(checks) == ExitCode.BROKEN
    shown = doctor.render(checks)
    assert "FAIL  packages     torch is needed and is not installed for Python 3.11.7" in shown
    assert "onnx-ci init" in shown


def test_neither_config_nor_interpreter(tmp_path):
    error = UsageError("no onnx-ci.toml here", hint="Write a first one with: onnx-ci init")
    checks = doctor.examine(error, UsageError("no interpreter"), tmp_path)
    assert statuses(checks) == {"config": ["fail"], "interpreter": ["error"], "workflow": ["warn"]}
    assert doctor.exit_code(checks) == ExitCode.BROKEN


def test_a_gpu_target_on_a_machine_without_is_a_note(tmp_path):
    gpu = TargetSpec(name="gpu", provider="CUDAExecutionProvider", runs_on=["self-hosted", "gpu"])
    checks = doctor.examine(dataclasses.replace(CONFIG, targets=[gpu]), ENVIRONMENT, tmp_path)
    (check,) = [one for one in checks if one.name == "target gpu"]
    assert check.status == "warn"
    assert "self-hosted, gpu" in check.hint


def test_without_a_lock_versions_are_not_compared_and_that_is_said(tmp_path):
    checks = doctor.examine(dataclasses.replace(CONFIG, lock=LockSpec()), ENVIRONMENT, tmp_path)
    assert statuses(checks)["lock"] == ["warn"]
