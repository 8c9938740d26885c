"""A config that is right: what becomes of it."""

import json
from pathlib import Path

import pytest

from onnx_ci.config.load import load
from onnx_ci.config.problems import ConfigError
from onnx_ci.config.source import locate, read
from onnx_ci.errors import ExitCode, UsageError
from onnx_ci.records import codec
from onnx_ci.records.model import Config, DimSpec, JobSpec, LatencySpec, TargetSpec, Tolerance

WHOLE = """
[models.classifier]
entrypoint  = "models/classifier.py:build"
reference   = "models/classifier.py:original"
kwargs      = { num_classes = 10, deep = [1, { a = "b" }] }
input_names = ["images"]
outputs     = ["logits"]
cases       = ["models/classifier.py:cases", "samples/*.npz", "samples/test_data_set_*"]
inputs.images = { dtype = "float32", shape = ["batch", 3, "height", "width"], low = 0.0, high = 1 }
dims.batch  = { min = 1, max = 32, example = 2 }
dims.height = { min = 32, max = 512, example = 224, multiple_of = 1 }
dims.width  = { min = 32, max = 512, example = 256 }
batch       = "mixed"
contract_version = 2
time_limit  = 600
memory_limit = "8GiB"
custom_ops  = ["libmyops.so"]
preprocessing = ["model.py"]

[models.classifier.export]
exporter = "torchscript"
opset = 20
max_ir = 10
single_file = true
[models.classifier.parity]
budget = 4
ties   = "exact"
allow_nan = ["logits"]
[models.classifier.parity.outputs.logits]
rtol = 1e-4
atol = 0
reason = "int8 head, reviewed in #12"
expires = 2027-06-01

[models.a]
entrypoint = "package.module:build"

[targets.cpu]
provider = "CPUExecutionProvider"
threads  = 2
[targets.gpu]
provider = "CUDAExecutionProvider"
options  = { use_tf32 = 0 }
fallback = "allow"
cpu_ops  = { NonMaxSuppression = "no kernel in CUDA" }
session  = { "session.set_denormal_as_zero" = 1 }
optimization = "extended"
deterministic = false
budget   = 16
runs_on  = ["self-hosted", "linux", "gpu"]
required = false

[golden]
dir = "golden/reviewed"
[latency]
max_regression = 1.25
budget_seconds = 10
shapes = [{ batch = 1, weight = 0.8 }, { batch = 8, weight = 0.2 }]
transfers = "outside"
torch_compile = true
[lock]
files = ["requirements.lock"]
drift = "warn"
"""


def test_each_key_arrives(project):
    config = project(WHOLE)
    model = config.models[0]
    assert model.entrypoint == "models/classifier.py:build"
    assert model.reference == "models/classifier.py:original"
    assert model.kwargs == {"num_classes": 10, "deep": [1, {"a": "b"}]}
    assert model.input_names == ["images"]
    assert model.outputs == ["logits"]
    assert model.cases == ["models/classifier.py:cases", "samples/*.npz", "samples/test_data_set_*"]
    assert model.inputs["images"].shape == ["batch", 3, "height", "width"]
    assert (model.inputs["images"].dtype, model.inputs["images"].low, model.inputs["images"].high) == ("float32", 0, 1)
    assert model.dims["height"] == DimSpec(min=32, max=512, example=224)
    assert (model.batch, model.contract_version) == ("mixed", 2)
    assert (model.time_limit, model.memory_limit) == (600.0, 8 * 2**30)
    assert (model.custom_ops, model.preprocessing) == (["libmyops.so"], ["model.py"])
    assert (model.export.exporter, model.export.opset, model.export.max_ir) == ("torchscript", 20, 10)
    assert model.export.single_file is True
    assert (model.parity.budget, model.parity.ties, model.parity.allow_nan) == (4.0, "exact", ["logits"])
    reason = "int8 head, reviewed in #12"
    assert model.parity.outputs == {"logits": Tolerance(rtol=1e-4, atol=0.0, reason=reason, expires="2027-06-01")}
    assert config.targets[0] == TargetSpec(name="cpu", provider="CPUExecutionProvider", threads=2)
    assert config.targets[1] == TargetSpec(
        name="gpu",
        provider="CUDAExecutionProvider",
        options={"use_tf32": 0},
        fallback="allow",
        cpu_ops=["NonMaxSuppression"],
        cpu_reasons={"NonMaxSuppression": "no kernel in CUDA"},
        session={"session.set_denormal_as_zero": 1},
        optimization="extended",
        deterministic=False,
        budget=16,
        runs_on=["self-hosted", "linux", "gpu"],
        required=False,
    )
    assert config.golden_dir == "golden/reviewed"
    assert config.latency == LatencySpec(
        max_regression=1.25,
        budget_seconds=10.0,
        shapes=[{"batch": 1, "weight": 0.8}, {"batch": 8, "weight": 0.2}],
        transfers="outside",
        torch_compile=True,
    )
    assert (config.lock.files, config.lock.drift) == ({"requirements.lock": ""}, "warn")


