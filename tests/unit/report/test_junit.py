import math
from dataclasses import replace

import pytest
from junitparser import Error, Failure, JUnitXml, Skipped
from tests.fakes.results import finding, realistic, result

from onnx_ci.records.report import Leg, Plan
from onnx_ci.records.result import StageCost
from onnx_ci.report import junit
from onnx_ci.report.merge import merge


def cases(report):
    parsed = JUnitXml.fromstring(junit.render(report, config="onnx-ci.toml").encode())
    return [case for suite in parsed for case in suite]


def kinds(case):
    return [type(one) for one in case.result]


def of(*findings, **more):
    return merge([result("a", "cpu", list(findings), **more)], None, [])


def test_every_case_has_what_report_readers_need():
    results, plan, base = realistic()
    found = cases(merge(results, plan, ["x.json: not JSON"], base))
    assert len({case.name for case in found}) == len(found) > 20
    for case in found:
        assert case.classname.startswith("onnx-ci.")
        assert case.time > 0
        assert case._elem.get("file")
        assert int(case._elem.get("line")) >= 1


@pytest.mark.parametrize(
    ("status", "required", "kind"),
    [
        ("pass", True, []),
        ("warn", True, []),
        ("fail", True, [Failure]),
        ("error", True, [Error]),
        ("skip", True, [Skipped]),
        ("fail", False, [Skipped]),
        ("error", False, [Skipped]),
    ],
)
def test_broken_promises_are_failures_and_what_could_not_be_told_errors(status, required, kind):
    report = of(finding("parity.runtime", status, "y", "relL2 0.5", hint="mend"), required=required, stages={})
    [case] = cases(report)
    assert kinds(case) == kind
    if kind:
        assert "relL2 0.5" in case.result[0].message
        assert "\n" not in case.result[0].message
        assert "mend" in case.result[0].text


def test_a_place_is_the_findings_own_else_its_results_else_the_config():
    placed = finding("parity.runtime", "fail", "y", "m", file="models/a.py", line=7)
    bare = finding("golden.drift", "fail", "y", "m")
    at = {case.name: (case._elem.get("file"), case._elem.get("line")) for case in cases(of(placed, bare))}
    assert at["a [cpu] parity.runtime y"] == ("models/a.py", "7")
    assert at["a [cpu] golden.drift y"] == ("models/a.py", "7")
    assert {case._elem.get("file") for case in cases(of(bare))} == {"onnx-ci.toml"}


@pytest.mark.parametrize(
    ("file", "line"), [("/etc/passwd", 3), ("../x", 3), ("a.py", 0), ("a.py", -1), ("a.py", 10**400)]
)
def test_a_place_that_can_not_be_is_replaced(file, line):
    [case, *_] = cases(of(finding("parity.runtime", "fail", "y", "m", file=file, line=line)))
    assert (case._elem.get("file"), case._elem.get("line")) in [("onnx-ci.toml", "1"), ("a.py", "1")]


def test_two_findings_of_one_name_are_two_cases():
    same = finding("parity.runtime", "fail", "y", "m")
    assert [case.name for case in cases(of(same, same))][:2] == [
        "a [cpu] parity.runtime y",
        "a [cpu] parity.runtime y (2)",
    ]


def test_a_stage_carries_its_time_once():
    report = of(
        finding("parity.runtime", "pass", "y", ""),
        finding("parity.runtime", "pass", "z", ""),
        stages={"parity": StageCost(seconds=2.5), "structure": StageCost(seconds=math.nan)},
    )
    assert [case.time for case in cases(report)] == [2.5, 0.001, 0.001]


def test_a_missing_leg_and_a_problem_are_errors_and_one_that_need_not_run_is_skipped():
    legs = [
        Leg(model="a", variant=None, target="cpu", required=True),
        Leg(model="a", variant=None, target="gpu", required=False),
        Leg(model="a", variant=None, target="npu", required=True, not_run="not run on forks"),
    ]
    found = cases(merge([], Plan(schema_version=1, config="c", legs=legs), ["broken.json: not JSON"]))
    assert [kinds(case) for case in found] == [[Error], [Skipped], [Skipped], [Error]]


def test_terminal_codes_and_control_characters_are_gone():
    nasty = "\x1b[31mred\x1b[0m \x00 \ud800 ]]> <&\ufffe"
    text = junit.render(of(finding("parity.runtime", "fail", nasty, nasty, hint=nasty)), config="c")
    assert "[31m" not in text
    assert "\x00" not in text
    text.encode("utf-8")
    JUnitXml.fromstring(text.encode())


def test_a_result_that_claims_worse_than_it_shows_is_an_error():
    report = merge([replace(result("a", "cpu", [finding("parity.runtime", "pass", "", "")]), status="error")], None, [])
    assert [Error] in [kinds(case) for case in cases(report)]


def test_no_result_at_all_is_an_error_too():
    assert [kinds(case) for case in cases(merge([], None, []))] == [[Error]]


def test_the_exceptions_behind_a_finding_follow_it_the_cause_first():
    stopped = finding(
        "export.stopped", "fail", "capture", "it stopped", data={"chain": ["Outer: a", "Root: b\x1b[96m"]}
    )
    odd = finding("export.stopped", "fail", "capture", "it stopped", data={"chain": {"no": "list"}})
    first, second = [case for case in cases(of(stopped, odd)) if "export.stopped" in case.name]
    assert first.result[0].text.splitlines()[-2:] == ["cause: Root: b", "cause: Outer: a"]
    assert "cause:" not in second.result[0].text
