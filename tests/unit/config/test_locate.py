"""On which line each key of a TOML text stands."""

import pytest
import tomllib
from hypothesis import given
from hypothesis import strategies as st

from onnx_ci.config.locate import key_lines, line_of

TEXT = '''# a comment with [brackets] = and "quotes
title = "a # b"      # trailing
[models.classifier]
kwargs = { num_classes = 10, deep = { a = [1, 2] } }
inputs.images = { dtype = "float32", shape = [
  "batch", 3] }
cases = [  # first
  "a.py:b",

  "c", # second
  'd]', ]
text = """
not.a.key = 1
[nor.a.table]
\\""" still """""
raw = \'\'\'
x = 1\'\'\'
"quoted key" . 'another' = 1979-05-27 07:32:00
[[models.classifier.variants]]
name = "one"
[models.classifier.variants.dims]
n = 1
[[models.classifier.variants]]
name = "two"
[targets."x.y"]
threads = 1_000
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("title",), 2),
        (("models",), 3),
        (("models", "classifier"), 3),
        (("models", "classifier", "kwargs", "deep", "a", 1), 4),
        (("models", "classifier", "inputs", "images", "dtype"), 5),
        (("models", "classifier", "inputs", "images", "shape", 0), 6),
        (("models", "classifier", "cases"), 7),
        (("models", "classifier", "cases", 0), 8),
        (("models", "classifier", "cases", 1), 10),
        (("models", "classifier", "cases", 2), 11),
        (("models", "classifier", "text"), 12),
        (("models", "classifier", "raw"), 16),
        (("models", "classifier", "quoted key", "another"), 18),
        (("models", "classifier", "variants", 0), 19),
        (("models", "classifier", "variants", 0, "dims", "n"), 22),
        (("models", "classifier", "variants", 1, "name"), 24),
        (("targets", "x.y", "threads"), 26),
    ],
)
def test_lines(path, line):
    assert key_lines(TEXT)[path] == line


def test_each_key_and_item_is_found_and_nothing_else():
    assert key_lines(TEXT).keys() == set(paths(tomllib.loads(TEXT)))


def test_a_missing_key_has_the_line_of_its_table():
    lines = key_lines(TEXT)
    assert line_of(lines, ("models", "classifier", "variants", 1, "dims", "n")) == 23
    assert line_of(lines, ("golden", "dir")) is None
    assert line_of(lines, ()) is None


def test_text_that_is_no_toml_gives_the_lines_up_to_there():
    assert key_lines("a = 1\nb = ]\nc = 3\n") == {("a",): 1, ("b",): 2}
    assert key_lines("a = " + "[" * 5000) != {}


def paths(value, path=()):
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from paths(item, (*path, key))


keys = st.one_of(st.from_regex(r"[A-Za-z0-9_-]{1,6}", fullmatch=True), st.text(max_size=6))
scalars = st.one_of(st.integers(-9, 9), st.booleans(), st.text(max_size=8), st.floats(allow_nan=False), st.dates())
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=12
)
documents = st.dictionaries(keys, values, max_size=5)


def text_of(text):
    escaped = "".join(
        character if character.isprintable() and character not in '"\\' else f"\\U{ord(character):08X}"
        for character in text
    )
    return f'"{escaped}"'


def toml(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return text_of(value)
    if isinstance(value, list):
        return "[\n" + "".join(f"  {toml(item)}, # ]\n" for item in value) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{text_of(key)} = {toml(item)}" for key, item in value.items()) + " }"
    return str(value)


def document(data):
    """Writes tables as headers where it can, so that both ways of writing are read."""
    plain = {key: value for key, value in data.items() if not isinstance(value, dict)}
    text = "".join(f"{text_of(key)} = {toml(value)}\n" for key, value in plain.items())
    for key, table in data.items():
        if isinstance(table, dict):
            text += f"\n[{text_of(key)}] # [x]\n" + "".join(f"{text_of(k)} = {toml(v)}\n" for k, v in table.items())
    return text


@given(documents)
def test_each_key_of_any_document_has_a_line(data):
    text = document(data)
    lines = key_lines(text)
    assert set(paths(tomllib.loads(text))) == lines.keys()
    assert all(1 <= line <= text.count("\n") + 1 for line in lines.values())