def test_a_job_is_the_same_after_its_way_through_json(project):
    job = project(WHOLE).job(project(WHOLE).models[0])
    assert codec.loads(JobSpec, codec.dumps(job)) == job


def test_models_keep_the_order_of_the_file(project):
    assert [model.name for model in project(WHOLE).models] == ["classifier", "a"]


def test_a_model_knows_where_it_is_declared(project):
    model = project(WHOLE).models[1]
    assert (model.declared_in, model.declared_at) == ("onnx-ci.toml", WHOLE.splitlines().index("[models.a]") + 1)


def test_the_smallest_config_has_a_target(project):
    config = project('[models.m]\nentrypoint = "model.py"\n')
    assert config.targets == [TargetSpec(name="cpu", provider="CPUExecutionProvider")]
    assert config.targets[0].runs_on == ["ubuntu-latest"]
    assert config.golden_dir == "golden"


def test_a_single_label_needs_no_array(project):
    text = '[models.m]\nentrypoint = "model.py"\n[targets.t]\nprovider = "CPUExecutionProvider"\nruns_on = "big"\n'
    assert project(text).targets[0].runs_on == ["big"]


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("90", 90), ("0.5", 0.5), ('"90s"', 90), ('"10min"', 600), ('"10m"', 600), ('"1.5h"', 5400)],
)
def test_times(project, written, seconds):
    assert project(f'[models.m]\nentrypoint = "model.py"\ntime_limit = {written}').models[0].time_limit == seconds


@pytest.mark.parametrize(
    ("written", "size"), [('"8GiB"', 2**33), ('"1.5 GiB"', 3 * 2**29), ('"500MB"', 5 * 10**8), ("134217728", 2**27)]
)
def test_amounts_of_memory(project, written, size):
    assert project(f'[models.m]\nentrypoint = "model.py"\nmemory_limit = {written}').models[0].memory_limit == size


def test_min_zero_is_legal(project):
    text = '[models.m]\nentrypoint = "model.py"\ndims.n = { min = 0, max = 8 }'
    assert project(text).models[0].dims["n"].min == 0


def test_a_provider_of_a_plugin_is_taken_by_its_full_name(project):
    text = '[models.m]\nentrypoint = "model.py"\n[targets.t]\nprovider = "AcmeNpuExecutionProvider"\n'
    assert project(text).targets[0].provider == "AcmeNpuExecutionProvider"


def test_pyproject_holds_a_config_too(project):
    text = f'[project]\nname = "shop"\n{WHOLE}'.replace("[models", "[tool.onnx-ci.models")
    for table in ("targets", "golden", "latency", "lock"):
        text = text.replace(f"[{table}", f"[tool.onnx-ci.{table}")
    config = project(text, "pyproject.toml")
    assert len(config.models) == 2
    assert config.path == "pyproject.toml"
    assert config.models[1].declared_at == text.splitlines().index("[tool.onnx-ci.models.a]") + 1


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(project):
    text = '\ufeff[models.m]\r\nentrypoint = "model.py"\r\n\r\n[models.n]\r\nentrypoint = "model.py"\r\n'
    (project.root / "onnx-ci.toml").write_bytes(text.encode())
    config = load(None, cwd=project.root)
    assert [model.declared_at for model in config.models] == [1, 4]


def test_the_config_is_found_from_a_folder_below_in_the_same_repository(project):
    project(WHOLE)
    (project.root / ".git").mkdir()
    config = load(None, cwd=project.root / "samples")
    assert config.path == "onnx-ci.toml"
    assert Path(config.root) == project.root


def test_outside_a_repository_only_this_folder_is_looked_at(project):
    project(WHOLE)
    with pytest.raises(UsageError, match=r"no onnx-ci\.toml here"):
        load(None, cwd=project.root / "samples")


