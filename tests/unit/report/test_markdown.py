import re

import pytest
from tests.fakes.results import finding, healthy, realistic, result

from onnx_ci.records.report import Leg, Plan
from onnx_ci.report import markdown
from onnx_ci.report.context import Context, Run
from onnx_ci.report.merge import merge
from onnx_ci.report.rows import rows

URL = "https://github.com/org/name/actions/runs/9"
CONTEXT = Context(run=Run(id=9, attempt=1, number=2, sha="a" * 40), url=URL)
MARKER = "<!-- onnx-ci:x --><!-- onnx-ci-run -->"


def many(models, findings=1, message="said"):
    broken = [
        result(
            f"model{at:04}",
            "cpu",
            [finding("parity.runtime", "fail", f"y{one}", message, hint="mend it") for one in range(findings)]
            if at % 2
            else [finding("parity.runtime", "pass", "y", "fine"), finding("contract.range", "warn", "y", message)],
        )
        for at in range(models)
    ]
    return merge(broken, None, [])


def shown(text):
    return set(re.findall(r"^\| `(model\d+)`", text, re.MULTILINE))


def test_nothing_is_cut_where_all_fits():
    results, plan, base = realistic()
    text = markdown.comment(merge(results, plan, [], base), CONTEXT, marker=MARKER)
    assert "Cut to fit" not in text
    assert text.endswith(f"\n{MARKER}\n")
    for title in ("Versions", "Warnings", "Latency by case", "Conditions", "How outputs were judged"):
        assert f"<summary>{title}" in text


@pytest.mark.parametrize("limit", [65_536, 20_000, 5_000, 2_000])
@pytest.mark.parametrize("models", [1, 40, 600])
def test_a_comment_never_exceeds_its_limit_and_keeps_its_head_and_marker(models, limit):
    text = markdown.comment(many(models, 3, "𝕏" * 300), CONTEXT, limit, marker=MARKER)
    assert len(text.encode("utf-16-le")) // 2 <= limit
    assert text.startswith("### ")
    assert text.endswith(f"{MARKER}\n")


def test_what_is_cut_is_said_with_its_place_and_healthy_rows_go_first():
    report = many(600)
    text = markdown.comment(report, CONTEXT, 20_000, marker=MARKER)
    cut = next(line for line in text.splitlines() if "Cut to fit" in line)
    assert URL in cut
    assert int(re.search(r"(\d+)\u00a0rows", cut)[1]) == 600 - len(shown(text))
    order = [row.label for row in rows(report)]
    assert shown(text) == set(order[: len(shown(text))])


def test_details_go_before_findings_and_findings_before_rows():
    report = many(100, 2, "m" * 200)
    whole = len(markdown.comment(report, CONTEXT, 10**9))
    little = markdown.comment(report, CONTEXT, whole - 1)
    assert "Cut to fit" in little
    assert len(shown(little)) == 100
    assert little.count("parityruntime") == 100
    half = markdown.comment(report, CONTEXT, whole // 3)
    assert len(shown(half)) == 100
    assert 10 <= half.count("parityruntime") < 100


def test_a_section_that_is_too_long_does_not_take_the_others_along():
    results = [*healthy("a", 1.0, 2.0)]
    results.append(result("b", "cpu", [finding("contract.range", "warn", "x", "w" * 1000) for _ in range(200)]))
    text = markdown.comment(merge(results, None, []), CONTEXT)
    assert "<summary>Warnings" not in text
    assert "<summary>Conditions" in text
    assert "Cut to fit: warnings." in text


def test_a_summary_is_counted_in_bytes():
    text = markdown.summary(many(600, 3, "é" * 300), CONTEXT, 100_000)
    assert 80_000 < len(text.encode()) <= 100_000
    assert "Cut to fit" in text


def test_a_missing_leg_is_shown_though_it_is_not_required():
    results, _, _ = realistic()
    legs = [Leg(model="ghost", variant="v", target="gpu", required=False)]
    text = markdown.comment(merge(results, Plan(schema_version=1, config="c", legs=legs), []))
    assert re.search(r"`ghost@v` \| gpu \| ❓\u00a0no result<br><sub>not required</sub>", text)


def test_details_have_the_blank_line_without_which_github_renders_no_markdown():
    results, plan, base = realistic()
    text = markdown.comment(merge(results, plan, [], base))
    assert text.count("</summary>\n\n") == text.count("<details") > 4


def test_no_table_has_more_than_seven_columns():
    results, plan, base = realistic()
    for line in markdown.summary(merge(results, plan, [], base)).splitlines():
        assert line.count("|") <= 8


def test_numbers_do_not_break_over_lines():
    results, plan, base = realistic()
    table = [line for line in markdown.comment(merge(results, plan, [], base)).splitlines() if line.startswith("| ")]
    assert not any(re.search(r"\de-\d|\d (ms|µs)", line) for line in table)


@pytest.mark.parametrize(
    ("others", "legs", "said"),
    [
        ([], [], "the model passes"),
        ([finding("contract.range", "warn", "x", "m")], [], "the model passes, with warnings"),
        ([finding("parity.runtime", "fail", "x", "m")], [], "the model passes on all required targets"),
        ([], [Leg(model="a", variant=None, target="gpu", required=False)], "the model passes on all required targets"),
        (
            [],
            [Leg(model="a", variant=None, target="gpu", required=True, not_run="not run on forks")],
            "the model passes on all targets that ran",
        ),
    ],
)
def test_a_pass_does_not_claim_more_than_what_ran(others, legs, said):
    results = healthy("a", 1.0, 2.0)
    if others:
        results.append(result("a", "npu", others, required=False, artifact=results[0].artifact))
    plan = Plan(schema_version=1, config="c", legs=legs) if legs else None
    assert markdown.comment(merge(results, plan, [])).splitlines()[0].endswith(f" onnx-ci: {said}")


def test_sizes_that_a_budget_left_untried_are_named_though_guards_cover_them():
    said = "batch is declared up to 100000; the largest size tried is 341; the capture's guards cover the rest"
    tried = finding("contract.untested", "pass", "batch", said, data={"max": {"declared": 100000, "tried": [341]}})
    all_tried = finding("contract.untested", "pass", "", "cases reach all 2 ends of the declared ranges")
    text = markdown.summary(merge([result("a", "cpu", [tried]), result("b", "cpu", [all_tried])], None, []))
    assert "Declared sizes that no case tries (1)" in text
    assert "the largest size tried is 341" in text
    assert "cases reach all" not in text
