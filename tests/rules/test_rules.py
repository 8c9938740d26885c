"""Each rule of the catalogue is broken by a project of its own, and a healthy sibling of it fails nothing."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from onnx_ci import rules
from tests.rules.projects import HERE, Example, Stage, examples, matches, unmet

EXAMPLES = examples()
BROKEN = [one for one in EXAMPLES if one.broken.is_dir()]
HEALTHY = [one for one in EXAMPLES if one.healthy.is_dir()]
BY_HAND = {
    "contract.breaking": "test_contract.py",
    "contract.compatible": "test_contract.py",
    "contract.stale": "test_contract.py",
    "environment.internal": "test_environment.py",
    "environment.missing": "test_environment.py",
    "environment.too-old": "test_environment.py",
    "environment.two-runtimes": "test_environment.py",
    "provider.placement-unknown": "test_provider.py",
}
"""What no project can bring about: the test of each rule is called for it, once broken and once healthy."""
INFORMS = {"export.exported", "provider.placement"}
"""What only tells, and can't be broken: every healthy project shows it."""

pytestmark = pytest.mark.torch


def named(example: Example) -> str:
    return example.name


@pytest.mark.parametrize("example", BROKEN, ids=named)
def test_a_broken_project_is_found_out(stage: Stage, example: Example, tmp_path: Path) -> None:
    played = stage.play(example.broken, tmp_path, before=example.before)
    assert unmet(played, example.expected()) == [], "\n".join(played.told("pass", "skip", "warn", "fail", "error"))


@pytest.mark.parametrize("example", HEALTHY, ids=named)
def test_its_healthy_sibling_fails_nothing(stage: Stage, example: Example, tmp_path: Path) -> None:
    played = stage.play(example.healthy, tmp_path, before=example.before)
    assert played.told("warn", "fail", "error") == []
    judged = [one for one in example.expected() if one.status != "pass"] if example.broken.is_dir() else []
    for leg, found in played.findings():
        assert not any(found.rule == one.rule and found.status in ("warn", one.status) for one in judged), (leg, found)
    shown = {found.rule for _, found in played.findings() if found.status == "pass"}
    assert shown >= INFORMS
    assert shown & {"parity.runtime", "parity.exact", "parity.tolerance"}, "no value was compared"


def test_each_rule_has_a_broken_example_and_a_healthy_one() -> None:
    found = [(one.rule, found) for one in BROKEN if one.healthy.is_dir() for found in one.expected()]
    expected = {one.rule for of, one in found if one.status != "pass" or one.rule == of}
    assert expected.isdisjoint(BY_HAND)
    assert rules.catalogue().keys() - expected - BY_HAND.keys() - INFORMS == set()


def test_each_folder_is_named_for_a_rule_that_it_breaks() -> None:
    for example in BROKEN:
        assert example.rule in {found.rule for found in example.expected()}, example.name
        assert len(example.name.split("/")) in (2, 3), example.name
    assert {example.rule for example in EXAMPLES} <= rules.catalogue().keys()


def test_each_broken_example_has_a_healthy_sibling() -> None:
    assert [example.name for example in BROKEN if not example.healthy.is_dir()] == []


def test_each_rule_that_is_tested_by_hand_has_its_two_tests() -> None:
    for rule, file in BY_HAND.items():
        assert rule in rules.catalogue()
        tests = [node.name for node in ast.parse((HERE / file).read_text()).body if isinstance(node, ast.FunctionDef)]
        stem = rule.replace(".", "_").replace("-", "_")
        assert {f"test_{stem}_broken", f"test_{stem}_healthy"} <= set(tests), rule


def test_an_expectation_is_held_in_all_that_it_says(stage: Stage, tmp_path: Path) -> None:
    example = next(one for one in BROKEN if one.name == "contract/static-dim/equality")
    played = stage.play(example.broken, tmp_path)
    told = [(leg, found) for leg, found in played.findings() if found.rule == "contract.static-dim"]
    (wanted, _) = example.expected()
    assert any(matches(played, leg, found, wanted) for leg, found in told)
    for other in ("rule", "status", "leg", "subject", "file", "line"):
        changed = wanted.but(**{other: "another"})
        assert unmet(played, [changed]) == [changed], other
    assert unmet(played, [wanted.but(message=["another"])])
