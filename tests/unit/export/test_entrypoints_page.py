"""What docs/entrypoints.md shows works as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import tomllib
import torch

from onnx_ci.config.load import load
from onnx_ci.export import entrypoint, given
from onnx_ci.records.model import ModelSpec

PAGE = (Path(__file__).parents[3] / "docs/entrypoints.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The page's files, each example written or run as it says."""
    monkeypatch.chdir(tmp_path)
    for folder in ("models", "samples"):
        (tmp_path / folder).mkdir()
    for text in blocks("python"):
        head = text.splitlines()[0].removeprefix("# ")
        if head == "how to write one":
            exec(compile(text, "page", "exec"), {})
        else:
            file = tmp_path / head.partition(",")[0]
            file.write_text((file.read_text() if file.exists() else "") + text)
    (tmp_path / "onnx-ci.toml").write_text("".join(blocks("toml")))
    return tmp_path


def test_its_models_load_and_its_cases_run_through_forward(project: Path) -> None:
    config = load(None, cwd=project)
    assert [model.name for model in config.models] == [*tomllib.loads("".join(blocks("toml")))["models"]]
    names = {}
    for model in config.models:
        loaded = entrypoint.load(model, project)
        cases = given.read(model, loaded, project)
        for case in cases:
            assert isinstance(loaded.module(**case.inputs), torch.Tensor)
        names[model.name] = [case.name for case in cases]
        if loaded.short:
            assert set(loaded.export_kwargs) == {"opset_version", "output_names", "dynamic_shapes"}
    assert names == {
        "classifier": ["two rows", "five rows", "night", "test_data_set_0"],
        "short": ["three rows", "one row"],
    }


@pytest.mark.parametrize(
    "shown", re.findall(r"`([^`]+)`", PAGE.partition("instead of a list: ")[2].partition("\n\n")[0])
)
def test_each_shorter_form_that_it_shows_is_one_case(shown: str, tmp_path: Path) -> None:
    (tmp_path / "short.py").write_text(
        "import torch\n"
        "x, mask = torch.ones(3, 4), torch.ones(3)\n"
        "class Model(torch.nn.Module):\n"
        "    def forward(self, input, mask=None):\n"
        "        return input if mask is None else input * mask[:, None]\n"
        "def make_model():\n    return Model().eval()\n"
        f"def make_inputs():\n    return {shown}\n"
    )
    model = ModelSpec(name="short", entrypoint="short.py")
    loaded = entrypoint.load(model, tmp_path)
    (case,) = given.read(model, loaded, tmp_path)
    assert set(case.inputs) == ({"input", "mask"} if "mask" in shown else {"input"})
    assert loaded.module(**case.inputs).shape == (3, 4)
