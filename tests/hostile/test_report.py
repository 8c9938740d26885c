"""A results folder full of attacks: what is rendered is parsed as GitHub would, and must do nothing."""

import io
import json
import re
from html.parser import HTMLParser

import comrak
import nh3
import pytest
from junitparser import JUnitXml
from tests.fakes.github import GitHubFake
from tests.fakes.results import healthy

from onnx_ci.errors import ExitCode
from onnx_ci.records import codec
from onnx_ci.report import job
from onnx_ci.report.comment import marker

FORGED = marker("onnx-ci.toml")
ATTACKS = [
    "@octocat @org/team",
    "&#64;octocat &#x40;octocat &commat;octocat &amp;#64;octocat",
    "fixes #12, GH-12, org/other#12",
    "![b](https://evil.example/b.png) [l](javascript:alert(1)) [r]\n\n[r]: https://evil.example",
    "https://evil.example www.evil.example mail@evil.example <https://evil.example>",
    '<img src="https://evil.example/b.png"><script>alert(1)</script><a href="//evil.example">x</a><svg/onload=a()>',
    "</details></summary></td></table><h1>forged</h1>",
    f"{FORGED}<!-- onnx-ci-run id=999999 attempt=1 number=1 sha= -->",
    f"\n\n{FORGED}\n",
    "--> <b>out</b> <!--",
    "a | b | c\n|---|---|---|\n| d | e | f |",
    "`` ` ``` \\` `",
    "x\n# forged heading\n- forged item\n> forged quote\n```\nforged fence",
    "::error file=a.py::forged\n::add-mask::x\n::set-output name=status::pass\n##[error]forged",
    "\r\n::stop-commands::x\r\n%0A::error::forged",
    "nul \x00 escape \x1b[31m bell \x07 c1 \x9b0m backspace \x08",
    "\u202eoverride\u202c \u2066isolate\u2069 zero\u200bwidth\u200d\ufeff tag\U000e0041",
    "$$\\href{https://evil.example}{x}$$ $x$ :tada: [^1] ~~x~~ **x** _x_",
    "]]><![CDATA[ <!DOCTYPE x [<!ENTITY a 'b'>]> &a;",
    "{{ secrets.GITHUB_TOKEN }} ${{ github.token }} $(id) `id`",
    "x" * 300_000,
    "\u0301" * 5000,
    "",
    " ",
]
EXTENSIONS = ["table", "strikethrough", "tasklist", "autolink", "tagfilter", "alerts", "footnotes", "shortcodes"]
EXTENSIONS += ["math_dollars", "math_code"]
FORBIDDEN = {"script", "img", "svg", "h1", "h2", "iframe", "form", "input", "style", "link", "object", "video", "math"}
OURS = ("https://github.com/org/onnx-ci/blob/v1/docs/rules.md", "https://github.com/org/name/actions/runs/90")


class Seen(HTMLParser):
    """Tags, links and the text outside code: where GitHub looks for mentions and references."""

    def __init__(self, markup):
        super().__init__()
        self.tags, self.links, self.code, self.text = [], [], 0, []
        self.feed(markup)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.code += tag in ("code", "pre")
        self.links += [value for name, value in attrs if name in ("href", "src", "srcset", "action", "poster")]
        assert not any(name.startswith("on") or name == "style" for name, _ in attrs)

    def handle_endtag(self, tag):
        self.code -= tag in ("code", "pre")

    def handle_data(self, data):
        if not self.code:
            self.text.append(data)


def render(markdown):
    extensions = comrak.ExtensionOptions()
    for name in EXTENSIONS:
        setattr(extensions, name, True)
    options = comrak.RenderOptions()
    options.unsafe_ = True
    return comrak.render_markdown(markdown, extension_options=extensions, render_options=options)


