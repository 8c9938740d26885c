"""The rewrite check: a broken adaptation is found out, and a healthy one, however it is written, is never failed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from onnx_ci.export import rewrite
from onnx_ci.export.job import prepare
from onnx_ci.export.loading import load
from onnx_ci.export.state import RandomState
from onnx_ci.records.messages import ExportRequest
from onnx_ci.records.model import DimSpec, InputSpec, JobSpec, ModelSpec

pytestmark = pytest.mark.torch

IMAGE = {"x": InputSpec(dtype="float32", shape=[2, 2, 8, 8], low=0.0, high=1.0)}
ROWS = {"x": InputSpec(dtype="float32", shape=["batch", 5, 8])}
VALUES = ("rewrite.forward", "rewrite.input-gradients", "rewrite.parameter-gradients")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    shutil.copy(Path(__file__).with_name("rewrites.py"), folder / "rewrites.py")
    return folder


def prepared(request):
    """The module, the example and the user's cases of a request, as the job has them before the rewrite is judged."""
    given = load(request.job.model, Path(request.root))
    subject, _ = prepare(given)
    assert subject is not None
    return subject, given.example, given.user


@pytest.fixture
def judge(root):
    """Findings by rule for an original and what was made of it."""

    def run(original, adapted, clock=None, **more):
        more.setdefault("inputs", ROWS)
        spec = ModelSpec(name="m", entrypoint=f"rewrites.py:{adapted}", reference=f"rewrites.py:{original}", **more)
        start = RandomState.now()
        request = ExportRequest(job=JobSpec(model=spec, targets=[]), root=str(root), artifact=str(root / "out"))
        subject, example, user = prepared(request)
        timed = {} if clock is None else {"clock": clock}
        found = rewrite.judge(subject, example, user, root, start, **timed)
        assert len({one.rule for one in found}) == len(found)
        return {one.rule: one for one in found}

    return run


def statuses(found):
    return {rule.removeprefix("rewrite."): one.status for rule, one in found.items()}


def failing(found):
    return [f"{one.rule}: {one.message}" for one in found.values() if one.status in ("fail", "error")]


def pool(height, width):
    return {
        "inputs": {"x": InputSpec(dtype="float32", shape=[1, 2, height, width], low=0.0, high=1.0)},
        "kwargs": {"height": height, "width": width},
    }


# 8x10 and 8x14 have 2.5 and 3.5 columns on a short side of two: round() makes them 2 and 4.
HALVES = [(8, 10), (10, 8), (8, 14), (14, 8)]


@pytest.mark.parametrize(("height", "width"), [*HALVES, (8, 8), (8, 11), (9, 5), (17, 31)])
def test_a_grid_that_was_fixed_as_the_original_computes_it_passes(judge, height, width):
    found = judge("original_pool", "static_pool", **pool(height, width))
    assert set(statuses(found).values()) == {"pass"}, found


@pytest.mark.parametrize(
    ("adapted", "height", "width"),
    [
        ("truncating_pool", 8, 14), ("truncating_pool", 14, 8), ("truncating_pool", 8, 11),
        ("half_up_pool", 8, 10), ("half_up_pool", 10, 8),
        ("swapped_pool", 8, 14), ("swapped_pool", 14, 8), ("swapped_pool", 9, 5),
    ],
)  # fmt: skip
def test_a_grid_that_is_rounded_or_turned_otherwise_fails(judge, adapted, height, width):
    found = judge("original_pool", adapted, **pool(height, width))
    outputs = found["rewrite.outputs"]
    assert outputs.status == "fail"
    assert "has shape" in outputs.message
    assert "in the original" in outputs.message
    assert found["rewrite.forward"].status == "skip"


def test_a_dropped_offset_fails_where_a_product_lies_just_over_a_number(judge):
    assert 20 * (0.1 * 3) > 6
    assert judge("guarded_pool", "unguarded_pool", **pool(8, 20))["rewrite.outputs"].status == "fail"
    assert failing(judge("guarded_pool", "unguarded_pool", **pool(8, 21))) == []


def test_an_ordinary_pool_of_equal_shape_is_no_adaptive_one(judge):
    found = judge("adaptive_pool", "ordinary_pool", inputs=IMAGE)
    assert found["rewrite.outputs"].status == "pass"
    for rule in VALUES:
        assert found[rule].status == "fail", found[rule]
    forward = found["rewrite.forward"]
    assert forward.data["max_abs"] > 100 * forward.data["limit"]
    assert len(forward.data["at"]) == 4
    assert forward.data["case"] in forward.message