def test_a_config_below_the_root_of_the_repository_is_named_from_there(project):
    (project.root / ".git").mkdir()
    (project.root / "models" / "onnx-ci.toml").write_text('[models.m]\nentrypoint = "classifier.py"\n')
    config = load(Path("models/onnx-ci.toml"), cwd=project.root)
    assert config.path == "models/onnx-ci.toml"
    assert config.models[0].declared_in == "models/onnx-ci.toml"
    assert Path(config.root) == project.root / "models"


def test_two_configs_in_one_folder_are_one_too_many(project):
    project(WHOLE)
    (project.root / "pyproject.toml").write_text('[tool.onnx-ci.models.m]\nentrypoint = "model.py"\n')
    with pytest.raises(UsageError, match=r"both onnx-ci\.toml and") as caught:
        load(None, cwd=project.root)
    assert caught.value.exit_code == ExitCode.USAGE
    assert load(Path("onnx-ci.toml"), cwd=project.root).path == "onnx-ci.toml"


@pytest.mark.parametrize("other", ["[project]\nname = 'x'\n", "[tool.onnx-ci]\n", "not = [toml"])
def test_a_pyproject_without_a_config_is_no_rival(project, other):
    project(WHOLE)
    (project.root / "pyproject.toml").write_text(other)
    assert load(None, cwd=project.root).path == "onnx-ci.toml"


def test_an_empty_onnx_ci_toml_is_no_rival_either(project):
    (project.root / "onnx-ci.toml").write_text("# moved to pyproject.toml\n")
    (project.root / "pyproject.toml").write_text('[tool.onnx-ci.models.m]\nentrypoint = "model.py"\n')
    assert load(None, cwd=project.root).path == "pyproject.toml"


def test_no_config_at_all_says_how_to_get_one(tmp_path):
    with pytest.raises(UsageError) as caught:
        locate(None, cwd=tmp_path)
    assert "onnx-ci init" in caught.value.hint
    assert caught.value.exit_code == ExitCode.USAGE


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"models = [", "onnx-ci.toml:1: is not valid TOML"),
        (b'a = 1\na = "\xff"', "onnx-ci.toml:2: is not UTF-8: byte 0xff"),
        (b"a = 1\n\na = 2\n", "onnx-ci.toml:3: is not valid TOML: Cannot overwrite a value"),
        (b"a = " + b"[" * 5000 + b"]" * 5000, "is not TOML that can be read: nested too deep"),
        (b"a = " + b"9" * 5000, "is not valid TOML"),
        (b"models.m.kwargs" + b".a" * 3000 + b" = 1", "onnx-ci.toml: nests tables too deep"),
        (b"", "onnx-ci.toml: models: missing"),
        (b"models = 3", "onnx-ci.toml:1: models: expected a table, got 3"),
        (b"[models]", "no model is declared"),
    ],
)
def test_a_file_that_is_no_config_gives_one_clear_error(tmp_path, raw, said):
    (tmp_path / "onnx-ci.toml").write_bytes(raw)
    with pytest.raises(ConfigError) as caught:
        load(None, cwd=tmp_path)
    assert said in str(caught.value)
    assert len(caught.value.problems) == 1
    assert caught.value.exit_code == ExitCode.USAGE


def test_a_file_that_is_not_there_names_one_that_is(project):
    project(WHOLE)
    with pytest.raises(ConfigError, match=r"no such file\n.*did you mean onnx-ci.toml\?"):
        load(Path("onnxci.toml"), cwd=project.root)


def test_a_folder_is_not_a_config(project):
    with pytest.raises(ConfigError, match="models: is a folder, not a file"):
        load(Path("models"), cwd=project.root)


def test_a_config_that_can_not_be_read_is_an_error(project):
    project(WHOLE)

    class Unreadable(type(project.root)):
        def read_bytes(self):
            raise PermissionError(13, "Permission denied")

    with pytest.raises(ConfigError, match=r"onnx-ci\.toml: can't be read: Permission denied"):
        read(Unreadable(project.root / "onnx-ci.toml"), cwd=project.root)


def test_the_record_of_a_config_has_only_json(project):
    assert json.loads(codec.dumps(project(WHOLE)))["models"][0]["name"] == "classifier"
    assert codec.loads(Config, codec.dumps(project(WHOLE))) == project(WHOLE)
