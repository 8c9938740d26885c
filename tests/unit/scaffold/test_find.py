"""Likely entrypoints, found by reading."""

import textwrap

import pytest

from onnx_ci.scaffold.find import find_entrypoints


@pytest.fixture
def found(tmp_path):
    def find(**files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))
        return {one.entrypoint: one.name for one in find_entrypoints(tmp_path)}

    return find


NET = "from torch import nn\nclass Net(nn.Module): ...\n"


@pytest.mark.parametrize(
    ("text", "function"),
    [
        ("def build() -> torch.nn.Module: ...", "build"),
        ('def build() -> "nn.Module": ...', "build"),
        ("def build(classes=10, *, width=4) -> Module: ...", "build"),
        (f"{NET}def build() -> Net: ...", "build"),
        (f"{NET}def build():\n    return Net(10)\n", "build"),
        (f"{NET}def build():\n    return Net().to('cpu').eval()\n", "build"),
        (f"{NET}def build():\n    if 1:\n        return Net()\n", "build"),
    ],
)
def test_a_function_that_gives_a_module(found, text, function):
    assert found(**{"shop/net.py": text}) == {f"shop/net.py:{function}": "net"}


@pytest.mark.parametrize(
    "text",
    [
        "def build(path) -> nn.Module: ...",
        "def build(*, path) -> nn.Module: ...",
        "def _build() -> nn.Module: ...",
        "def build(): return Net()",
        "def build() -> int: ...",
        f"{NET}def build(): return len([Net()])",
        "class Net(nn.Module):\n    def build(self) -> nn.Module: ...\n",
        "def make_model(path): ...",
        "def broken(",
        "raise RuntimeError('importing this would be a mistake')",
        "\x00",
    ],
)
def test_what_is_none(found, text):
    assert found(**{"net.py": text}) == {}


def test_the_short_form_is_the_file(found):
    text = "def make_model(): ...\ndef make_inputs(): ...\ndef build() -> nn.Module: ..."
    assert found(**{"models/tagger.py": text}) == {"models/tagger.py": "tagger"}


def test_names_are_made_of_what_tells_models_apart(found):
    text = "def build() -> nn.Module: ...\ndef tiny_tagger() -> nn.Module: ..."
    assert found(**{"classifier/model.py": text, "detector/model.py": text}) == {
        "classifier/model.py:build": "classifier",
        "classifier/model.py:tiny_tagger": "tiny_tagger",
        "detector/model.py:build": "detector",
        "detector/model.py:tiny_tagger": "tiny_tagger-2",
    }


def test_environments_hidden_folders_and_tests_are_not_looked_at(found):
    text = "def build() -> nn.Module: ..."
    places = {f"{folder}/net.py": text for folder in (".venv", "mine", "tests", "node_modules")}
    assert found(**places, **{"mine/pyvenv.cfg": ""}) == {}