HEALTHY = {
    "a pool as a matrix in float32": ("adaptive_pool", "matrix_pool", {"inputs": IMAGE}),
    "a resize as a matrix in float32": ("offset_resize", "matrix_resize", {"inputs": IMAGE}),
    "attention by hand": ("attention", "attention_by_hand", {}),
    "a norm by hand": ("normed", "normed_by_hand", {}),
    "a wrapper": ("plain", "wrapped", {}),
    "a head dropped": ("with_heads", "without_heads", {}),
    "a keyed head dropped": ("with_heads", "keyed_without_heads", {}),
    "other parameter names": ("other_names", "plain", {}),
    "tied once, untied then": ("tied", "untied", {}),
    "unseeded builds": ("unseeded", "unseeded_again", {"inputs": {"input": ROWS["x"]}}),
    "a table of far positions in float32": ("rotated", "rotated_beforehand", {"cases": ["rewrites.py:many_steps"]}),
    "a buffer that is read where it is equal": ("cached", "cached_otherwise", {}),
    "a table of positions in float32": ("positions", "positions_beforehand", {"cases": ["rewrites.py:many_steps"]}),
}


@pytest.mark.parametrize("which", HEALTHY)
def test_a_healthy_rewrite_passes(judge, which):
    original, adapted, more = HEALTHY[which]
    if "cases" in more:
        more = {"inputs": {}, **more}
    found = judge(original, adapted, **more)
    assert set(statuses(found).values()) == {"pass"}, [one.message for one in found.values()]
    for one in found.values():
        assert one.message.endswith(rewrite.PROVES)


PECULIAR = {
    "ties in max pooling": (
        "largest",
        "largest_of_views",
        {"cases": ["rewrites.py:ties"]},
        {"input-gradients": "warn"},
    ),
    "zeros under abs": ("magnitude", "magnitude_by_relu", {"cases": ["rewrites.py:zeros"]}, {}),
    "zero distances": ("distances", "distances_by_products", {}, {"input-gradients": "warn"}),
    "a folded norm": (
        "batch_normed",
        "folded",
        {"inputs": IMAGE},
        {"parameters": "warn", "parameter-gradients": "skip"},
    ),
    "finite for minus infinity": ("forbidden", "forbidden_finitely", {}, {"forward": "warn"}),
    "an original under no_grad": ("frozen", "plain", {}, {"input-gradients": "skip", "parameter-gradients": "skip"}),
    "adapted under no_grad": ("plain", "frozen", {}, {"input-gradients": "skip", "parameter-gradients": "skip"}),
    "straight-through rounding": ("straight_through", "rounded", {}, {"input-gradients": "warn"}),
    "an original that stops gradients": ("stopping", "swish", {}, {"input-gradients": "warn", "parameters": "pass"}),
    "a parameter as a constant": ("biased", "bias_as_constant", {}, {"parameter-gradients": "warn"}),
    "top-k among ties": ("best", "best_by_sorting", {}, {"forward": "warn"}),
    "tokens": ("tokens", "tokens_by_product", {"cases": ["rewrites.py:some_tokens"]}, {"input-gradients": "skip"}),
    "no float64 form": ("outside", "doubled", {}, {"forward": "pass", "input-gradients": "skip"}),
}


@pytest.mark.parametrize("which", PECULIAR)
def test_a_healthy_peculiarity_is_not_failed(judge, which):
    original, adapted, more, expected = PECULIAR[which]
    if "cases" in more:
        more = {"inputs": {}, **more}
    found = judge(original, adapted, **more)
    assert failing(found) == []
    assert statuses(found).items() >= expected.items(), [one.message for one in found.values()]


BROKEN = {
    "corners aligned": ("offset_resize", "aligned_resize", {"inputs": IMAGE}, "forward"),
    "an epsilon dropped": ("normed", "normed_without_epsilon", {}, "forward"),
    "top-k of other scores": ("best", "best_of_negated", {}, "forward"),
    "another GELU": ("gelu", "gelu_by_tanh", {}, "forward"),
    "another factor without float64": ("outside", "trebled", {}, "forward"),
    "NaN for a blank image": ("standardized", "standardized_without_epsilon", {"inputs": IMAGE}, "forward"),
    "gradients of one path stopped": ("swish", "stopping", {}, "input-gradients"),
    "gradients of the input stopped once": ("whole_input", "stopping_input", {}, "input-gradients"),
    "a weight stopped once": ("weight_twice", "weight_once", {}, "parameter-gradients"),
}


