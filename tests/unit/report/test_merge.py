from dataclasses import replace

import pytest
from tests.fakes.results import MACHINE, PACKAGES, contract, finding, realistic, result

from onnx_ci.records.report import Leg, Plan, VersionChange
from onnx_ci.records.result import StageCost
from onnx_ci.report.merge import merge


def leg(model="a", target="cpu", required=True, **more):
    return Leg(model=model, variant=None, target=target, required=required, **more)


def plan(*legs):
    return Plan(schema_version=1, config="onnx-ci.toml", legs=list(legs))


def of(status, target="cpu", *, required=True, model="a", **more):
    return result(model, target, [finding("parity.runtime", status, "y", "said")], required=required, **more)


@pytest.mark.parametrize(
    ("results", "legs", "status", "code"),
    [
        ([of("pass")], [leg()], "pass", 0),
        ([of("warn")], [leg()], "warn", 0),
        ([of("fail")], [leg()], "fail", 1),
        ([of("error")], [leg()], "error", 3),
        ([of("skip")], [leg()], "error", 3),
        ([of("fail"), of("error", "gpu")], [leg(), leg(target="gpu")], "error", 3),
        ([of("fail"), of("warn", "gpu")], [leg(), leg(target="gpu")], "fail", 1),
        ([of("pass"), of("fail", "gpu")], [leg(), leg(target="gpu", required=False)], "warn", 0),
        ([of("pass"), of("error", "gpu")], [leg(), leg(target="gpu", required=False)], "warn", 0),
        ([of("pass")], [leg(), leg(target="gpu")], "error", 3),
        ([of("fail")], [leg(), leg(target="gpu")], "error", 3),
        ([of("pass")], [leg(), leg(target="gpu", required=False)], "warn", 0),
        ([of("pass")], [leg(), leg(target="gpu", not_run="not run on forks")], "warn", 0),
        ([], [leg()], "error", 3),
        ([], [], "pass", 0),
        ([of("pass")], None, "pass", 0),
        ([of("fail", required=False)], None, "warn", 0),
        ([], None, "error", 3),
        ([of("fail")], [], "fail", 1),  # not planned, and broken all the same
    ],
)
def test_one_status_and_one_exit_code_come_of_all_results(results, legs, status, code):
    report = merge(results, None if legs is None else plan(*legs), [])
    assert (report.status, report.exit_code) == (status, code)


def test_the_plan_says_what_is_required_and_not_the_result():
    report = merge([of("fail", required=False)], plan(leg(required=True)), [])
    assert report.exit_code == 1


def test_a_problem_outranks_a_broken_promise():
    assert merge([of("fail")], plan(leg()), ["x.json: not JSON"]).exit_code == 3


def test_a_claim_does_not_stand_against_its_own_findings():
    report = merge([replace(of("fail"), status="pass")], plan(leg()), [])
    assert (report.results[0].status, report.exit_code) == ("fail", 1)
    report = merge([replace(of("pass"), status="error")], plan(leg()), [])
    assert report.exit_code == 3


def test_a_pass_that_looked_at_nothing_is_none():
    empty = replace(of("pass"), findings=[], stages={})
    assert merge([empty], plan(leg()), []).exit_code == 3
    looked = replace(empty, stages={"structure": StageCost(seconds=1.0)})
    assert merge([looked], plan(leg()), []).exit_code == 0


def test_two_results_of_one_leg_are_a_problem_and_one_is_shown():
    report = merge([of("pass"), of("pass")], plan(leg()), [])
    assert report.exit_code == 3
    assert len(report.results) == 1
    assert "2 results" in report.problems[0]


def test_a_leg_that_judged_other_bytes_is_a_problem():
    export = of("pass", "export", artifact="1" * 64)
    report = merge([export, of("pass", artifact="2" * 64)], None, [])
    assert report.exit_code == 3
    assert "111111111111" in report.problems[0]


def test_a_leg_without_an_artifact_is_explained_by_the_export_that_broke():
    export = of("fail", "export", artifact=None)
    legs = plan(leg(target="export"), leg())
    assert merge([export], legs, []).exit_code == 1
    assert merge([export, of("skip")], legs, []).exit_code == 1
    # with an artifact it could have been judged: that it was not is something else
    assert merge([of("fail", "export", artifact="1" * 64)], legs, []).exit_code == 3
    # an export that could not be told explains nothing
    assert merge([of("error", "export", artifact=None)], legs, []).exit_code == 3


