import base64
import hashlib
import io
import re
from dataclasses import replace
from html.parser import HTMLParser

from rich.console import Console
from tests.fakes.results import finding, realistic, result

from onnx_ci.records.report import Leg, Plan
from onnx_ci.report import page, terminal
from onnx_ci.report.context import Context
from onnx_ci.report.merge import merge


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.open = set(), set(), []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def printed(report, width=160):
    stream = io.StringIO()
    Console(file=stream, width=width).print(terminal.render(report))
    return stream.getvalue()


def test_the_page_is_well_formed_loads_nothing_and_runs_nothing():
    results, plan, base = realistic()
    text = page.render(merge(results, plan, ["<script>alert(1)</script>"], base), Context())
    tags = Tags()
    tags.feed(text)
    assert tags.open == []
    assert not tags.tags & {"script", "img", "link", "iframe", "object", "form", "base"}
    assert not any(name.startswith("on") for name in tags.attributes)
    assert "&lt;script&gt;" in text


def test_the_pages_policy_allows_its_own_style_and_nothing_else():
    text = page.render(merge([], None, []), Context())
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'sha256-{digest}'" in text


def test_what_broke_stands_before_the_table_and_nothing_does_where_all_is_well():
    broken = finding("parity.runtime", "fail", "y", "far <off>", hint="mend it", file="net.py", line=7)
    unknown = finding("structure.unreadable", "error", "", "no")
    fine = finding("parity.runtime", "pass", "y", "fine")
    text = page.render(merge([result("a", "cpu", [fine]), result("b", "cpu", [broken, unknown])], None, []), Context())
    first = text.partition("<table>")[0]
    assert "<h2>To look at (2)</h2>" in first
    assert all(said in first for said in ("b on cpu", "parity.runtime", "far &lt;off&gt;", "mend it", "net.py:7"))
    assert "a on cpu" not in first
    legs = [Leg(model="a", variant=None, target=name, required=need) for name, need in (("gpu", True), ("npu", False))]
    text = page.render(merge([], Plan(schema_version=1, config="c", legs=legs), []), Context())
    assert "<h2>To look at (1)</h2>" in text
    assert "a on gpu has no result" in text
    assert "To look at" not in page.render(merge([result("a", "cpu", [fine])], None, []), Context())


def test_each_table_of_the_page_scrolls_in_a_block_of_its_own():
    results, plan, base = realistic()
    text = page.render(merge(results, plan, [], base), Context())
    assert text.count("<table>") == text.count('<div class="scroll"><table>') > 1
    assert ".scroll { overflow-x: auto;" in text


def test_the_page_has_every_finding_and_every_case():
    results, plan, base = realistic()
    text = page.render(merge(results, plan, [], base), Context())
    for one in results:
        assert all(figures.case in text for figures in one.parity)
        assert all(found.rule in text for found in one.findings)


def test_the_page_says_where_the_worst_case_is_and_has_every_figure_of_each():
    results, plan, base = realistic()
    text = page.render(merge(results, plan, [], base), Context())
    assert "logits[1, 17] · example" in text  # in the first table
    for title in ("Max abs", "Max rel", "ULP", "Cosine", "Beyond", "Same argmax"):
        assert f"<th>{title}</th>" in text
    assert "<td>[1, 17]</td>" in text
    assert "<td>100\u00a0%</td>" in text


def test_the_terminal_shows_the_rows_and_what_broke():
    results, plan, base = realistic()
    text = printed(merge(results, plan, [], base))
    assert re.search(r"pool@480x640 +cpu +parity, golden +0.570 > 5e-6 +drift", text)
    assert "models/pool.py:44" in text
    assert text.rstrip().endswith("onnx-ci: 1 of 4 models broke a promise")


def test_a_terminal_that_has_no_report_gets_every_finding_and_no_flood_of_warnings():
    broken = [finding("contract.range", "fail", dim, f"{dim} narrowed", file="net.py", line=4) for dim in ("h", "w")]
    unknown = finding("parity.run", "error", "", "no kernel", hint="try another")
    cases = [finding("export.range", "warn", f"case {at}", f"size {at} odd") for at in range(9)]
    results = [
        result("net", "export", [*broken, unknown, *cases]),
        result("net", "cpu", [finding("golden.drift", "pass", "", "")]),
    ]
    stream = io.StringIO()
    Console(file=stream, width=120).print(terminal.render_findings(results, "out/results"))
    text = stream.getvalue()
    for said in ("h narrowed", "w narrowed", "net.py:4", "no kernel", "try another", "size 2 odd"):
        assert said in text
    assert "size 3 odd" not in text
    assert "and 6 more of export.range on net" in text
    assert text.rstrip().endswith("2 broken, 1 could not be told, 9 warnings: all of it in out/results")
    assert terminal.render_findings(results[1:], "out/results") is None


def test_what_broke_at_a_line_stands_before_what_is_not_known_and_what_is_missing():
    found = [
        finding("environment.worker", "error", "", "died", file="net.py", line=1),
        finding("export.stopped", "fail", "", "no place"),
        finding("parity.runtime", "fail", "y", "at a line", file="net.py", line=7),
    ]
    legs = [Leg(model="net", variant=None, target=name, required=True) for name in ("export", "cpu", "gpu")]
    other = replace(result("net", "npu", [finding("parity.run", "fail", "", "beside", file="net.py")]), required=False)
    legs.append(Leg(model="net", variant=None, target="npu", required=False))
    plan = Plan(schema_version=1, config="c", legs=legs)
    report = merge([result("net", "cpu", found), result("net", "export", []), other], plan, ["a stray file"])
    wanted = ["at a line", "no place", "died", "a stray file", "net on gpu has no result", "beside"]
    for text in (page.render(report, Context()).partition("<table>")[0], printed(report)):
        places = [text.index(said) for said in wanted]
        assert places == sorted(places)


def test_the_terminal_takes_no_markup_and_no_codes_from_outside():
    nasty = "[bold red]x[/] \x1b[31mred\x1b]8;;https://evil.example\x07link \x9b31m [link=https://evil.example]y[/link]"
    text = printed(
        merge([result("a[red]", nasty, [finding("parity.runtime", "fail", nasty, nasty, hint=nasty)])], None, [nasty])
    )
    assert "\x1b" not in text
    assert "\x9b" not in text
    assert "[bold red]x[/]" in text
    assert "a[red]" in text


def test_a_narrow_terminal_folds_and_loses_nothing():
    results, plan, base = realistic()
    assert "1 of 4 models broke a promise" in printed(merge(results, plan, [], base), width=60)


def test_the_exceptions_behind_a_finding_are_folded_under_it():
    chain = ["ConversionError: outer", "DispatchError: <OpOverload>"]
    stopped = finding("export.stopped", "fail", "capture", "it stopped", data={"chain": chain})
    alone = finding("export.stopped", "fail", "capture", "it stopped", data={"chain": chain[:1]})
    odd = finding("export.stopped", "fail", "capture", "it stopped", data={"chain": [1, None]})
    text = page.render(merge([result("a", "cpu", [stopped, alone, odd])], None, []), Context())
    items = "<li><code>ConversionError: outer</code></li><li><code>DispatchError: &lt;OpOverload&gt;</code></li>"
    assert text.count(f"<ol>{items}</ol></details>") == text.count("<ol>") == 2  # above all, and with its result
    tags = Tags()
    tags.feed(text)
    assert tags.open == []
