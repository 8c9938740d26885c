"""The peak of memory in markdown and on the page: beside the base's, and what was not measured with its reason."""

from __future__ import annotations

from tests.fakes.results import passed, result

from onnx_ci.records.report import Report
from onnx_ci.records.result import Memory
from onnx_ci.report import costs, markdown, page
from onnx_ci.report.context import Context
from onnx_ci.report.merge import merge

NBSP = "\u00a0"
HEAD = Memory(
    runner="onnxruntime", case="all-max", dims={"batch": 8}, provider="CUDAExecutionProvider", threads=1, runs=2,
    host_bytes=300 << 20, device_bytes=3 << 29, device_note="by ONNX Runtime",
)  # fmt: skip
BASE = Memory(
    runner="base", case="", dims={}, provider="CUDAExecutionProvider", threads=1,
    host_note="not measured: it ended by <b>SIGKILL</b> @everyone",
)  # fmt: skip


def report(*peaks: Memory) -> Report:
    return merge([result("m", "gpu", [passed("latency.measured")], memory=[*peaks])], None, [])


def test_the_bases_peak_stands_below_the_heads() -> None:
    *_, head, base = costs.memory(report(HEAD, BASE))[-1].splitlines()
    cells = [cell.strip() for cell in head.strip("|").split("|")]
    assert cells[2:5] == ["all-max (batch=8)", "ONNX Runtime", f"300{NBSP}MiB"]
    assert cells[5].startswith(f"1.50{NBSP}GiB<br><sub>by ONNX Runtime")
    assert "not measured" in base
    assert "<b>" not in base
    assert "@everyone" not in base


def test_it_folds_in_the_comment_and_on_the_page_and_is_absent_where_nothing_was_measured() -> None:
    for render in (lambda made: markdown.comment(made, Context()), lambda made: page.render(made, Context())):
        assert "<summary>Memory peak" in render(report(HEAD, BASE))
        assert "<summary>Memory peak" not in render(report())
    text = page.render(report(HEAD, BASE), Context())
    assert f"<td>1.50{NBSP}GiB<br><small>by ONNX Runtime</small></td>" in text
    assert "&lt;b&gt;SIGKILL" in text
