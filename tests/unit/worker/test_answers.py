"""What a worker hands over is read as from outside."""

from __future__ import annotations

from pydantic import TypeAdapter

from onnx_ci.records import codec
from onnx_ci.records.messages import Event, Reexported
from onnx_ci.records.result import StageCost
from onnx_ci.worker import answers

KIND = TypeAdapter(Reexported)
GOOD = Reexported(findings=[], cost=StageCost(seconds=1.0))


def event(**more):
    return Event(id=1, kind="result", payload=codec.encode(GOOD) | more)


def test_an_answer_comes_back_as_it_was_written():
    assert answers.read(KIND, event()) == GOOD


def test_what_is_wrong_is_told_with_its_place():
    said = answers.read(KIND, event(cost={"seconds": "soon"}))
    assert isinstance(said, str)
    assert said.startswith("its answer can't be read: cost.seconds: ")
