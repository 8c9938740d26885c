"""What a finding is of."""

from __future__ import annotations

import pytest

from onnx_ci.records.result import output_of


@pytest.mark.parametrize(
    ("subject", "output"), [("y", "y"), ("y[2]", "y"), ("y[2][0]", "y"), ("z[0]", "z[0]"), ("z[0][1]", "z[0]")]
)
def test_an_item_belongs_to_its_output_and_an_output_may_be_called_like_one(subject, output):
    assert output_of(subject, ["y", "z[0]", "z"]) == output
