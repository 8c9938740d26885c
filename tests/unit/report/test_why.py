from dataclasses import replace

import pytest
from tests.fakes.results import MACHINE, PACKAGES, contract, healthy, slower

from onnx_ci.report import page, why
from onnx_ci.report.context import Context
from onnx_ci.report.merge import merge
from onnx_ci.report.numbers import plain


def told():
    found = why.why(slower())
    assert found is not None
    return found


def test_operators_stand_base_beside_head():
    rows = [[plain(cell) for cell in row] for row in why.operators(told())]
    assert rows == [["MatMul", "1 ×, 1.02 ms", "4 ×, 4.08 ms"], ["Transpose", "–", "3 ×, 310 µs"]]


def test_the_hottest_nodes_have_their_lines_where_they_are_known():
    rows = why.hottest(told())
    assert rows[0][-1] == "models/tokens.py:31"
    assert rows[-1] == ["node_softmax", "Softmax", "12.0\u00a0µs", "–"]


def test_what_computes_nothing_is_told():
    assert plain(why.overhead(told())).endswith("take 0 µs in the base and 310 µs here.")


@pytest.mark.parametrize(
    "wrong",
    [
        "text",
        {},
        {"operators": [{"op": "MatMul", "head": -1, "base": 1, "head_us": 1.0, "base_us": 1.0}]},
        {"operators": [{"op": "MatMul", "head": 1, "base": 1, "head_us": "nan", "base_us": 1.0}]},
        {"operators": [], "hottest": [{"node": 3, "op": None, "us": 1}]},
        {"operators": [], "overhead_us": {"head": 1e300, "base": 0}},
    ],
)
def test_what_does_not_hold_together_is_left_out(wrong):
    found = replace(slower(), data={"why": wrong})
    assert why.why(found) is None


def test_versions_that_differ_are_named_and_none_is_said_too():
    export, cpu = healthy("tokens", 2.6, 3.02)
    older = contract("tokens", environment=replace(MACHINE, packages=PACKAGES | {"torch": "2.12.1"}))
    assert "torch 2.12.1 → " in why.versions(merge([export, cpu], None, [], {"tokens": older}))
    assert "the same versions" in why.versions(merge([export, cpu], None, [], {"tokens": contract("tokens")}))
    assert why.versions(merge([export, cpu], None, [])) == ""


def test_the_page_folds_it_under_the_finding_and_shows_the_peak_of_memory():
    export, cpu = healthy("tokens", 2.6, 3.02)
    text = page.render(merge([export, replace(cpu, findings=[slower()])], None, []), Context())
    assert text.count("<summary>Why it takes longer than the base</summary>") == 2  # at the top and in its table
    assert "<th>Peak memory</th>" in text
    assert "512\u00a0MiB" in text
