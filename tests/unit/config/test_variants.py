"""Variants of a model: one artifact each, told apart by their sizes."""

import pytest

from onnx_ci.records.model import DimSpec
from onnx_ci.records.result import label

MODEL = """\
[models.pool]
entrypoint = "model.py:build"
kwargs = { channels = 3, height = 1 }
inputs.images = { shape = ["batch", 3, "height", "width"] }
inputs.scale = { shape = ["batch"] }
dims.batch = { min = 1, max = 8 }
dims.height = { min = 32, max = 1024, multiple_of = 16 }
"""
TWO = f"""\
{MODEL}
[[models.pool.variants]]
name = "480x640"
kwargs = {{ height = 480, width = 640 }}
dims = {{ height = 480, width = 640 }}

[[models.pool.variants]]
name = "640x480"
dims = {{ height = 640, width = 480 }}
"""


def of(**variants):
    """A config whose model has these variants, each with its dims as TOML."""
    tables = [f'[[models.pool.variants]]\nname = "{name}"\ndims = {dims}\n' for name, dims in variants.items()]
    return MODEL + "\n".join(tables)


def told(found):
    return [(".".join(map(str, problem.path)), problem.message) for problem in found]


def test_each_variant_is_a_model_of_its_own_and_the_model_itself_is_none(project):
    wide, tall = project(TWO).models
    assert [label(one.name, one.variant) for one in (wide, tall)] == ["pool@480x640", "pool@640x480"]
    assert wide.kwargs == {"channels": 3, "height": 480, "width": 640}
    assert tall.kwargs == {"channels": 3, "height": 1}
    assert (wide.declared_at, tall.declared_at) == (9, 14)


def test_a_dim_that_is_fixed_becomes_a_size_of_the_shapes_and_the_others_stay(project):
    wide = project(TWO).models[0]
    assert wide.inputs["images"].shape == ["batch", 3, 480, 640]
    assert wide.inputs["images"].named == ["batch", 3, "height", "width"]
    assert (wide.inputs["scale"].shape, wide.inputs["scale"].named) == (["batch"], None)
    assert wide.dims == {"batch": DimSpec(min=1, max=8)}
    assert wide.fixed == {"height": 480, "width": 640}
    assert wide.variants == {"480x640": wide.fixed, "640x480": {"height": 640, "width": 480}}


def test_a_fixed_dim_of_a_sum_is_filled_in(project):
    summed = TWO.replace('["batch"]', '["batch", "height + width", "height + batch"]')
    assert project(summed).models[0].inputs["scale"].shape == ["batch", 1120, "480 + batch"]


def test_a_model_without_variants_fixes_nothing(project):
    (one,) = project(MODEL).models
    assert (one.variant, one.variants, one.fixed) == (None, {}, {})


def test_one_variant_with_other_settings_only_is_enough(project):
    text = f'{MODEL}[[models.pool.variants]]\nname = "big"\nkwargs = {{ channels = 4 }}\n'
    (one,) = project(text).models
    assert (one.variant, one.kwargs["channels"], one.fixed) == ("big", 4, {})


@pytest.mark.parametrize(
    ("variants", "path", "message"),
    [
        ({"a": "{ hight = 480 }"}, "models.pool.variants.0.dims.hight", "no shape under inputs names this dim"),
        ({"a": "{ height = 2048 }"}, "models.pool.variants.0.dims.height", "2048 is above max 1024"),
        ({"a": "{ height = 16 }"}, "models.pool.variants.0.dims.height", "16 is below min 32"),
        ({"a": "{ height = 90 }"}, "models.pool.variants.0.dims.height", "90 is not a multiple of 16"),
        ({"a": "{}"}, "models.pool.variants.0", "a differs in nothing from the model"),
        (
            {"a": "{ height = 480 }", "b": "{ height = 480, width = 640 }"},
            "models.pool.variants.1",
            "b and a accept the same input: no dim is fixed to another size in each",
        ),
        (
            {"a": "{ height = 480 }", "b": "{ width = 640 }"},
            "models.pool.variants.1",
            "b and a accept the same input: no dim is fixed to another size in each",
        ),
        ({"a": "{ height = 480 }", "A": "{ height = 64 }"}, "models.pool.variants.1", '"pool@a" but for its case'),
        ({"a.b/c": "{ height = 480 }"}, "models.pool.variants.0.name", "a name is 1 to 64 of A-Z a-z 0-9 . _ -"),
    ],
)
def test_variants_that_can_not_be_are_named(problems, variants, path, message):
    (found,) = told(problems(of(**variants)))
    assert found[0] == path
    assert message in found[1]


def test_a_name_that_stands_twice_is_told(problems):
    text = of(a="{ height = 480 }") + '[[models.pool.variants]]\nname = "a"\ndims = { height = 64 }\n'
    assert told(problems(text)) == [("models.pool.variants.1.name", '"a" is the name of another variant')]


def test_results_that_would_be_one_file_are_told(problems):
    targets = '[targets.cpu]\nprovider = "CPUExecutionProvider"\n[targets."x.cpu"]\nprovider = "CPUExecutionProvider"\n'
    found = told(problems(of(a="{ height = 480 }", **{"a.x": "{ height = 64 }"}) + targets))
    assert [path for path, message in found if "pool@a.x.cpu.json" in message] == ["models.pool.variants.1"]


def test_the_short_form_may_name_dims_that_only_its_export_kwargs_know(project):
    text = '[models.m]\nentrypoint = "model.py"\n[[models.m.variants]]\nname = "a"\ndims = { height = 480 }\n'
    (one,) = project(text).models
    assert one.fixed == {"height": 480}
