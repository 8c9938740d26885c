"""The action's own scripts as modules: they lie beside action.yml, outside the package."""

from __future__ import annotations

import importlib.util
from types import ModuleType

from tests.action.harness import ROOT


def _load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"onnx_ci_action_{name}", ROOT / "actions" / "job" / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


setup = _load("setup")
job = _load("job")
copy = _load("copy")
