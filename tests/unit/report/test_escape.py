"""Whatever comes from outside shows as itself, and does nothing: judged by parsing what was rendered."""

import re
import unicodedata

import comrak
import nh3
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from onnx_ci.report import escape

HOSTILE = [
    "@octocat",
    "&#64;octocat",
    "&commat;octocat &amp;#64;octocat",
    "#12 GH-12 org/name#12",
    "![x](https://evil.example/beacon.png)",
    "[text](https://evil.example) [a]: https://evil.example",
    "https://evil.example http://evil.example www.evil.example ftp://evil.example",
    "mail@evil.example <mail@evil.example> mailto:mail@evil.example",
    "<img src=x onerror=alert(1)> <script>alert(1)</script> <!-- onnx-ci:onnx-ci.toml -->",
    "| a | b |\n|---|---|\n| c | d |",
    "`code` ``more`` ```fence``` ` \\` `",
    "a\\|b \\\\| c",
    "line\n# heading\n- item\n1. item\n> quote\n    code\n---\n===",
    "**bold** __bold__ *it* _it_ ~~gone~~ ~x~",
    ":tada: :+1: $x^2$ $$y$$ [^1] - [ ] task",
    "\u202eright-to-left\u202c \u2066isolate\u2069 zero\u200bwidth \ufeff",
    "nul\x00 esc\x1b[31mred\x1b[0m \x1b]8;;https://evil.example\x07link\x1b]8;;\x07 bell\x07 c1\x9b31m",
    "\ud800 lone",
    "</details></summary></table></sub>",
    "1. one",
    "12) two",
    "- x",
    "+ x",
    "= x",
    "# x",
    "> x",
    "    x",
    "",
    " ",
    "\\",
    "`",
    "``",
]
PIECES = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=20), st.sampled_from(list("`|\\[]()!<>@#&:_*~$\n")))
TEXTS = st.one_of(st.sampled_from(HOSTILE), st.lists(PIECES).map("".join))


def html(markdown):
    extensions = comrak.ExtensionOptions()
    for name in ("table", "strikethrough", "tasklist", "autolink", "alerts", "math_dollars", "footnotes", "shortcodes"):
        setattr(extensions, name, True)
    options = comrak.RenderOptions()
    options.unsafe_ = True
    return comrak.render_markdown(markdown, extension_options=extensions, render_options=options)


def tags(markup):
    return set(re.findall(r"<\s*/?\s*([a-zA-Z!][a-zA-Z0-9-]*)", markup))


def texts(markup):
    plain = nh3.clean(markup, tags=set())
    return plain.replace("&lt;", "<").replace("&gt;", ">").replace("&nbsp;", "\u00a0").replace("&amp;", "&")


def no_format(text):
    return not any(unicodedata.category(one) in ("Cc", "Cf", "Cs") and one not in "\n\u2060" for one in text)


@given(TEXTS)
@example("a`b``c")
def test_a_code_span_is_one_code_span_with_the_same_text(text):
    made = escape.code(text)
    markup = html(f"x {made} y")
    assert tags(markup) == {"p", "code"}
    assert markup.count("<code>") == 1
    shown = texts(markup).strip()[2:-2].replace(escape.JOINER, "")
    assert shown.strip() == escape.clean(text, limit=200).replace("|", escape.BAR).strip()
    assert no_format(made)


@given(TEXTS)
def test_a_code_span_stays_in_its_cell(text):
    markup = html(f"| a | b |\n|--|--|\n| {escape.code(text)} | end |\n")
    assert markup.count("<td>") == 2
    assert "<td>end</td>" in markup
    assert tags(markup) <= {"table", "thead", "tbody", "tr", "th", "td", "code"}


@given(TEXTS)
def test_prose_is_one_paragraph_of_text_that_shows_the_same(text):
    made = escape.prose(text)
    markup = html(made)
    assert tags(markup) <= {"p"}
    assert texts(markup).replace(escape.JOINER, "").strip() == escape.clean(text).replace("|", escape.BAR).strip()
    assert no_format(made)


@given(TEXTS)
def test_prose_notifies_nobody_and_refers_to_nothing(text):
    shown = texts(html(f"x {escape.prose(text)}"))
    assert not re.search(r"@[A-Za-z0-9]", shown)
    assert not re.search(r"#\d", shown)
    assert not re.search(r"\bgh-\d", shown, re.IGNORECASE)
    assert not re.search(r"\w://", shown)
    assert not re.search(r"\bwww\.", shown, re.IGNORECASE)


@given(TEXTS)
def test_prose_stays_in_its_cell(text):
    markup = html(f"| a | b |\n|--|--|\n| {escape.prose(text)} | end |\n")
    assert markup.count("<td>") == 2
    assert "<td>end</td>" in markup


@given(TEXTS)
def test_html_text_opens_nothing(text):
    made = escape.hypertext(text)
    assert not re.search(r"[<>\"']", made)


@given(TEXTS)
def test_a_command_is_one_line_and_ends_no_property(text):
    assert not re.search(r"[\r\n]", escape.command_data(text))
    assert not re.search(r"[\r\n:,]", escape.command_property(text))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("models/a.py", "models/a.py"),
        ("./models\\a.py", "models/a.py"),
        ("a..b/c.py", "a..b/c.py"),
        ("/etc/passwd", ""),
        ("../a.py", ""),
        ("a/../../b", ""),
        ("C:\\a.py", ""),
        ("https://evil.example/a", ""),
        ("a\x00b", ""),
        ("a\u202eb", ""),
        (None, ""),
        ("", ""),
    ],
)
def test_a_path_stays_in_the_repository(given, expected):
    assert escape.path(given) == expected


@pytest.mark.parametrize(("given", "expected"), [(1, 1), (0, None), (-3, None), (10**4000, None), (None, None)])
def test_a_line_is_one_that_can_be(given, expected):
    assert escape.line(given) == expected


def test_long_text_is_cut():
    assert escape.clean("x" * 5000, limit=10) == "xxxxxxxxx…"
    assert len(escape.clean("\n".join("x" * 100 for _ in range(100)), lines=True, limit=200)) == 200