def test_no_model_touched_is_said():
    assert merge([], plan(), []).notes == ["No model was touched."]


def test_the_order_is_stable():
    results, legs, base = realistic()
    assert merge(results, legs, [], base) == merge(results[::-1], legs, [], base)
    names = [(one.model, one.target) for one in merge(results, legs, [], base).results]
    assert names[:3] == [("classifier", "export"), ("classifier", "cpu"), ("pool", "export")]


def test_versions_are_compared_with_the_base_of_the_same_model():
    before = replace(MACHINE, packages=PACKAGES | {"torch": "2.12.1", "old": "1"}, python="3.10.1")
    report = merge(
        [of("pass", "export"), of("pass", "export", model="b")], None, [], {"a": contract("a", environment=before)}
    )
    assert report.versions == [
        VersionChange(package="old", base="1", head=None),
        VersionChange(package="python", base="3.10.1", head="3.11.7"),
        VersionChange(package="torch", base="2.12.1", head="2.13.0"),
    ]
    assert (report.changed, report.new, report.base) == (["a"], ["b"], True)


def test_without_a_base_nothing_is_new():
    report = merge([of("pass", "export")], None, [])
    assert (report.versions, report.new, report.base) == ([], [], False)


def test_an_earlier_run_in_the_same_folder_is_left_out_where_asked_and_said():
    report = merge([of("pass"), of("fail", "gpu")], plan(leg()), [], planned_only=True)
    assert (report.status, report.exit_code) == ("pass", 0)
    assert [one.target for one in report.results] == ["cpu"]
    assert any("Left out" in note and "on gpu" in note for note in report.notes)


def exported(now, **more):
    return of("pass", "export", contract=now, **more)


def test_a_contract_that_breaks_the_bases_fails_the_export():
    report = merge(
        [exported(contract("a", opset=21, batch="mixed"))], plan(leg(target="export")), [], {"a": contract("a")}
    )
    assert (report.status, report.exit_code, report.changed) == ("fail", 1, ["a"])
    told = [(one.rule, one.status) for one in report.results[0].findings if one.stage == "contract"]
    assert told == [("contract.breaking", "fail"), ("contract.breaking", "warn")]


def test_a_break_that_the_contract_version_speaks_of_is_a_warning():
    now = contract("a", batch="mixed", contract_version=2)
    report = merge([exported(now)], plan(leg(target="export")), [], {"a": contract("a")})
    assert (report.status, report.exit_code) == ("warn", 0)


def test_a_contract_like_the_bases_passes_and_marks_nothing():
    report = merge([exported(contract("a"))], None, [], {"a": contract("a")})
    assert (report.status, report.changed) == ("pass", [])
    assert report.results[0].findings[-1].rule == "contract.compatible"


@pytest.mark.parametrize(
    ("model", "variant", "base"),
    [("a", None, {"a@v": contract("a@v", batch="mixed")}), ("a", "v", {"a": contract("a", batch="mixed")})],
)
def test_variants_are_compared_with_themselves_only(model, variant, base):
    now = contract(f"{model}@{variant}" if variant else model)
    report = merge([replace(exported(now), variant=variant)], None, [], base)
    assert [one.rule for one in report.results[0].findings] == ["parity.runtime"]


def test_a_contract_of_another_model_or_schema_is_not_compared():
    for other in (contract("b", batch="mixed"), contract("a", batch="mixed", schema_version=2)):
        report = merge([exported(other)], None, [], {"a": contract("a")})
        (found,) = [one for one in report.results[0].findings if one.stage == "contract"]
        assert (found.rule, found.status) == ("contract.compatible", "skip")


def test_a_target_or_an_export_without_a_contract_has_nothing_to_compare():
    report = merge(
        [of("pass", contract=contract("a", batch="mixed")), of("fail", "export")], None, [], {"a": contract("a")}
    )
    assert not [one for result in report.results for one in result.findings if one.stage == "contract"]
