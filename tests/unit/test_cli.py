"""The command line as a process: its exit codes, pinned here, and that no bad input gives a traceback."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fakes.results import result
from tests.unit.verify.artifacts import CPU, GPU, WEIGHT, linear_job, linear_model, write_artifact

from onnx_ci.config.load import load
from onnx_ci.records import codec
from onnx_ci.records.model import JobSpec
from onnx_ci.records.report import Leg, Plan
from onnx_ci.records.result import finding

CONFIG = '[models.net]\nentrypoint = "model.py"\n'


def onnx_ci(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "onnx_ci", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stdout + done.stderr
    return done


@pytest.fixture
def project(tmp_path):
    (tmp_path / "onnx-ci.toml").write_text(CONFIG)
    (tmp_path / "model.py").write_text("def make_model(): ...\ndef make_inputs(): ...\n")
    return tmp_path


def reported(folder: Path, *findings) -> int:
    made = result("net", "export", list(findings))
    results = folder / "out" / "results"
    results.mkdir(parents=True)
    (results / "net.export.json").write_text(codec.dumps(made))
    return onnx_ci(folder, "report", "--out", "out").returncode


@pytest.mark.parametrize(
    ("status", "code"), [("pass", 0), ("warn", 0), ("fail", 1), ("error", 3), ("skip", 3)], ids=lambda value: str(value)
)
def test_the_exit_code_of_each_status(tmp_path, status, code):
    """A leg that did nothing but skip is no pass either."""
    assert reported(tmp_path, finding("export.exported", status, "", "said")) == code


def test_not_knowing_outranks_a_broken_promise(tmp_path):
    broken = finding("contract.range", "fail", "batch", "narrowed")
    assert reported(tmp_path, broken, finding("environment.worker", "error", "", "died")) == 3


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["run", "--config", "nothing.toml"], 2, "nothing.toml: no such file"),
        (["run", "--nonsense"], 2, "No such option"),
        (["frobnicate"], 2, "No such command"),
        (["rule", "parity.runtim"], 2, "Did you mean parity.runtime"),
        (["plan", "--model", "nett"], 4, "Did you mean 'net'"),
        (["plan", "--target", "gpu"], 4, "--target"),
        (["verify"], 4, "no artifact in onnx-ci-out/artifacts"),
        (["golden", "accept"], 4, "no artifact in onnx-ci-out/artifacts"),
        (["calibrate"], 4, "no artifact in onnx-ci-out/artifacts"),
        (["report"], 3, ""),
        (["run", "--python", "no-such-python"], 2, "no such interpreter"),
        (["run", "--out", "model.py"], 2, "is a file"),
        (["report", "--plan", "nothing.json"], 3, "nothing.json"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_each_wrong_call_has_its_code_and_says_what_is_wrong(project, arguments, code, said):
    done = onnx_ci(project, *arguments)
    assert done.returncode == code
    assert said in done.stdout + done.stderr


def test_five_errors_in_a_config_come_at_once(project):
    (project / "onnx-ci.toml").write_text(
        '[models.net]\nentrypoint = "missing.py:build"\ndims.batch = { min = 4, max = 2, exampel = 3 }\n'
        'inputs.x = { dtype = "flot32", shape = ["batch"] }\n[targets.gpu]\nprovider = "CUDA"\n'
    )
    done = onnx_ci(project, "plan")
    assert done.returncode == 2
    for said in ("onnx-ci.toml:2: ", "min 4 is larger", "did you mean example?", "did you mean float32?", "CUDAExec"):
        assert said in done.stderr
    assert "5 problems in onnx-ci.toml" in done.stderr


def test_a_lock_file_that_is_named_and_missing_is_a_config_error(project):
    (project / "onnx-ci.toml").write_text(CONFIG + '[lock]\nfiles = ["requirements.lock"]\n')
    done = onnx_ci(project, "plan")
    assert done.returncode == 2
    assert "requirements.lock" in done.stderr


def test_calibrating_writes_a_file_that_the_next_run_reads(project):
    model = replace(linear_job().model, name="net")
    write_artifact(project / "onnx-ci-out" / "artifacts" / "net", job=JobSpec(model=model, targets=[CPU, GPU]))
    done = onnx_ci(project, "calibrate")
    assert done.returncode == 0, done.stderr
    assert "net on cpu: y: largest ratio 0, budget 4" in done.stdout
    assert "A ratio is the runtime's error over PyTorch's own" in done.stdout
    assert "0: no run errs more than passes whatever the budget" in done.stdout
    assert "net on gpu: not calibrated: CUDAExecutionProvider" in done.stdout
    assert "onnx-ci.calibration.json: commit it" in done.stdout
    (net,) = load(project / "onnx-ci.toml", cwd=project).models
    assert net.parity.calibrations["cpu"].observed == {"y": 0.0}
    assert onnx_ci(project, "calibrate", "--target", "gpu").returncode == 3
    assert onnx_ci(project, "calibrate", "--target", "tpu").returncode == 4


def test_calibrating_a_wrong_model_is_a_broken_promise(project):
    job = JobSpec(model=replace(linear_job().model, name="net"), targets=[CPU])
    model = linear_model(weight=2 * WEIGHT)
    write_artifact(project / "onnx-ci-out" / "artifacts" / "net", job=job, model=model)
    done = onnx_ci(project, "calibrate", "--model", "net")
    assert done.returncode == 1
    assert "net on cpu: y: refused, since it is wrong: " in done.stdout


def test_judging_alone_prints_every_finding_that_somebody_must_look_at(project):
    job = JobSpec(model=replace(linear_job().model, name="net"), targets=[CPU])
    model = linear_model(weight=2 * WEIGHT)
    write_artifact(project / "onnx-ci-out" / "artifacts" / "net", job=job, model=model)
    done = onnx_ci(project, "verify")
    assert done.returncode == 1
    held = json.loads((project / "onnx-ci-out" / "results" / "net.cpu.json").read_text())["findings"]
    broken = [one for one in held if one["status"] == "fail"]
    assert len(broken) > 1
    assert all(f"fail   {one['rule']} net on cpu" in done.stdout for one in broken)
    assert f"{len(broken)} broken" in done.stdout.splitlines()[-1]


def test_a_calibration_that_cannot_be_read_is_a_config_error(project):
    (project / "onnx-ci.calibration.json").write_text("{}")
    done = onnx_ci(project, "plan")
    assert done.returncode == 2
    assert "onnx-ci.calibration.json" in done.stderr
    assert "onnx-ci calibrate" in done.stderr


def test_a_result_of_another_schema_version_is_could_not_tell_and_both_are_named(project):
    results = project / "out" / "results"
    results.mkdir(parents=True)
    (results / "net.export.json").write_text(
        json.dumps(codec.encode(result("net", "export", [])) | {"schema_version": 7})
    )
    done = onnx_ci(project, "report", "--out", "out")
    assert done.returncode == 3
    assert "schema version 7" in done.stdout
    assert "reads version 1" in done.stdout


def test_a_missing_leg_is_could_not_tell(project):
    legs = [Leg(model="net", variant=None, target="export", required=True)]
    (project / "plan.json").write_text(codec.dumps(Plan(schema_version=1, config="onnx-ci.toml", legs=legs)))
    done = onnx_ci(project, "report", "--plan", "plan.json")
    assert done.returncode == 3
    assert "no result" in done.stdout


def test_help_and_plan_start_without_what_models_need(project):
    refuse = (
        "import sys\n"
        "class No:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name.partition('.')[0] in ('torch', 'onnx', 'onnxruntime', 'numpy'):\n"
        "            raise ImportError(name)\n"
        "sys.meta_path.insert(0, No())\n"
        "sys.argv = ['onnx-ci', *sys.argv[1:]]\n"
        "from onnx_ci.cli import main\n"
        "main()\n"
    )
    for arguments in (["--help"], ["plan"], ["report"], ["rule", "parity.runtime"], ["init"]):
        done = subprocess.run(
            [sys.executable, "-c", refuse, *arguments], cwd=project, capture_output=True, text=True, check=False
        )
        assert "ImportError" not in done.stderr, arguments
        assert done.returncode in (0, 3), (arguments, done.stderr)


def test_help_loads_no_job():
    code = (
        "import sys; sys.argv = ['onnx-ci', '--help']\n"
        "from onnx_ci.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print([name for name in sys.modules if name in ('pydantic', 'rich', 'github', 'onnx_ci.commands')])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
