"""Rules of stage provider that no project can break."""

from __future__ import annotations

from onnx_ci.records.model import TargetSpec
from onnx_ci.runtime.placement import PlacedNode
from onnx_ci.verify import placement

GPU = TargetSpec(name="gpu", provider="CUDAExecutionProvider")


def test_provider_placement_unknown_broken() -> None:
    (told,) = placement.judge(None, GPU, set(), None, {})
    assert (told.rule, told.status) == ("provider.placement-unknown", "warn")
    assert "a fallback would go unseen" in told.message


def test_provider_placement_unknown_healthy() -> None:
    told = placement.judge([PlacedNode("Conv_1", "Conv", GPU.provider)], GPU, set(), None, {})
    assert {one.rule: one.status for one in told} == {"provider.placement": "pass", "provider.fallback": "pass"}