@pytest.mark.parametrize("which", BROKEN)
def test_a_broken_rewrite_fails_at_its_own_rule(judge, which):
    original, adapted, more, rule = BROKEN[which]
    found = judge(original, adapted, **more)
    assert found[f"rewrite.{rule}"].status == "fail", [one.message for one in found.values()]
    assert found[f"rewrite.{rule}"].hint
    if rule != "forward":
        assert found["rewrite.forward"].status == "pass"


def test_a_stopped_weight_leaves_the_input_gradients_alone(judge):
    found = judge("weight_twice", "weight_once")
    assert found["rewrite.input-gradients"].status == "pass"
    gradient = found["rewrite.parameter-gradients"]
    assert gradient.subject == "lin.weight"
    assert "by finite differences" in gradient.message


def test_other_weights_are_named_and_not_taken_for_another_computation_alone(judge):
    found = judge("plain", "other_seed")
    parameters = found["rewrite.parameters"]
    assert (parameters.status, parameters.data["changed"]) == ("fail", ["lin.weight", "lin.bias"])
    assert "same seed" in parameters.hint
    assert found["rewrite.forward"].status == "fail"
    assert found["rewrite.parameter-gradients"].status == "skip"


def test_sizes_that_only_the_original_takes_fail(judge):
    dims = {"length": DimSpec(min=2, max=9, example=4)}
    inputs = {"x": InputSpec(dtype="float32", shape=[3, "length", 8])}
    refused = judge("any_length", "short_lengths", inputs=inputs, dims=dims)["rewrite.refused"]
    assert refused.status == "fail"
    assert "length = 9" in refused.message
    assert "too long" in refused.message


def test_sizes_that_the_original_refuses_too_or_alone_do_not(judge):
    dims = {"length": DimSpec(min=2, max=9, example=4)}
    inputs = {"x": InputSpec(dtype="float32", shape=[3, "length", 8])}
    both = judge("short_lengths", "short_lengths", inputs=inputs, dims=dims)
    assert failing(both) == []
    assert "both refuse 1" in both["rewrite.refused"].message
    wider = judge("short_lengths", "any_length", inputs=inputs, dims=dims)
    assert failing(wider) == []
    assert "refuses 1 that the adapted module takes" in wider["rewrite.refused"].message


def test_an_original_that_can_not_be_built_is_an_error_at_its_line(judge, root):
    found = judge("raising", "plain")
    (only,) = found.values()
    assert (only.rule, only.status, only.file) == ("rewrite.reference", "error", "rewrites.py")
    assert "the checkpoint is gone" in only.message
    assert "models.m.reference" in only.message
    assert "raise RuntimeError" in (root / "rewrites.py").read_text().splitlines()[only.line - 1]


def test_an_original_that_is_not_there_names_what_was_meant(judge):
    (only,) = judge("plian", "plain").values()
    assert only.status == "error"
    assert "Did you mean plain?" in only.hint


def test_an_original_that_takes_other_inputs_is_an_error(judge):
    refused = judge("two_inputs", "plain")["rewrite.refused"]
    assert refused.status == "error"
    assert "wrap the original" in refused.hint


def test_settings_that_the_original_lacks_are_not_handed_to_it(judge):
    assert failing(judge("original_pool", "static_pool", **pool(8, 10))) == []


def test_what_is_left_out_for_want_of_time_is_told_and_the_users_cases_are_not(judge):
    ticks = iter(range(0, 10**6, 1000))
    found = judge("plain", "wrapped", inputs={}, cases=["rewrites.py:many_steps"], clock=lambda: next(ticks))
    assert "left out to stay within the time" in found["rewrite.refused"].message
    assert found["rewrite.forward"].status == "pass"
    assert found["rewrite.forward"].data["inputs"] == 1


def test_neither_module_nor_generators_are_moved(root):
    spec = ModelSpec(
        name="m", entrypoint="rewrites.py:batch_normed", reference="rewrites.py:batch_normed", inputs=IMAGE
    )
    request = ExportRequest(job=JobSpec(model=spec, targets=[]), root=str(root), artifact=str(root / "out"))
    start = RandomState.now()
    subject, example, user = prepared(request)
    before = RandomState.now()
    values = {name: value.clone() for name, value in subject.module.state_dict().items()}
    learned = [value.requires_grad for value in subject.module.parameters()]
    rewrite.judge(subject, example, user, root, start)
    assert not before.moved()
    assert all(value.equal(values[name]) for name, value in subject.module.state_dict().items())
    assert [value.requires_grad for value in subject.module.parameters()] == learned
    assert all(value.grad is None for value in subject.module.parameters())
