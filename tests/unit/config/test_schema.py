"""The schema: whole, described, and the same as what validates."""

import json
from pathlib import Path

import jsonschema
import pytest

from onnx_ci.config import schema

COMMITTED = Path(schema.__file__).with_name("schema.json")


def test_the_committed_json_schema_is_the_generated_one():
    assert json.loads(COMMITTED.read_text(encoding="utf-8")) == schema.json_schema()


def test_the_schema_is_a_json_schema():
    jsonschema.Draft202012Validator.check_schema(schema.json_schema())


def test_each_key_says_what_it_means():
    made = schema.json_schema()
    for table in (made, *made["$defs"].values()):
        for key, entry in table["properties"].items():
            described = entry.get("description") or made["$defs"][entry["$ref"].rpartition("/")[2]]["description"]
            assert described.endswith("."), key


@pytest.mark.parametrize(
    ("data", "fits"),
    [
        ({"models": {"m": {"entrypoint": "model.py"}}}, True),
        ({"models": {"m": {"entrypoint": "model.py", "time_limit": "10min", "memory_limit": 2**30}}}, True),
        ({"models": {"m": {}}}, False),
        ({"models": {"m": {"entrypoint": "model.py", "bach": "mixed"}}}, False),
        ({"models": {"m": {"entrypoint": "model.py", "inputs": {"x": {"shape": ["n", 3]}}}}}, True),
        ({"models": {"m": {"entrypoint": "model.py", "inputs": {"x": {"dtype": "float"}}}}}, False),
        ({"models": {"m": {"entrypoint": "m.py"}}, "targets": {"t": {"provider": "X", "runs_on": "big"}}}, True),
        ({"models": {"m": {"entrypoint": "m.py"}}, "targets": {"t": {"provider": "X", "options": {"a": []}}}}, False),
    ],
)
def test_an_editor_sees_what_the_tool_sees(data, fits):
    assert jsonschema.Draft202012Validator(schema.json_schema()).is_valid(data) == fits
