import math

import pytest

from onnx_ci.report.numbers import count, figure, milliseconds, size, times


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (math.nan, "NaN"),
        (math.inf, "∞"),
        (-math.inf, "‑∞"),
        (0.0, "0"),
        (1.234e-5, "1.23e‑5"),
        (5e-6, "5e‑6"),
        (-0.0001, "‑1e‑4"),
        (0.5712, "0.571"),
        (12.345, "12.3"),
        (999.96, "1000"),
        (1234.5, "1234"),
        (1e22, "1e22"),
    ],
)
def test_a_figure_has_three_digits_and_no_place_to_break(value, text):
    assert figure(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (math.nan, "–"),
        (-1.0, "–"),
        (0.0, "0\u00a0µs"),
        (0.0712, "71.2\u00a0µs"),
        (0.84, "840\u00a0µs"),
        (4.05, "4.05\u00a0ms"),
        (123.4, "123\u00a0ms"),
        (12_345.0, "12.3\u00a0s"),
    ],
)
def test_a_duration_keeps_its_unit(value, text):
    assert milliseconds(value) == text


def test_counts_and_ratios():
    assert (count(1, "model"), count(3, "model"), times(1.538)) == ("1\u00a0model", "3\u00a0models", "1.54×")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (-1, "–"),
        (0, "0\u00a0MiB"),
        (512 << 20, "512\u00a0MiB"),
        (1536 << 20, "1.50\u00a0GiB"),
        (1 << 90, "1073741824\u00a0GiB"),
    ],
)
def test_a_size_is_in_the_unit_that_reads_best_and_bounded(value, text):
    assert size(value) == text
