"""torch.compile beside eager: in the same pairs where it compiles, and a reason where it does not."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.unit.export.subjects import Does, subject_of

from onnx_ci.export import compiled, graph, save, timing
from onnx_ci.export.compiled import Backend, Compiled
from onnx_ci.export.job import Stages
from onnx_ci.export.types import RunCase
from onnx_ci.records.model import LatencySpec

pytestmark = pytest.mark.torch
ASKED = LatencySpec(budget_seconds=0.1, torch_compile=True)


def made_of(function, seconds: float = 60.0, backend: Backend = "eager") -> Compiled:
    subject = subject_of(Does(function), ["batch", 3], {"batch": (1, 4)}, {"batch": 2})
    with torch.no_grad():
        return compiled.compiled(subject.module, subject.call, seconds, backend=backend)


def refuses(program: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> object:
    raise RuntimeError("\nno working C++ compiler was found\nmore of it")


def sleeps(program: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> object:
    time.sleep(60)
    return program


@torch.compiler.disable
def apart(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def broken(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    torch._dynamo.graph_break()
    return y * 2


def test_a_module_is_compiled_and_gives_its_outputs() -> None:
    found = made_of(lambda x: x.relu() + 1)
    assert found.run is not None
    assert (found.why_not, found.graphs) == ("", 1)
    values = torch.linspace(-1.0, 1.0, 7)[:6].reshape(2, 3)
    assert torch.equal(found.run(), values.relu() + 1)  # type: ignore[arg-type]


def test_a_break_makes_two_graphs_and_is_no_failure() -> None:
    found = made_of(broken)
    assert found.run is not None
    assert found.graphs == 2


@pytest.mark.parametrize(
    ("function", "seconds", "backend", "why"),
    [
        (torch.relu, 60.0, refuses, "RuntimeError: no working C++ compiler was found"),
        (torch.relu, 60.0, "no-such-backend", "no-such-backend"),
        (torch.relu, 0.05, sleeps, "it had not compiled after"),
    ],
)
def test_what_can_not_be_compiled_is_a_reason(function, seconds: float, backend: Backend, why: str) -> None:
    found = made_of(function, seconds, backend)
    assert found.run is None
    assert why in found.why_not
    assert "\n" not in found.why_not


def test_a_module_of_which_nothing_is_compiled_is_not_timed_as_if_it_were() -> None:
    subject = subject_of(Does(torch.relu), ["batch", 3], {"batch": (1, 4)}, {"batch": 2})
    subject.module.forward = torch.compiler.disable(subject.module.forward)  # type: ignore[method-assign]
    found = compiled.compiled(subject.module, subject.call, 60.0, backend="eager")
    assert found.run is None
    assert "nothing of the module was compiled" in found.why_not


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory):
    subject = subject_of(Does(lambda x: x.relu() + 1), ["batch", 3], {"batch": (1, 4)}, {"batch": 2})
    built = graph.build(subject, Stages(lambda stage: None))
    assert isinstance(built, graph.Graph)
    folder = tmp_path_factory.mktemp("artifact")
    save.save(built.model, folder, single_file=True)
    example = RunCase(name="example", origin="example", why="", inputs=subject.example, dims={"batch": 2})
    return subject, built, example, folder


def test_it_is_timed_in_the_same_pairs_where_it_was_asked_for(exported) -> None:
    timings, (found,) = timing.compare(*exported, ASKED, 60.0, backend="eager")
    assert {one.runner for one in timings} == {"onnxruntime", "eager", "torch.compile"}
    assert len({len(one.samples_ms) for one in timings}) == 1
    assert (found.rule, found.status, found.subject) == ("latency.measured", "pass", "torch.compile")
    assert "compiled into 1 graph in" in found.message
    timings, findings = timing.compare(*exported, replace(ASKED, torch_compile=False), 60.0, backend="eager")
    assert ({one.runner for one in timings}, findings) == ({"onnxruntime", "eager"}, [])


def test_where_it_does_not_compile_the_others_are_timed_and_nothing_fails(exported) -> None:
    timings, (found,) = timing.compare(*exported, ASKED, 60.0, backend=refuses)
    assert {one.runner for one in timings} == {"onnxruntime", "eager"}
    assert (found.rule, found.status) == ("latency.measured", "skip")
    assert found.message.startswith("torch.compile was not timed, since ")
    assert found.message.endswith("RuntimeError: no working C++ compiler was found more of it")


def test_a_file_that_does_not_open_is_told_where_it_was_asked_for(exported, tmp_path: Path) -> None:
    timings, (found,) = timing.compare(*exported[:3], tmp_path, ASKED, 60.0, backend=refuses)
    assert timings == []
    assert "ONNX Runtime does not take the file" in found.message
