import pytest

from onnx_ci.report.comment import AUTHOR, Comment, Create, Leave, Update, choose, marker, signature, written_by
from onnx_ci.report.context import Run

MARKER = marker("onnx-ci.toml")
RUN = Run(id=20, attempt=1, number=5, sha="a" * 40)


def comment(id, *, run=None, author=AUTHOR, key="onnx-ci.toml", body=None):
    text = f"table\n\n{signature(key, run or Run(id=10, attempt=1))}"
    return Comment(id=id, author=author, body=text if body is None else body)


@pytest.mark.parametrize(
    ("comments", "decision"),
    [
        ([], Create()),
        ([comment(1, author="somebody")], Create()),
        ([comment(1, body="no marker")], Create()),
        ([comment(1, key="other/onnx-ci.toml")], Create()),
        ([comment(1, body=f"> {MARKER}")], Create()),
        ([comment(1, body=f"{MARKER}\n\nand more below it")], Create()),
        ([comment(3)], Update(id=3)),
        ([comment(1, author="somebody"), comment(4)], Update(id=4)),
        ([comment(9), comment(4)], Update(id=4)),
        ([comment(3, body=f"text\r\n{MARKER}\r\n")], Update(id=3)),
        ([comment(3, run=RUN)], Update(id=3)),
        ([comment(3, run=Run(id=20, attempt=2))], Leave(id=3, by=Run(id=20, attempt=2))),
        ([comment(3, run=Run(id=21, attempt=1))], Leave(id=3, by=Run(id=21, attempt=1))),
        ([comment(3, run=Run(id=19, attempt=9))], Update(id=3)),
    ],
)
def test_ours_is_found_by_author_and_last_line_and_a_newer_one_is_left(comments, decision):
    assert choose(comments, MARKER, AUTHOR, RUN) == decision


def test_a_signature_says_which_run_wrote_it():
    assert written_by(f"x\n{signature('onnx-ci.toml', RUN)}\n") == RUN
    assert written_by(f"{signature('onnx-ci.toml', RUN)}\nx") == Run()


@pytest.mark.parametrize("key", ["a--><script>", "-- >", "a b", "é" * 300, "\ud800", "--", ""])
def test_no_key_ends_the_marker_early_and_none_collides(key):
    made = marker(key)
    assert made.startswith("<!-- onnx-ci:")
    assert made.count("-->") == 1
    assert made.endswith(" -->")
    assert "--" not in made[4:-4]
    assert made != marker(key + "x")
    assert signature(key, RUN).count("\n") == 0
