"""Rules of stage environment that no project can break: what is installed in the interpreter, and faults of our own."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from onnx_ci.lock.installed import check_environment
from onnx_ci.records.environment import Environment
from onnx_ci.records.messages import Request
from onnx_ci.records.model import LockSpec, ModelSpec
from onnx_ci.records.result import Finding
from onnx_ci.worker.answers import Leg, environment_of, result_of
from onnx_ci.worker.launch import Workers
from tests.rules.projects import HERE, Played, Stage

NEEDED = frozenset({"numpy", "onnx", "onnxruntime"})
HEALTHY = HERE / "environment" / "lock-drift" / "healthy"

pytestmark = pytest.mark.torch


def described(python: Path, folder: Path, path: Path | None = None) -> Environment:
    """What an interpreter of the user's says of itself, with a folder of packages before its own."""
    environment = {**os.environ, **({"PYTHONPATH": str(path)} if path else {})}
    with Workers(python, folder=folder, environment=environment) as workers:
        return environment_of(workers, folder / "environment.log")


def installed(site: Path, name: str, version: str) -> Path:
    """A folder of packages in which one is installed, as far as its metadata tell."""
    folder = site / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    return site


def of(rule: str, found: list[Finding]) -> list[Finding]:
    return [one for one in found if one.rule == rule]


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return described(Path(sys.executable), tmp_path_factory.mktemp("here"))


def test_environment_two_runtimes_broken(tmp_path: Path) -> None:
    site = installed(tmp_path / "site", "onnxruntime-gpu", "1.30.0")
    found = check_environment(described(Path(sys.executable), tmp_path, site), NEEDED)
    (told,) = of("environment.two-runtimes", found)
    assert told.status == "fail"
    assert "onnxruntime-gpu 1.30.0" in told.message
    assert "pip uninstall -y onnxruntime onnxruntime-gpu" in told.hint


def test_environment_two_runtimes_healthy(tmp_path: Path) -> None:
    site = installed(tmp_path / "site", "onnxruntime-extensions", "0.14.0")
    found = check_environment(described(Path(sys.executable), tmp_path, site), NEEDED)
    assert [one.status for one in of("environment.two-runtimes", found)] == ["pass"]


def test_environment_too_old_broken(tmp_path: Path) -> None:
    site = installed(tmp_path / "site", "onnx", "1.16.2")
    found = check_environment(described(Path(sys.executable), tmp_path, site), NEEDED)
    (told,) = of("environment.too-old", found)
    assert (told.status, told.subject) == ("fail", "onnx")
    assert "onnx 1.16.2 is older than" in told.message


def test_environment_too_old_healthy(here: Environment) -> None:
    found = check_environment(here, NEEDED)
    assert [one.status for one in of("environment.too-old", found)] == ["pass"]


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter without any package."""
    folder = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return folder / "bin" / "python"


def test_environment_missing_broken(bare: Path, stage: Stage, tmp_path: Path) -> None:
    with Workers(bare, folder=stage.room, environment=os.environ) as workers:
        played = replace(stage, verifiers=workers).play(HEALTHY, tmp_path)
    told = [one for leg, one in played.findings() if leg == "cpu" and one.rule == "environment.missing"]
    assert {(one.subject, one.status) for one in told} == {(name, "error") for name in NEEDED}
    assert [one for _, one in played.findings() if one.rule == "environment.internal"] == []


def test_environment_missing_healthy(here: Environment) -> None:
    found = check_environment(here, NEEDED | {"torch", "onnxscript"})
    assert [one.status for one in of("environment.missing", found)] == ["pass"]


def answered(stage: Stage, tmp_path: Path, payload: dict[str, object]) -> Played:
    """What becomes of the answer to a request with this payload."""
    leg = Leg(model=ModelSpec(name="model", entrypoint="model.py"), target="cpu", verb="verify", required=True,
              lock=LockSpec())  # fmt: skip
    log = tmp_path / "model.cpu.log"
    request = Request(id=stage.verifiers.next_id(), verb="verify", log=str(log), time_limit=60, payload=payload)
    event = stage.verifiers.perform(request, lambda _: None)
    return Played(tmp_path, [result_of(event, leg, stage.verifiers, log, [])])


def test_environment_internal_broken(stage: Stage, tmp_path: Path) -> None:
    played = answered(stage, tmp_path, {"artifact": 3})
    print(played.told("error"))
    (told,) = [one for _, one in played.findings()]
    assert (told.rule, told.status) == ("environment.internal", "error")
    assert "a fault in onnx-ci" in told.message
    assert "Traceback" in (tmp_path / "model.cpu.log").read_text()


def test_environment_internal_healthy(stage: Stage, tmp_path: Path) -> None:
    played = stage.play(HEALTHY, tmp_path)
    assert [one for _, one in played.findings() if one.rule == "environment.internal"] == []
