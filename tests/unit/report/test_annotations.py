import re

from tests.fakes.results import finding, result

from onnx_ci.records.report import Leg, Plan
from onnx_ci.report.annotations import collect, commands
from onnx_ci.report.merge import merge


def lines(findings, required=True, **more):
    report = merge([result("a", "cpu", findings, required=required)], more.get("plan"), more.get("problems", []))
    return commands(collect(report, config="onnx-ci.toml"), where="the summary")


def test_a_finding_is_shown_at_its_file_and_line():
    placed = finding("parity.runtime", "fail", "y", "50 % off\nhere", hint="mend", file="models/a.py", line=7)
    assert lines([placed]) == [
        "::error file=models/a.py,line=7,title=parity.runtime%3A a on cpu (y)::50 %25 off%0Ahere%0Amend"
    ]


def test_without_a_file_it_is_shown_at_the_config():
    assert "file=onnx-ci.toml,line=1," in lines([finding("parity.runtime", "fail", "y", "m")])[0]


def cause(**more):
    data = {"outputs": ["y", "z"]}
    return finding("parity.divergence", "fail", "y", "y first goes wrong", file="a.py", line=7, data=data, **more)


def test_a_line_is_annotated_once_and_first_with_the_cause():
    export = [cause(), finding("parity.translation", "fail", "y", "other function", file="onnx-ci.toml", line=3)]
    cpu = [
        finding("parity.runtime", "fail", "z[1]", "off", file="a.py", line=9),
        finding("contract.range", "warn", "n", "narrow", file="a.py", line=7),
        finding("parity.runtime", "fail", "w", "another", file="a.py", line=9),
    ]
    report = merge([result("a", "export", export), result("a", "cpu", cpu)], None, [])
    found = collect(report, config="onnx-ci.toml")
    assert [(one.file, one.line, one.level) for one in found] == [("a.py", 7, "error"), ("a.py", 9, "error")]
    assert found[0].title == "parity.divergence: a on export (y), and 3 more"
    said = found[0].message.split("\n\n")
    assert said[:2] == ["y first goes wrong", "parity.translation: a on export (y)\nother function"]
    assert [one.partition(":")[0] for one in said[2:]] == ["contract.range", "parity.runtime"]
    assert found[1].message == "another"


def test_a_cause_on_another_target_or_of_another_model_moves_nothing():
    off = finding("parity.runtime", "fail", "y", "off", file="a.py", line=9)
    for other in (result("a", "gpu", [cause()]), result("b", "export", [cause()])):
        found = collect(merge([other, result("a", "cpu", [off])], None, []), config="onnx-ci.toml")
        assert sorted(one.line for one in found) == [7, 9]


def test_findings_at_the_config_stay_apart():
    found = [finding("parity.runtime", "fail", name, "off", file="onnx-ci.toml", line=3) for name in "xy"]
    assert len(lines(found)) == 2


def test_what_does_not_count_warns():
    assert lines([finding("parity.runtime", "warn", "y", "m")])[0].startswith("::warning ")
    assert lines([finding("parity.runtime", "fail", "y", "m")], required=False)[0].startswith("::warning ")
    assert lines([finding("parity.runtime", "pass", "y", "m"), finding("golden.new", "skip", "y", "m")]) == []


def test_missing_legs_and_problems_are_shown():
    legs = [Leg(model="a", variant=None, target=name, required=name != "npu") for name in ("cpu", "gpu", "npu")]
    found = lines(
        [finding("parity.runtime", "pass", "y", "m")],
        plan=Plan(schema_version=1, config="c", legs=legs),
        problems=["x.json: not JSON"],
    )
    assert [line.split(" ")[0] for line in found] == ["::error", "::error", "::warning"]
    assert "a on gpu: no result" in found[1]


def test_a_level_is_capped_at_ten_and_says_how_many_more():
    many = [finding("parity.runtime", status, f"{at}", "m") for at in range(30) for status in ("fail", "warn")]
    found = lines(many)
    errors = [line for line in found if line.startswith("::error")]
    warnings = [line for line in found if line.startswith("::warning")]
    assert (len(errors), len(warnings)) == (10, 10)
    assert errors[-1].endswith("::and 21 more: see the summary")
    exactly = lines([finding("parity.runtime", "fail", f"{at}", "m") for at in range(10)])
    assert len(exactly) == 10
    assert "more" not in exactly[-1]


def test_nothing_from_outside_starts_another_command_or_property():
    nasty = "a,b:c%0A::error::forged\r\n::set-output name=x::y"
    found = lines([finding("parity.runtime", "fail", nasty, nasty, hint=nasty, file="a,line=9:b.py", line=3)])
    assert len(found) == 1
    assert not re.search(r"[\r\n]", found[0])
    properties = found[0].split("::")[1]
    assert properties.startswith("error file=a%2Cline=9%3Ab.py,line=3,title=")
    assert "%250A" in found[0]