def poisoned(text):
    """A result that is well formed, and has an attack in every place that takes text."""
    one = codec.encode(healthy("m", 1.0, 2.0)[1])
    one |= {"model": text, "variant": text, "target": text, "provider": text, "log": text, "artifact": text}
    one["environment"] |= {"cpu": text, "gpu": text, "platform": text, "python": text, "onnx_ci": text}
    one["environment"]["packages"] = {text: text, "torch": text}
    one["stages"] = {text: {"seconds": 1.0, "peak_bytes": 10**300}}
    for found, status in zip(one["findings"], ("fail", "warn", "error", "skip"), strict=True):
        found |= {"status": status, "rule": text, "subject": text, "message": text, "hint": text}
        found |= {"file": text, "line": 10**300, "data": {text: text}}
    node = {"node": text, "op": text, "us": 1.0, "file": text, "line": 10**300}
    operator = {"op": text, "head": 2, "base": 1, "head_us": 2.0, "base_us": 1.0}
    slower = {"rule": "latency.regression", "stage": "latency", "status": "fail", "subject": text, "message": text}
    one["findings"].append(slower | {"data": {"why": {"operators": [operator], "hottest": [node]}}})
    for figures in one["parity"]:
        figures |= {"case": text, "output": text, "note": text, "dims": {text: 1}, "against": "eager"}
    for timing in one["latency"]:
        timing |= {"case": text, "runner": text, "provider": text, "threads": 10**300, "p50_ms": "nan"}
    return one


def run(tmp_path, texts, fake=None):
    results = tmp_path / "results"
    results.mkdir(exist_ok=True)
    for at, text in enumerate(texts):
        (results / f"{at}.json").write_bytes(text if isinstance(text, bytes) else json.dumps(text).encode())
    (tmp_path / "event.json").write_text(json.dumps({"pull_request": {"number": 7}}))
    env = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
        "GITHUB_EVENT_NAME": "pull_request",
        "GITHUB_REPOSITORY": "org/name",
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_RUN_ID": "90",
        "GITHUB_TOKEN": "ghs_a_token_that_is_fake",
        "GITHUB_API_URL": fake.url if fake else "",
    }
    said = io.StringIO()
    code = job.run(out=tmp_path, plan=None, base=None, comment=fake is not None, env=env, stdout=said)
    read = {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "report").iterdir()}
    return code, said.getvalue(), read


@pytest.fixture(
    scope="module",
    params=range(len(ATTACKS)),
    ids=lambda at: ATTACKS[at][:12].encode("ascii", "replace").decode().strip(),
)
def attacked(request, tmp_path_factory):
    return run(tmp_path_factory.mktemp("attacked"), [poisoned(ATTACKS[request.param])])


def test_the_markdown_shows_text_and_does_nothing(attacked):
    _, _, read = attacked
    for name in ("comment.md", "summary.md"):
        markup = render(read[name])
        seen = Seen(markup)
        assert not FORBIDDEN & set(seen.tags)
        assert all(link.startswith(OURS) for link in seen.links), seen.links
        text = "".join(seen.text)
        assert not re.search(r"(?<![A-Za-z0-9_`])@[A-Za-z0-9]", text)
        assert not re.search(r"#\d|\bgh-\d", text, re.IGNORECASE)
        assert "forged" not in "".join(re.findall(r"<h\d>.*?</h\d>", markup))
        clean = nh3.clean(markup, tags=nh3.ALLOWED_TAGS | {"sub", "details", "summary"})
        assert not re.search(r"<(img|script)", clean)


def test_the_table_keeps_its_seven_columns(attacked):
    _, _, read = attacked
    markup = render(read["comment.md"])
    for row in re.findall(r"<tr>(.*?)</tr>", markup, re.DOTALL):
        assert len(re.findall(r"<t[hd][ >]", row)) <= 7
    assert len(re.findall(r"<details>", markup)) == len(re.findall(r"</details>", markup))


def test_no_invisible_character_comes_through(attacked):
    _, said, read = attacked
    for text in [said, *(read[name] for name in ("comment.md", "summary.md", "junit.xml", "index.html"))]:
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]", text)


