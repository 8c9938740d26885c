"""The rules of stage contract that compare two exports, or an export with a config of another time."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from onnx_ci.artifact.layout import Artifact
from onnx_ci.records.contract import Contract
from onnx_ci.records.result import Finding
from onnx_ci.report import contract_diff
from onnx_ci.worker import stale
from tests.rules.projects import HERE, Stage

pytestmark = pytest.mark.torch

PROJECT = HERE / "contract" / "case" / "healthy"


def export(stage: Stage, tmp_path: Path, *changes: tuple[str, str]) -> Path:
    """Plays the project with its config changed, and gives its artifact."""
    project = Path(shutil.copytree(PROJECT, tmp_path / "project"))
    config = project / "onnx-ci.toml"
    text = config.read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    config.write_text(text, encoding="utf-8")
    played = stage.play(project, tmp_path / "out")
    assert played.told("fail", "error") == []
    return tmp_path / "out" / "artifacts" / "model"


def contract(artifact: Path) -> Contract:
    return Artifact(artifact).contract()


@pytest.fixture(scope="module")
def base(stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export(stage, tmp_path_factory.mktemp("base"))


def judge(base: Path, head: Path) -> list[tuple[str, str, str]]:
    found = contract_diff.judge(contract(base), contract(head))
    return [(one.rule, one.status, one.message) for one in found]


def test_contract_breaking_broken(stage: Stage, base: Path, tmp_path: Path) -> None:
    head = export(stage, tmp_path, ("min = 1", "min = 2"))
    assert judge(base, head) == [
        ("contract.breaking", "fail", "the range of batch was narrowed from [1, 4] to [2, 4]"),
    ]


def test_contract_breaking_healthy(stage: Stage, base: Path, tmp_path: Path) -> None:
    """The same break, and the contract's version says that it is meant."""
    raised = ("[models.model]", "[models.model]\ncontract_version = 2")
    head = export(stage, tmp_path, ("min = 1", "min = 2"), raised)
    assert [(rule, status) for rule, status, _ in judge(base, head)] == [("contract.breaking", "warn")]


def test_contract_compatible_broken(stage: Stage, base: Path, tmp_path: Path) -> None:
    """It can't be broken, but it tells what changed."""
    head = export(stage, tmp_path, ("max = 4", "max = 8"))
    assert judge(base, head) == [
        ("contract.compatible", "pass", "the range of batch was widened from [1, 4] to [1, 8]"),
    ]


def test_contract_compatible_healthy(stage: Stage, base: Path, tmp_path: Path) -> None:
    head = export(stage, tmp_path, ("[models.model]", "[models.model]\ntime_limit = 500"))
    assert judge(base, head) == [("contract.compatible", "pass", "the contract is the base's")]


def stale_findings(artifact: Path, config: Path) -> list[Finding]:
    stored = Artifact(artifact)
    return stale.judge(config, [(stored, stored.job())])["model"]


def test_contract_stale_broken(base: Path, tmp_path: Path) -> None:
    project = Path(shutil.copytree(PROJECT, tmp_path / "project"))
    config = project / "onnx-ci.toml"
    config.write_text(config.read_text(encoding="utf-8").replace("max = 4", "max = 8"), encoding="utf-8")
    (found,) = stale_findings(base, config)
    assert (found.rule, found.status, found.line) == ("contract.stale", "fail", 1)
    assert "dims.batch.max was 4, is 8" in found.message


def test_contract_stale_healthy(base: Path) -> None:
    (found,) = stale_findings(base, PROJECT / "onnx-ci.toml")
    assert (found.rule, found.status) == ("contract.stale", "pass")
