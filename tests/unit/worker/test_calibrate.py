"""What calibrating leaves in the file beside the config, what it says, and its exit codes."""

from pathlib import Path

import pytest

from onnx_ci.config import calibration
from onnx_ci.config.problems import ConfigError
from onnx_ci.errors import ExitCode
from onnx_ci.records.calibration import Calibration
from onnx_ci.records.messages import Calibrated
from onnx_ci.records.model import Config, JobSpec, ModelSpec, TargetSpec
from onnx_ci.worker.calibrate import Leg, exit_code, told, write

CPU = TargetSpec(name="cpu", provider="CPUExecutionProvider")


def made(**observed: float) -> Calibration:
    return Calibration(
        date="2026-12-01",
        provider="CPUExecutionProvider",
        options={},
        runs=[],
        cases={},
        versions={},
        machine={},
        artifact="a",
        contract="c",
        observed=observed,
    )


def leg(model: str = "a", target: str = "cpu", **observed: float) -> Leg:
    return Leg(model=model, target=target, answer=Calibrated(calibration=made(**observed)))


def config(root: Path, *names: str) -> Config:
    models = [ModelSpec(name=name, entrypoint="model.py:build") for name in names]
    return Config(path="onnx-ci.toml", models=models, targets=[CPU], root=str(root))


def observed(root: Path) -> dict:
    return {
        (model, target): one.observed
        for model, targets in calibration.read(root).models.items()
        for target, one in targets.items()
    }


def test_it_takes_the_place_of_its_own_legs_only(tmp_path):
    write(config(tmp_path, "a", "b"), [leg("a", y=1.5, gone=3.0), leg("b", y=2.5)])
    path = write(config(tmp_path, "a", "b"), [leg("a", y=1.25)])
    assert path == tmp_path / "onnx-ci.calibration.json"
    assert observed(tmp_path) == {("a", "cpu"): {"y": 1.25}, ("b", "cpu"): {"y": 2.5}}


def test_what_the_config_has_no_more_goes(tmp_path):
    write(config(tmp_path, "a", "b"), [leg("a", y=1.5), leg("b", y=2.5)])
    write(config(tmp_path, "a"), [leg("a", y=1.5)])
    assert observed(tmp_path) == {("a", "cpu"): {"y": 1.5}}


def test_equal_results_give_equal_bytes(tmp_path):
    first = write(config(tmp_path, "a", "b"), [leg("a", y=1.5), leg("b", y=2.5)]).read_bytes()
    assert write(config(tmp_path, "a", "b"), [leg("b", y=2.5), leg("a", y=1.5)]).read_bytes() == first


def test_nothing_is_written_where_nothing_was_found(tmp_path):
    assert write(config(tmp_path, "a"), [Leg(model="a", target="cpu", answer=None, problem="it died")]) is None
    assert list(tmp_path.iterdir()) == []


REFUSED = Leg(model="a", target="cpu", answer=Calibrated(calibration=made(y=2.0), refused={"z": "relL2 1"}))
ABSENT = Leg(model="a", target="gpu", answer=Calibrated(absent="no such provider"))
DIED = Leg(model="a", target="cpu", answer=None, problem="it died")


@pytest.mark.parametrize(
    ("legs", "named", "code"),
    [
        ([leg(y=1.0)], False, ExitCode.PASS),
        ([leg(y=1.0), REFUSED], False, ExitCode.BROKEN),
        ([leg(y=1.0), ABSENT], False, ExitCode.PASS),
        ([leg(y=1.0), ABSENT], True, ExitCode.UNKNOWN),
        ([ABSENT], False, ExitCode.UNKNOWN),
        ([REFUSED, DIED], False, ExitCode.UNKNOWN),
        ([], False, ExitCode.UNKNOWN),
    ],
)
def test_exit_codes(legs, named, code):
    assert exit_code(legs, named=named) == code


def test_it_says_what_each_output_may_err_from_now_on_and_what_was_refused():
    job = JobSpec(model=ModelSpec(name="a", entrypoint="model.py:build"), targets=[CPU])
    assert told(leg(x=0.0, y=3.1), job) == [
        "a on cpu: x: largest ratio 0, budget 4",
        "a on cpu: y: largest ratio 3.1, budget 6.2",
    ]
    assert told(REFUSED, job)[-1] == "a on cpu: z: refused, since it is wrong: relL2 1"
    assert told(ABSENT, job) == ["a on gpu: not calibrated: no such provider"]
    assert told(DIED, job) == ["a on cpu: could not tell: it died"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not a calibration file"),
        ("[]", "is not a calibration file"),
        ('{"schema_version": 9, "models": {}}', "schema version 9"),
        ('{"schema_version": 1, "models": {"a": {"cpu": {}}}}', "models.a.cpu.date"),
        ('{"schema_version": 1, "models": [], "more": 1}', "models"),
        ("[" * 100_000, "is not a calibration file"),
    ],
)
def test_what_calibrate_did_not_write_is_an_error_of_the_config(tmp_path, text, said):
    (tmp_path / calibration.NAME).write_text(text)
    with pytest.raises(ConfigError, match=said):
        calibration.read(tmp_path)


@pytest.mark.parametrize("value", ["NaN", "Infinity", "17", "-1"])
def test_a_ratio_that_cannot_be_is_refused(tmp_path, value):
    write(config(tmp_path, "a"), [leg("a", y=1.5)])
    path = tmp_path / calibration.NAME
    path.write_text(path.read_text().replace("1.5", value))
    with pytest.raises(ConfigError, match=r"observed\.y"):
        calibration.read(tmp_path)
