from dataclasses import replace

import pytest
from tests.fakes.results import GPU_MACHINE, MACHINE, figures, finding, healthy, realistic, result, timing

from onnx_ci.records.report import Leg, Plan
from onnx_ci.report.merge import merge
from onnx_ci.report.numbers import plain
from onnx_ci.report.rows import Latency, findings, rows, same_machine, verdict
from onnx_ci.report.table import latency, parity


def only(results, target="cpu", plan=None):
    return next(row for row in rows(merge(results, plan, [])) if row.target == target)


def test_broken_models_come_first_then_changed_new_and_the_rest():
    results, plan, base = realistic()
    listed = rows(merge(results, plan, [], base))
    assert list(dict.fromkeys(row.label for row in listed)) == ["pool@480x640", "classifier", "tokens", "recurrent"]
    assert [row.target for row in listed if row.label == "tokens"] == ["export", "cpu", "gpu"]


def test_every_leg_has_a_row_and_a_missing_one_says_why():
    legs = [
        Leg(model="a", variant=None, target="cpu", required=True),
        Leg(model="a", variant=None, target="gpu", required=False, not_run="not run on forks"),
        Leg(model="b", variant=None, target="export", required=True),
        Leg(model="b", variant=None, target="cpu", required=True),
    ]
    broken = result("b", "export", [finding("export.failed", "fail", "", "")], artifact=None)
    report = merge([broken], Plan(schema_version=1, config="c", legs=legs), [])
    assert [(row.label, row.target, row.state, verdict(row)) for row in rows(report)] == [
        ("a", "cpu", "missing", "no result"),
        ("a", "gpu", "skip", "not run on forks"),
        ("b", "export", "fail", "export"),
        ("b", "cpu", "skip", "nothing was exported"),
    ]


def test_the_worst_parity_is_shown():
    passed = [finding("parity.runtime", "pass", "", "")]
    close, far = figures("a", 4e-6), figures("b", 1e-7)
    loose = figures("c", 5e-6, limit=1e-2)
    broken, nan = figures("d", 1e-5, status="fail"), figures("e", float("nan"), status="fail")
    assert only([result("m", "cpu", passed, parity=[far, loose, close])]).parity == close
    assert only([result("m", "cpu", passed, parity=[close, broken, far])]).parity == broken
    assert only([result("m", "cpu", passed, parity=[broken, nan, far])]).parity == nan
    assert only([result("m", "cpu", passed)]).parity is None


@pytest.mark.parametrize(
    ("note", "word"),
    [
        ("parity.nonfinite: 6 of 6 places; advisory: nobody said so", "NaN or infinity"),
        ("parity.shape: expected [2], got [3]", "another shape"),
        ("two runs differ; the worse is shown", "differs"),
        ("", "differs"),
    ],
)
def test_what_has_no_error_says_in_a_word_what_is_wrong(note, word):
    broken = replace(figures("a", 0.0, status="warn"), against="exact", note=note)
    assert parity(broken)[0] == word
    assert parity(replace(broken, status="pass"))[0] == "exact"


@pytest.mark.parametrize("limit", [0.0, None])
def test_a_figure_without_a_limit_does_not_stop_the_table(limit):
    passed = [finding("parity.runtime", "pass", "", "")]
    assert only([result("m", "cpu", passed, parity=[figures("a", 1e-7, limit=limit, status="pass")])]).parity


def test_eager_stands_beside_the_runtime_only_on_the_same_machine():
    export, cpu = healthy("m", 1.0, 2.0)
    assert only([export, cpu]).latency == Latency(case="example", runtime=1.0, eager=2.0, paired=False)
    assert only([export, cpu], "export").latency == Latency(case="example", runtime=1.01, eager=2.0, paired=True)
    elsewhere = replace(cpu, environment=replace(MACHINE, cpu="another"))
    assert only([export, elsewhere]).latency == Latency(case="example", runtime=1.0, eager=None, paired=False)


