"""Random modules of shape arithmetic: the verdict agrees with brute force over the whole range.

The recorded run is that of benchmarks/shape_truth.py, with the same generator.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.timeout(1800)]
SEED = 1
COUNT = 30


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> list:
    from tests.shapes.judge import judging

    def all_of(judge) -> Iterator:
        print(f"seed {SEED}")
        yield from filter(None, (judge.judge(SEED, number) for number in itertools.count()))

    with judging(tmp_path_factory.mktemp("shapes")) as judge:
        return list(itertools.islice(all_of(judge), COUNT))


def test_no_broken_module_is_let_through(judged):
    assert not [one.shown() for one in judged if one.missed]


def test_no_healthy_module_is_failed(judged):
    assert not [one.shown() for one in judged if one.alarmed]


def test_both_verdicts_are_common(judged):
    passed = sum(one.passed for one in judged)
    assert min(passed, COUNT - passed) >= 0.3 * COUNT
