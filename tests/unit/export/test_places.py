"""The user's lines, and nobody else's."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from onnx_ci.export.places import Places, chain
from onnx_ci.records.model import ModelSpec
from onnx_ci.records.result import finding

HERE = Path(__file__).resolve()
PLACES = Places(HERE.parent, HERE.parent)
SPEC = ModelSpec(name="net", entrypoint="net.py", declared_in="onnx-ci.toml", declared_at=7)


def test_the_innermost_frame_of_the_repository_wins(tmp_path):
    library = torch.__file__
    frames = [(str(HERE), 3), (str(HERE), 7), (library, 9), (str(tmp_path / "other.py"), 11)]
    place = PLACES.deepest(frames)
    assert place is not None
    assert (place.file, place.line, place.shown) == (HERE.name, 7, f"{HERE.name}:7")


def test_a_line_outside_of_the_repository_is_shown_without_its_folder(tmp_path):
    place = PLACES.deepest([(str(tmp_path / "other.py"), 11)])
    assert place is not None
    assert (place.file, place.shown) == (None, "other.py:11")


def test_libraries_are_nobodys_line():
    assert PLACES.deepest([(torch.__file__, 1), ("<string>", 2), (sys.modules["json"].__file__ or "", 3)]) is None


class Part(torch.nn.Module):
    @torch.no_grad()
    def forward(self, x):
        return x


class Whole(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = torch.nn.ModuleList([Part(), torch.nn.Dropout()])

    def forward(self, x):
        return x


def line_of(text):
    return next(at for at, line in enumerate(HERE.read_text().splitlines(), 1) if line.startswith(text))


@pytest.mark.parametrize(
    ("rule", "subject", "line"),
    [
        ("contract.state", "parts.0.count", "class Part"),
        ("export.training-mode", "parts.1", "class Whole"),  # torch's own class: the module that holds it
        ("contract.state", "count", "class Whole"),
    ],
)
def test_a_finding_on_a_module_has_the_line_of_its_class(rule, subject, line):
    found = PLACES.located(finding(rule, "fail", subject, "said"), Whole(), SPEC)
    assert (found.file, found.line) == (HERE.name, line_of(line))


def test_a_finding_on_arguments_has_the_line_of_forward():
    found = PLACES.located(finding("contract.vanished-input", "warn", "x", "said"), Part(), SPEC)
    assert (found.file, found.line) == (HERE.name, line_of("    def forward"))


def test_a_finding_without_a_line_of_code_has_that_of_the_config():
    linear = torch.nn.Linear(1, 1)
    for rule in ("contract.vanished-input", "contract.state", "contract.declared-size"):
        found = PLACES.located(finding(rule, "fail", "", "said"), linear, SPEC)
        assert (found.file, found.line) == ("onnx-ci.toml", 7)


def test_a_line_that_is_known_stays_and_a_pass_has_none():
    known = finding("contract.state", "fail", "", "said", file="a.py", line=3)
    assert PLACES.located(known, Whole(), SPEC) == known
    passed = finding("contract.state", "pass", "", "said")
    assert PLACES.located(passed, Whole(), SPEC) == passed


def fail():
    try:
        raise KeyError("root")
    except KeyError as error:
        raise RuntimeError("wrapped") from error


def test_the_root_cause_comes_first():
    with pytest.raises(RuntimeError) as raised:
        fail()
    assert [type(link) for link in chain(raised.value)] == [RuntimeError, KeyError]
    place = PLACES.of_error(raised.value)
    assert place is not None
    assert HERE.read_text().splitlines()[place.line - 1].strip() == 'raise KeyError("root")'


def test_the_repository_is_the_folder_with_git(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / "ci").mkdir()
    places = Places.of(tmp_path / "ci")
    assert places.relative(str(tmp_path / "src" / "model.py")) == "src/model.py"


def test_a_formatted_stack_is_read_outermost_first():
    text = f'File "{HERE}", line 3, in forward\n    x = y\nFile "{torch.__file__}", line 9, in relu\n'
    place = PLACES.of_stack_text(text)
    assert place is not None
    assert place.line == 3


def test_a_frame_that_torch_names_from_its_own_root_is_nobodys_code():
    assert PLACES.deepest([("torch/fx/passes/runtime_assert.py", 24)]) is None