def test_torch_compile_stands_beside_the_runtime_in_the_pairs_of_an_export():
    export, cpu = healthy("m", 1.0, 2.0)
    export = replace(export, latency=[*export.latency, timing("torch.compile", 1.515)])
    found = only([export, cpu], "export").latency
    assert found.compiled == 1.515
    shown = "ONNX\xa0Runtime 1.98×\xa0as\xa0fast, 1.50×\xa0as\xa0fast as torch.compile"
    assert latency(found) == ("PyTorch\xa02.00\xa0ms", shown)
    assert only([export, cpu]).latency.compiled is None


@pytest.mark.parametrize(
    ("status", "ratio", "shown"),
    [
        ("pass", 1.021, "1.02×\xa0the\xa0base"),
        ("fail", 2.08, "2.08×\xa0the\xa0base"),
        ("warn", 1.1, "1.10×\xa0the\xa0base?"),
        ("skip", None, ""),
        ("pass", float("nan"), ""),
        ("pass", "a lot", ""),
    ],
)
def test_the_ratio_to_the_base_stands_below_the_time(status, ratio, shown):
    told = finding("latency.regression", status, "", "", data={"ratio": ratio})
    measured = only([result("m", "cpu", [told], latency=[timing("onnxruntime", 1.0)])]).latency
    assert latency(measured) == ("1.00\xa0ms", shown)


@pytest.mark.parametrize("more", [{"threads": 2}, {"case": "large"}, {"provider": "CUDAExecutionProvider"}])
def test_eager_stands_beside_the_runtime_only_under_the_same_conditions(more):
    export, cpu = healthy("m", 1.0, 2.0)
    other = replace(cpu, latency=[timing("onnxruntime", 1.0, **more)])
    assert only([export, other]).latency.eager is None


def test_machines_that_do_not_say_what_they_are_are_not_the_same():
    assert same_machine(MACHINE, MACHINE)
    assert not same_machine(MACHINE, GPU_MACHINE)
    assert not same_machine(replace(MACHINE, cpu=""), replace(MACHINE, cpu=""))


def test_a_file_that_is_another_function_is_shown_by_its_figures_in_float64():
    found = [finding("parity.function", "fail", "b", "")]
    off = figures("b", 1e-7, status="fail", e_function=2e-6, function_limit=1e-9)
    row = only([result("m", "cpu", found, parity=[figures("a", 4e-6), off, figures("c", 1e-5, status="fail")])])
    assert row.parity == off
    assert [plain(text) for text in parity(row.parity)] == ["2e-6 > 1e-9", "another function: float64"]
    excused = figures("b", 1e-7, e_function=2e-6, function_limit=1e-9)
    assert [plain(text) for text in parity(excused)] == ["1e-7 ≤ 5e-6", ""]


def test_what_all_legs_say_is_told_once_with_their_names():
    same, other = finding("parity.function", "fail", "y", "off"), finding("parity.runtime", "fail", "y", "off")
    results = [result("m", target, [same, other] if target == "cpu" else [same]) for target in ("gpu", "cpu")]
    found = findings(merge([*results, result("n", "cpu", [same])], None, []), "fail")
    assert [(one.model, one.target, two.rule) for one, two in found] == [
        ("m", "cpu, gpu", "parity.function"),
        ("m", "cpu", "parity.runtime"),
        ("n", "cpu", "parity.function"),
    ]


def test_a_leg_that_says_it_twice_tells_two_facts():
    found = findings(merge([result("m", "cpu", [finding("parity.run", "warn", "y", "off")] * 2)], None, []), "warn")
    assert [one.target for one, _ in found] == ["cpu", "cpu"]


def test_what_a_target_that_is_not_required_says_stays_apart():
    legs = [result("m", "cpu", [finding("parity.function", "fail", "y", "off")])]
    legs.append(replace(legs[0], target="gpu", required=False))
    assert [one.target for one, _ in findings(merge(legs, None, []), "fail")] == ["cpu", "gpu"]
