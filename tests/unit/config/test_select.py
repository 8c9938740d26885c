import pytest

from onnx_ci.config import select
from onnx_ci.errors import ExitCode, NothingMatchedError
from onnx_ci.records.model import Config, ModelSpec, TargetSpec

CONFIG = Config(
    path="onnx-ci.toml",
    models=[
        ModelSpec(name="bert", entrypoint="bert.py"),
        ModelSpec(name="pool", entrypoint="pool.py", variant="small"),
        ModelSpec(name="pool", entrypoint="pool.py", variant="large"),
    ],
    targets=[
        TargetSpec(name="cpu", provider="CPUExecutionProvider"),
        TargetSpec(name="gpu", provider="CUDAExecutionProvider"),
    ],
)


def labels(*patterns):
    return [(spec.name, spec.variant) for spec in select.models(CONFIG, patterns)]


def test_without_patterns_all_are_chosen():
    assert labels() == [("bert", None), ("pool", "small"), ("pool", "large")]
    assert [target.name for target in select.targets(CONFIG, [])] == ["cpu", "gpu"]


def test_a_name_means_all_its_variants_and_a_label_means_one():
    assert labels("pool") == [("pool", "small"), ("pool", "large")]
    assert labels("pool@large") == [("pool", "large")]


def test_shell_patterns_match_and_the_configs_order_stays():
    assert labels("p*@large", "b*") == [("bert", None), ("pool", "large")]


def test_a_model_that_two_patterns_name_is_chosen_once():
    assert labels("bert", "be*") == [("bert", None)]


def test_one_lost_pattern_stops_the_run_although_its_neighbour_matches():
    with pytest.raises(NothingMatchedError, match="no model matches 'brt'") as caught:
        labels("pool", "brt")
    assert caught.value.exit_code is ExitCode.NOTHING_MATCHED
    assert caught.value.hint == "Did you mean 'bert'?"


def test_a_pattern_like_nothing_known_is_answered_with_what_there_is():
    with pytest.raises(NothingMatchedError) as caught:
        select.targets(CONFIG, ["tensorrt-fp16"])
    assert caught.value.hint == "There are: cpu, gpu."


def test_a_config_without_models_is_not_a_run_that_passed():
    with pytest.raises(NothingMatchedError, match="the config has no model"):
        select.models(Config(path="x", models=[], targets=CONFIG.targets), [])
