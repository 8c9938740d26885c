"""What is made of the code is up to date: the JSON schema, the pages, the templates and the README's tables."""

import importlib.util
from pathlib import Path

import pytest
import tomllib

ROOT = Path(__file__).parents[3]
spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
generate = importlib.util.module_from_spec(spec)
spec.loader.exec_module(generate)
FILES = {path.relative_to(ROOT).as_posix(): text for path, text in generate.files(ROOT).items()}


@pytest.mark.parametrize("name", FILES)
def test_a_generated_file_is_up_to_date(name):
    assert (ROOT / name).read_text(encoding="utf-8") == FILES[name], "run: python docs/generate.py"


def test_each_key_has_a_row_in_the_page_and_each_table_a_heading():
    page = FILES["docs/config.md"]
    made = generate.schema.json_schema()
    for table in made["$defs"].values():
        for key, entry in table["properties"].items():
            assert generate._inner(entry, made)[0] is not None or f"| `{key}` |" in page, key
    for heading in ("[models.NAME]", "[models.NAME.parity.outputs.OUTPUT]", "[targets.NAME]", "[lock]"):
        assert f"## `{heading}`\n" in page
    assert "## `[[models.NAME.variants]]`\n" in page
    assert "## `[[models.NAME.end_to_end]]` (not built yet)\n" in page


@pytest.mark.parametrize("value", [{"a": [1, 2.5, {"b": 'c"d\n'}]}, [True, "é"], "x"])
def test_values_are_written_as_toml_reads_them(value):
    assert tomllib.loads(f"value = {generate.toml(value)}") == {"value": value}


def test_the_readme_keeps_its_text_and_gets_its_tables():
    text = "# Title\n<!-- action inputs -->\nold\n<!-- /action inputs -->\nafter\n"
    made = generate.with_tables(text, ROOT)
    assert made.startswith("# Title\n<!-- action inputs -->\n| input | default | meaning |\n|---|---|---|\n")
    assert made.endswith("|\n<!-- /action inputs -->\nafter\n")
    assert "| `command` | `run` |" in made
    assert generate.with_tables(made, ROOT) == made


def test_the_reusable_workflow_has_its_tables_too():
    made = generate.with_tables("<!-- workflow inputs -->\n<!-- /workflow inputs -->", ROOT)
    assert "| `python-version` | `3.12` |" in made
