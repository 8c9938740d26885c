import json
from dataclasses import replace

import pytest
from tests.fakes.results import MACHINE, PACKAGES, finding, healthy, slower, timing

from onnx_ci.report import history, page
from onnx_ci.report.context import Context
from onnx_ci.report.merge import merge


def measured(p50=2.0, run="1", **more):
    """The point of one run, and its result."""
    export, cpu = healthy("net", p50, 3.0)
    cpu = replace(cpu, **more)
    report = merge([export, cpu], None, [])
    return history.points(report, date=f"2026-01-0{run}", commit="a" * 40, run=run), cpu


def runs(*given):
    points = []
    for at, more in enumerate(given):
        now, cpu = measured(run=str(at + 1), **more)
        points = history.joined(points, now)
    return points, cpu


def test_each_target_of_a_model_gives_a_point_and_the_export_none():
    ((one,), _) = measured()
    assert (one.model, one.target, one.p50_ms, one.samples) == ("net", "cpu", 2.0, 41)
    assert one.conditions.machine == "AMD EPYC 7763, 4 cores, Linux-6.8-x86_64"
    assert one.conditions.versions == {"onnxruntime": PACKAGES["onnxruntime"]}


def test_ratio_and_options_come_from_the_findings():
    active = finding("provider.active", "pass", "CUDA", "active", data={
        "options": {"use_tf32": "0"}, "session": {"session.set_denormal_as_zero": "1"}, "optimization": "all",
        "environment": {"NVIDIA_TF32_OVERRIDE": None},
    })  # fmt: skip
    ((one,), _) = measured(findings=[active, slower()])
    assert one.ratio == 3.91
    assert one.conditions.options == {"use_tf32": "0", "session.set_denormal_as_zero": "1", "optimization": "all"}


def test_points_come_back_as_they_were_written(tmp_path):
    points, _ = runs({"p50": 2.0}, {"p50": 2.1})
    (tmp_path / "latency.jsonl").write_text(history.text(points))
    assert history.load(tmp_path / "latency.jsonl") == (points, [])
    assert len((tmp_path / "latency.jsonl").read_text().splitlines()) == 2


def test_only_a_newline_ends_a_line(tmp_path):
    """JSON leaves other separators of lines as they are, and names come from outside."""
    (point,), _ = measured()
    odd = replace(point, commit="a\u2028b\x85c")
    (tmp_path / "latency.jsonl").write_text(history.text([odd]), encoding="utf-8")
    assert history.load(tmp_path / "latency.jsonl") == ([odd], [])


def test_a_repeated_run_replaces_its_points():
    now, _ = measured(p50=2.0)
    again, _ = measured(p50=2.5)
    assert history.joined(now, again) == again


def test_only_so_many_are_kept_of_each():
    (one,), _ = measured()
    before = [replace(one, run=str(at)) for at in range(history.MOST_POINTS + 5)]
    other = replace(one, target="gpu")
    kept = history.joined([other, *before], [replace(one, run="last")])
    assert len(kept) == history.MOST_POINTS + 1
    assert (kept[0], kept[-1].run) == (other, "last")


OTHERS = {
    "machine": {"environment": replace(MACHINE, cpu="another")},
    "versions": {"environment": replace(MACHINE, packages=PACKAGES | {"onnxruntime": "1.99"})},
    "threads": {"latency": [timing("onnxruntime", 2.0, threads=4)]},
    "case": {"latency": [timing("onnxruntime", 2.0, case="another")]},
    "options": {"findings": [finding("provider.active", "pass", "", "", data={"options": {"use_tf32": "1"}})]},
}


@pytest.mark.parametrize("what", OTHERS)
def test_another_condition_starts_a_new_series_and_is_named(what):
    points, cpu = runs({}, {}, OTHERS[what], OTHERS[what])
    found = history.series(points, cpu)
    assert [one.run for one in found.points] == ["3", "4"]
    assert [one.partition(" ")[0] for one in found.since] == [what]


def test_another_version_of_torch_goes_on_with_the_series():
    points, cpu = runs({}, {"environment": replace(MACHINE, packages=PACKAGES | {"torch": "9"})})
    found = history.series(points, cpu)
    assert (len(found.points), found.since) == (2, [])


def test_without_a_measurement_there_is_no_series():
    points, cpu = runs({"latency": []})
    assert history.series(points, cpu) is None
    assert history.sparkline(points) == ""


@pytest.mark.parametrize(
    "line",
    ["{", "[]", "3", '{"schema_version": 1}', "[" * 5000, '{"p50_ms": NaN}'],
)
def test_a_line_that_is_no_point_is_counted_and_the_others_stand(tmp_path, line):
    (one,), _ = measured()
    (tmp_path / "latency.jsonl").write_text(f"{line}\n{history.text([one])}")
    points, notes = history.load(tmp_path / "latency.jsonl")
    assert points == [one]
    assert "left out (1)" in notes[0]


@pytest.mark.parametrize("value", ["nan", -1.0, 0.0, 1e300])
def test_a_time_that_can_not_be_is_no_point(tmp_path, value):
    (one,), _ = measured()
    changed = json.loads(history.text([one])) | {"p90_ms": value}
    (tmp_path / "latency.jsonl").write_text(json.dumps(changed))
    assert history.load(tmp_path / "latency.jsonl")[0] == []


def test_a_link_is_not_read_and_a_missing_file_has_no_points(tmp_path):
    assert history.load(tmp_path / "none") == ([], [])
    (tmp_path / "link").symlink_to("/etc/passwd")
    points, (note,) = history.load(tmp_path / "link")
    assert points == []
    assert "begun anew" in note


def test_the_page_shows_the_series_and_no_other_machines_numbers():
    points, cpu = runs({"p50": 7.77, **OTHERS["machine"]}, {"p50": 1.0}, {"p50": 2.0})
    text = page.render(merge([cpu], None, []), Context(), points)
    assert "Latency over time" in text
    assert "<code>▅█</code> p50, oldest first" in text
    assert "A new series, since other conditions began: machine another" in text
    assert "7.77" not in text


def test_the_page_shows_text_of_a_history_as_text():
    (one,), cpu = measured()
    nasty = "<script>alert(1)</script>"
    other = replace(one, commit=nasty, date=nasty, conditions=replace(one.conditions, machine=nasty))
    text = page.render(merge([cpu], None, []), Context(), [other, replace(one, date=nasty, commit=nasty)])
    assert "<script" not in text
    assert "&lt;script&gt;" in text