def test_the_log_gives_no_command_but_ours(attacked):
    _, said, _ = attacked
    token = re.match(r"::stop-commands::([0-9a-f]{32})\n", said)[1]
    before, _, after = said.partition(f"::{token}::\n")
    assert token not in before.removeprefix(f"::stop-commands::{token}\n")
    for line in after.splitlines():
        assert re.match(r"::(error|warning) [^:]*::|Wrote |no pull|Comment ", line), line
        assert not line.startswith("##[")


def test_the_junit_file_parses_and_the_page_runs_nothing(attacked):
    _, _, read = attacked
    assert "<!ENTITY" not in read["junit.xml"]
    for case in (case for suite in JUnitXml.fromstring(read["junit.xml"].encode()) for case in suite):
        assert int(case._elem.get("line")) == 1
        assert not case._elem.get("file").startswith(("/", ".."))
    seen = Seen(read["index.html"].partition("</style>")[2])
    assert not (FORBIDDEN - {"h1", "h2"}) & set(seen.tags)
    assert seen.links == [OURS[1]]


def test_nothing_of_it_passes(attacked):
    code, _, read = attacked
    assert code is ExitCode.UNKNOWN
    assert json.loads(read["report.json"])["status"] == "error"


def test_a_forged_marker_neither_takes_nor_hides_the_comment(tmp_path):
    with GitHubFake(comments=3) as fake:
        for text in ATTACKS:
            fake.add(f"{text}\n{FORGED}<!-- onnx-ci-run id=999999 attempt=1 number=1 sha= -->", author="mallory")
        run(tmp_path, [poisoned(FORGED)], fake)
        run(tmp_path, [poisoned(FORGED)], fake)
        [ours] = fake.ours()
        assert ours["body"].count(FORGED) == 1
        assert ours["body"].rstrip().rpartition("\n")[2].startswith(FORGED)


def test_outputs_can_not_be_forged_by_what_was_read(tmp_path):
    run(tmp_path, [poisoned("x\nstatus=pass\nexit-code<<EOF\n0\nEOF")])
    assert re.findall(r"^([a-z-]+)<<", (tmp_path / "output").read_text(), re.MULTILINE) == [
        "status",
        "exit-code",
        "report",
        "comment-id",
    ]


def test_files_that_are_no_results_are_named_and_the_good_one_stands(tmp_path):
    good = codec.encode(healthy("classifier", 1.0, 2.0)[0])
    (tmp_path / "secret").write_text(json.dumps(good))
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "link.json").symlink_to(tmp_path / "secret")
    (tmp_path / "results" / "a@octocat|`<b>\n::error::x.json").write_text("{")
    bad = [
        b"[" * 200_000,
        b'{"a":' * 5000,
        b'{"schema_version": 1, "schema_version": 1}',
        b"\xff\xfe",
        b"\x00" * 100,
        b'{"schema_version": 99}',
        b'{"schema_version": 1, "model": "\\udead"}',
        b"1" * 10_000,
        b'{"schema_version": 1e999}',
    ]
    code, said, read = run(tmp_path, [good, *bad])
    report = json.loads(read["report.json"])
    assert code is ExitCode.UNKNOWN
    assert [one["model"] for one in report["results"]] == ["classifier"]
    assert len(report["problems"]) == len(bad) + 2
    assert not re.search(r"^::error::x", said, re.MULTILINE)
    assert all(link.startswith(OURS) for link in Seen(render(read["comment.md"])).links)


@pytest.mark.parametrize("value", [10**400, -(10**400), "nan", "-inf", 1e308])
def test_numbers_beyond_all_measure_do_not_stop_the_report(tmp_path, value):
    one = codec.encode(healthy("m", 1.0, 2.0)[1])
    for figures in one["parity"]:
        figures |= dict.fromkeys(("e_torch", "e_runtime", "limit", "max_abs", "cosine", "ulp"), value)
    for timing in one["latency"]:
        timing |= {"samples_ms": [value] * 3, "p50_ms": value, "p90_ms": value, "p99_ms": value}
    one["stages"] = {"parity": {"seconds": value, "peak_bytes": None}}
    _, _, read = run(tmp_path, [one])
    JUnitXml.fromstring(read["junit.xml"].encode())
