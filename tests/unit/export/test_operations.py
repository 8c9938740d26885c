from __future__ import annotations

import torch

from onnx_ci.export import operations
from onnx_ci.export.types import Call


def test_products_are_counted() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    assert operations.count(model, Call((torch.ones(5, 16),), {})) == 2 * 5 * (16 * 32 + 32 * 4)


def test_a_call_that_raises_counts_nothing() -> None:
    assert operations.count(torch.nn.Linear(16, 4), Call((torch.ones(5, 3),), {})) == 0.0
