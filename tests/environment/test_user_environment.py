"""A user's environment with packages that the tool could not live with: used as it is, and left as it was."""

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

pytestmark = pytest.mark.torch

ROOT = Path(__file__).parents[2]
ENTRY = """
import torch
from pydantic import VERSION, BaseModel, validator   # `validator` and BaseModel as pydantic 1 has them

class Settings(BaseModel):
    features: int = 3

    @validator("features")
    def positive(cls, value):
        assert value > 0
        return value

def make_model():
    assert VERSION.startswith("1."), VERSION
    return torch.nn.Linear(Settings().dict()["features"], 2).eval()

def make_inputs():
    return [("example", {"input": torch.ones(2, 3)})]
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory) -> Path:
    """An interpreter with pydantic 1 in front of the packages of this one (a copy of torch would be gigabytes)."""
    folder = tmp_path_factory.mktemp("user") / "venv"
    venv.create(folder, with_pip=False)
    found = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(found), "-q", "install", "--require-hashes", "--no-deps"]
    subprocess.run([*pip, "-r", str(ROOT / "requirements" / "old-pydantic.lock")], check=True)
    site = next(folder.glob("lib/python*/site-packages"))
    (site / "behind.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return found


def freeze(python: Path) -> str:
    command = [sys.executable, "-m", "pip", "--python", str(python), "freeze", "--all"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def files(python: Path) -> list[str]:
    site = next(python.parents[1].glob("lib/python*/site-packages"))
    return sorted(path.relative_to(site).as_posix() for path in site.rglob("*") if "__pycache__" not in path.parts)


def test_old_packages_of_the_user_are_neither_shadowed_nor_changed(python, tmp_path):
    (tmp_path / "model.py").write_text(ENTRY)
    (tmp_path / "onnx-ci.toml").write_text('[models.net]\nentrypoint = "model.py"\n[latency]\nbudget_seconds = 0.1\n')
    before = freeze(python), files(python)
    assert "pydantic==1." in before[0]

    command = [sys.executable, "-m", "onnx_ci", "run", "--python", str(python)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=dict(os.environ))

    assert done.returncode == 0, done.stdout + done.stderr
    assert (freeze(python), files(python)) == before
