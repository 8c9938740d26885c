"""A stored artifact against the config as it is now."""

from dataclasses import replace
from pathlib import Path

import pytest

from onnx_ci.artifact import layout
from onnx_ci.artifact.layout import Artifact
from onnx_ci.config.load import load
from onnx_ci.errors import UsageError
from onnx_ci.records.contract import Contract
from onnx_ci.records.environment import Environment
from onnx_ci.worker import stale

CONFIG = """\
[models.m]
entrypoint = "model.py:build"
preprocessing = ["io.py"]
inputs.x = { dtype = "float32", shape = ["batch", "height"] }
dims.batch = { min = 1, max = 32 }
dims.height = { min = 16, max = 64 }

[[models.m.variants]]
name = "low"
kwargs = { size = 16 }
dims = { height = 16 }

[[models.m.variants]]
name = "high"
dims = { height = 64 }
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "model.py").write_text("def build(): ...\n")
    (tmp_path / "io.py").write_text("scale = 255\n")
    (tmp_path / "onnx-ci.toml").write_text(CONFIG)
    return tmp_path


@pytest.fixture
def artifacts(project: Path) -> list:
    """The variants as an export leaves them, as far as this is about."""
    config = load(project / "onnx-ci.toml", cwd=project)
    made = []
    for model in config.models:
        folder = project / "artifacts" / f"{model.name}@{model.variant}"
        folder.mkdir(parents=True)
        contract = Contract(
            schema_version=1,
            model=model.name,
            variant=model.variant,
            contract_version=1,
            inputs=[],
            outputs=[],
            dims={},
            batch="independent",
            strategy="own",
            exporter="dynamo",
            opset=20,
            ir_version=10,
            domains={"": 20},
            environment=Environment(onnx_ci="1", python="3.11", platform="", cpu="", cores=1),
            preprocessing={"io.py": layout.sha256(project / "io.py")},
        )
        layout.write_record(folder, layout.CONTRACT, contract)
        made.append((Artifact(folder), config.job(model)))
    return made


def judged(project: Path, artifacts: list, text: str = CONFIG) -> dict:
    (project / "onnx-ci.toml").write_text(text)
    return {
        name: [(one.status, one.message) for one in found]
        for name, found in stale.judge(project / "onnx-ci.toml", artifacts).items()
    }


def test_an_artifact_of_the_config_as_it_is_now_is_not_stale(project, artifacts):
    said = [("pass", "it was exported under onnx-ci.toml as that is now")]
    assert judged(project, artifacts) == {"m@low": said, "m@high": said}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("max = 32", "max = 64", "dims.batch.max was 32, is 64"),
        ('"float32"', '"float16"', 'inputs.x.dtype was "float32", is "float16"'),
        ("preprocessing", 'batch = "mixed"\npreprocessing', 'batch was absent, is "mixed"'),
        ("preprocessing", "export.opset = 21\npreprocessing", "export.opset was absent, is 21"),
        ("preprocessing", "parity.budget = 8\npreprocessing", "parity.budget was 4.0, is 8.0"),
    ],
)
def test_each_field_of_the_config_that_changed_is_named(project, artifacts, old, new, said):
    for found in judged(project, artifacts, CONFIG.replace(old, new, 1)).values():
        assert found == [("fail", f"the artifact was exported under another onnx-ci.toml: {said}")]


def test_only_the_variant_that_changed_is_stale(project, artifacts):
    found = judged(project, artifacts, CONFIG.replace("size = 16", "size = 17"))
    assert found["m@low"][0][1].endswith("kwargs.size was 16, is 17")
    assert found["m@high"][0][0] == "pass"


def test_a_preprocessing_file_that_changed_on_disk_is_named(project, artifacts):
    (project / "io.py").write_text("scale = 1\n")
    ((status, message),) = judged(project, artifacts)["m@low"]
    assert status == "fail"
    assert "io.py was changed" in message


def test_other_line_ends_are_no_change(project, artifacts):
    (project / "io.py").write_bytes(b"scale = 255\r\n")
    assert judged(project, artifacts)["m@low"][0][0] == "pass"


@pytest.mark.parametrize(
    "text",
    [
        CONFIG.replace("preprocessing", "time_limit = 5\nmemory_limit = '1GiB'\npreprocessing"),
        "# one line more\n" + CONFIG,
        CONFIG + '[[models.m.variants]]\nname = "middle"\ndims = { height = 32 }\n',
        CONFIG + "[latency]\nbudget_seconds = 1\n",
    ],
)
def test_what_did_not_shape_the_artifact_makes_nothing_stale(project, artifacts, text):
    assert {found[0][0] for found in judged(project, artifacts, text).values()} == {"pass"}


def test_a_model_that_the_config_does_not_have_is_not_judged(project, artifacts):
    assert judged(project, artifacts, CONFIG.replace("models.m", "models.other")) == {"m@low": [], "m@high": []}


def test_a_runner_without_the_files_that_the_config_names_does_not_judge(project, artifacts):
    (project / "model.py").unlink()
    ((status, message),) = judged(project, artifacts)["m@low"]
    assert status == "skip"
    assert 'onnx-ci.toml can\'t be used here: "model.py": no such file' in message


def test_a_config_that_is_not_there_is_a_usage_error(project, artifacts):
    with pytest.raises(UsageError, match="no such file"):
        stale.judge(project / "none.toml", artifacts)


def test_a_contract_that_can_not_be_read_is_left_to_the_job(project, artifacts):
    (artifacts[0][0].folder / layout.CONTRACT).write_text("{}")
    assert judged(project, artifacts)["m@low"] == []


def test_an_artifact_whose_job_is_of_another_time_is_compared_field_by_field(project, artifacts):
    artifact, job = artifacts[0]
    older = replace(job, model=replace(job.model, contract_version=0))
    ((status, message),) = judged(project, [(artifact, older)])["m@low"]
    assert (status, message.rpartition(": ")[2]) == ("fail", "contract_version was 0, is 1")
