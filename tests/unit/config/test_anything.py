"""Whatever stands in the file: a config or a ConfigError, never anything else."""

import contextlib
import datetime
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from onnx_ci.config import checks, explain, variants
from onnx_ci.config.load import _keys, load
from onnx_ci.config.problems import ConfigError, show_path
from onnx_ci.config.schema import json_schema

SCHEMA = json_schema()
TODAY = datetime.date(2026, 12, 1)
HERE = Path(__file__).parent
WORDS = [
    *("models", "targets", "golden", "latency", "lock", "m", "", "a b", "..", "n", "x", "NAME", "export"),
    *(key for table in SCHEMA["$defs"].values() for key in table["properties"]),
]
TEXTS = [
    "test_anything.py",
    "test_anything.py:x",
    "*.npz",
    "../x",
    "/x",
    "a\x00b",
    "float32",
    "8GiB",
    "10min",
    "n",
    "**x",
]

scalars = st.one_of(
    st.sampled_from(TEXTS),
    st.text(max_size=10),
    st.integers(),
    st.floats(),
    st.booleans(),
    st.dates(),
    st.datetimes(),
    st.times(),
    st.just(10**60),
)
keys = st.one_of(st.sampled_from(WORDS), st.text(max_size=5))
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4), max_leaves=10
)


def shaped(schema, depth=0):
    """Values that nearly fit a schema: the keys are right, and most of the values."""
    if "$ref" in schema:
        return shaped(SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]], depth)
    if "anyOf" in schema:
        return st.one_of(*(shaped(option, depth) for option in schema["anyOf"] if option.get("type") != "null"))
    if "enum" in schema:
        return st.sampled_from(schema["enum"]) | scalars
    if "properties" in schema:
        fields = {key: shaped(inner, depth + 1) for key, inner in schema["properties"].items()}
        return st.fixed_dictionaries({}, optional=fields) | anything
    if schema.get("type") == "object":
        inner = schema.get("additionalProperties")
        return st.dictionaries(keys, shaped(inner if isinstance(inner, dict) else {}, depth + 1), max_size=2)
    if schema.get("type") == "array":
        return st.lists(shaped(schema["items"], depth + 1), max_size=2)
    kinds = {"integer": st.integers(0, 40), "number": st.floats(), "boolean": st.booleans()}
    return kinds.get(str(schema.get("type")), st.sampled_from(TEXTS)) | scalars


@given(st.dictionaries(keys, anything, max_size=4) | shaped(SCHEMA).filter(lambda value: isinstance(value, dict)))
@settings(max_examples=300, deadline=None)
def test_any_table_is_judged(data):
    root, found, cut = explain.check(data)
    found += checks.names(variants.labels(data), _keys(data, "targets"))
    if root is not None:
        found += checks.check(root, HERE, today=TODAY, cut=cut)
    assert root is not None or found
    for problem in found:
        assert problem.message
        assert "\n" not in f"{show_path(problem.path)} {problem.message} {problem.hint}"
    if found:
        assert str(ConfigError("onnx-ci.toml", found))


@given(st.binary(max_size=60) | st.text(alphabet="[]{}=.\"'\n\\#, abm1", max_size=60).map(str.encode))
@settings(deadline=None)
def test_any_bytes_are_a_config_or_an_error(tmp_path_factory, raw):
    folder = tmp_path_factory.mktemp("any")
    (folder / "onnx-ci.toml").write_bytes(raw)
    with contextlib.suppress(ConfigError):
        load(None, cwd=folder)
