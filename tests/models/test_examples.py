"""The example models are what they say they are, before onnx-ci has a word in it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
import tomllib
import torch

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "fixtures"
CONFIG = tomllib.loads((FIXTURES / "onnx-ci.toml").read_text())
DEMO = tomllib.loads((FIXTURES / "demo.toml").read_text())
BROKEN = tomllib.loads((FIXTURES / "broken.toml").read_text())
ARCHITECTURES = tomllib.loads((FIXTURES / "architectures.toml").read_text())
HELD_OUT = tomllib.loads((FIXTURES / "held_out.toml").read_text())
HEALTHY = {**CONFIG["models"], **ARCHITECTURES["models"], **HELD_OUT["models"]}


def load(file: str) -> ModuleType:
    path = FIXTURES / file
    spec = importlib.util.spec_from_file_location(f"fixture_{path.parent.name}_{path.stem}", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def same(left: object, right: object) -> bool:
    leaves = [torch.utils._pytree.tree_leaves(side) for side in (left, right)]
    return all(torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(*leaves, strict=True))


def test_the_configs_name_every_example_model():
    models = [*HEALTHY.values(), *BROKEN["models"].values()]
    named = {model["entrypoint"].partition(":")[0] for model in models}
    assert named == {str(file.relative_to(FIXTURES)) for file in FIXTURES.rglob("*.py")}


def test_the_demo_names_models_of_the_fixtures():
    for name, model in DEMO["models"].items():
        assert model["entrypoint"] == CONFIG["models"][name]["entrypoint"]


# std_of_one is there for its NaN.
@pytest.mark.filterwarnings(r"ignore:std\(\). degrees of freedom is <= 0:UserWarning")
@pytest.mark.parametrize("name", sorted(HEALTHY))
def test_an_example_model_is_in_eval_mode_and_answers_its_cases_twice_alike(name: str):
    model = HEALTHY[name]
    file, _, function = model["entrypoint"].partition(":")
    module = load(file)
    built = getattr(module, function or "make_model")(**model.get("kwargs", {}))
    assert not any(part.training for part in built.modules())
    cases = getattr(module, "cases", None) or getattr(module, "make_inputs", None)
    with torch.no_grad():
        for _, inputs in cases() if cases else []:
            assert same(built(**inputs), built(**inputs))


@pytest.mark.parametrize(
    ("height", "width", "short", "grid"),
    [(48, 64, 4, (4, 5)), (90, 50, 4, (7, 4)), (50, 50, 4, (4, 4)), (32, 36, 4, (4, 4)), (48, 60, 2, (2, 2))],
)
def test_the_static_ratio_pool_is_its_original_at_that_size(height: int, width: int, short: int, grid: tuple[int, int]):
    ratio_pool = load("ratio_pool/model.py")
    images = torch.rand(2, 3, height, width, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        made = ratio_pool.build(height, width, short)(images)
        assert tuple(made.shape[2:]) == grid
        assert same(made, ratio_pool.original(short)(images))


def test_the_trained_weights_see_the_face_of_the_photograph_where_it_is():
    face_proposals = load("face_proposals/model.py")
    inputs = dict(face_proposals.cases())["face"]
    with torch.no_grad():
        face = face_proposals.build()(**inputs)["face"][0]
    row, column = divmod(int(face.argmax()), face.shape[1])
    # A score stands for a 12 x 12 window that starts at twice its place. The face fills the middle of the crop.
    centre = (2 * row + 6, 2 * column + 6)
    assert float(face.max()) > 0.9
    assert all(20 <= place <= 48 for place in centre)
    assert float((face > 0.6).float().mean()) < 0.1
