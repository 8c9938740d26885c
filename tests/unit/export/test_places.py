"""The user's lines, and nobody else's."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from onnx_ci.export.places import Places, chain

HERE = Path(__file__).resolve()
PLACES = Places(HERE.parent, HERE.parent)


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
