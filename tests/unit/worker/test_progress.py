import io
from pathlib import Path

from onnx_ci.records.environment import Environment
from onnx_ci.records.result import SCHEMA_VERSION, Result, finding
from onnx_ci.worker.progress import LineProgress, LiveProgress, progress_for, verdict_line


def result(status="pass", findings=()):
    return Result(
        schema_version=SCHEMA_VERSION,
        model="net",
        variant=None,
        target="cpu",
        required=True,
        status=status,
        artifact=None,
        environment=Environment(onnx_ci="1", python="3", platform="linux", cpu="", cores=1),
        findings=list(findings),
    )


def test_a_group_is_opened_and_closed_around_the_stages(tmp_path):
    stream = io.StringIO()
    with LineProgress(stream, 2, grouped=True, clock=iter([0.0, 1.5, 2.0]).__next__) as progress:
        progress.begin("net: export")
        progress.stage("capture")
        progress.end(result(), tmp_path / "none.log")
    assert stream.getvalue().splitlines() == [
        "::group::[1/2] net: export",
        "     1.5 s  capture",
        "::endgroup::",
        "net: export: pass (2.0 s)",
    ]


def test_what_user_code_printed_is_no_command_to_the_runner(tmp_path):
    log = tmp_path / "net.log"
    log.write_text("::error::planted\n")
    stream = io.StringIO()
    broken = result("error", [finding("environment.worker", "error", "", "it died")])
    progress = LineProgress(stream, 1, grouped=True)
    progress.begin("net: export")
    progress.end(broken, log)
    lines = stream.getvalue().splitlines()
    planted = lines.index("::error::planted")
    opened = lines[planted - 1]
    assert opened.startswith("::stop-commands::")
    assert lines[planted + 1] == f"::{opened.removeprefix('::stop-commands::')}::"
    assert "it died" in lines[-1]


def test_a_terminal_gets_the_live_form_and_ci_never_does():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    assert isinstance(progress_for(Terminal(), {}, 1), LiveProgress)
    assert isinstance(progress_for(Terminal(), {"CI": "true"}, 1), LineProgress)
    assert isinstance(progress_for(io.StringIO(), {}, 1), LineProgress)


def test_the_live_form_leaves_a_line_for_each_result():
    stream = io.StringIO()
    with LiveProgress(stream, 1) as progress:
        progress.begin("net: export")
        progress.stage("capture")
        progress.end(result("fail", [finding("contract.range", "fail", "batch", "narrowed [markup]")]), Path("x.log"))
    assert "contract.range: narrowed [markup]" in stream.getvalue()


def test_the_verdict_names_the_first_finding_behind_it():
    found = [
        finding("parity.names", "pass", "", "all there"),
        finding("contract.range", "fail", "batch", "narrowed\nto 4"),
        finding("parity.runtime", "fail", "y", "off"),
    ]
    assert verdict_line(result("fail", found)) == "fail: contract.range: narrowed to 4 (and 1 more)"
    assert verdict_line(result("fail", found[:2])) == "fail: contract.range: narrowed to 4"
