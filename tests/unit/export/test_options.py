"""The options of an export: the config's, and the short form's own where it says how."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from onnx_ci.export import options
from onnx_ci.export.types import Entrypoint
from onnx_ci.records.model import ExportSpec, ModelSpec


def entrypoint(**export_kwargs):
    return Entrypoint(torch.nn.Identity(), None, export_kwargs, Path("m.py"), short=bool(export_kwargs))


@pytest.mark.parametrize(
    ("config", "kwargs", "optimize"),
    [(True, {}, True), (False, {}, False), (False, {"opset_version": 20}, False), (False, {"optimize": True}, True)],
)
def test_the_optimizer_is_left_out_where_the_config_says_so(config, kwargs, optimize):
    spec = ModelSpec(name="m", entrypoint="m.py:build", export=ExportSpec(optimize=config))
    assert options.read(spec, entrypoint(**kwargs)).optimize == optimize
