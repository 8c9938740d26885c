import json
import os

import pytest
from tests.fakes.results import contract, figures, finding, healthy, realistic, result

from onnx_ci.records import codec
from onnx_ci.records.report import Provenance
from onnx_ci.report import read


def write(folder, name, text):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())


def good():
    return codec.dumps(healthy("classifier", 1.0, 2.0)[1])


def changed(**more):
    return json.dumps(json.loads(good()) | more)


def test_results_come_back_as_they_were_written(tmp_path):
    results, _, _ = realistic()
    for at, one in enumerate(results):
        write(tmp_path, f"{at}.json", codec.dumps(one))
    assert read.results(tmp_path) == read.Read(results=results, problems=[])


def test_floats_that_json_lacks_come_back(tmp_path):
    odd = figures("logits", float("inf"), e_torch=float("-inf"))
    write(
        tmp_path, "a.json", codec.dumps(result("a", "cpu", [finding("parity.runtime", "fail", "", "")], parity=[odd]))
    )
    assert read.results(tmp_path).results[0].parity == [odd]


def test_no_folder_has_no_results(tmp_path):
    assert read.results(tmp_path / "none") == read.Read(results=[], problems=[])


def test_what_is_unreadable_is_named_and_the_others_stand(tmp_path):
    write(tmp_path, "good.json", good())
    write(tmp_path, "bad.json", "{")
    found = read.results(tmp_path)
    assert len(found.results) == 1
    assert found.problems[0].startswith("bad.json: not JSON")


@pytest.mark.parametrize("version", [0, 2, "1", None, True, 1.5])
def test_another_schema_version_names_both(tmp_path, version):
    write(tmp_path, "a.json", changed(schema_version=version))
    found = read.results(tmp_path)
    assert found.results == []
    assert f"schema version {version!r}" in found.problems[0]
    assert "reads version 1" in found.problems[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "not JSON"),
        (b"[]", "expected a JSON object"),
        (b"null", "expected a JSON object"),
        (b"\xff\xfe\xfa", "not Unicode"),
        (b'{"a": 1, "a": 2}', "twice"),
        (b'{"a": NaN}', "NaN is no JSON number"),
        (b"[" * 100_000, "deeper"),
        (b"[" * 90 + b"]" * 90, "deeper"),
        (b'{"a": "\\ud800"}', "not Unicode"),
        (b"9" * 5000, "not JSON"),
    ],
)
def test_text_that_is_no_record_is_a_problem(tmp_path, text, said):
    write(tmp_path, "a.json", text)
    found = read.results(tmp_path)
    assert found.results == []
    assert said in found.problems[0]


@pytest.mark.parametrize(
    "more",
    [
        {"surprise": 1},
        {"status": "great"},
        {"model": None},
        {"model": 3},
        {"findings": {}},
        {"findings": [{"rule": "x"}]},
        {"latency": [{"samples_ms": "many"}]},
        {"environment": {}},
        {"required": "maybe"},
        {"stages": {"parity": {"seconds": "long"}}},
    ],
)
def test_a_record_with_another_key_or_type_is_a_problem(tmp_path, more):
    write(tmp_path, "a.json", changed(**more))
    found = read.results(tmp_path)
    assert found.results == []
    assert next(iter(more)) in found.problems[0]


def test_links_are_not_followed(tmp_path):
    write(tmp_path / "elsewhere", "secret.json", good())
    write(tmp_path / "results", "good.json", good())
    (tmp_path / "results" / "link.json").symlink_to(tmp_path / "elsewhere" / "secret.json")
    (tmp_path / "results" / "gone.json").symlink_to(tmp_path / "nowhere")
    found = read.results(tmp_path / "results")
    assert len(found.results) == 1
    assert [problem.partition(":")[0] for problem in found.problems] == ["gone.json", "link.json"]
    (tmp_path / "linked").symlink_to(tmp_path / "results")
    assert read.results(tmp_path / "linked").results == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes on this system")
def test_a_pipe_does_not_hang_and_a_folder_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "folder.json").mkdir()
    assert len(read.results(tmp_path).problems) == 2


def test_large_files_are_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(read, "MAX_FILE_BYTES", 1 << 20)
    with (tmp_path / "big.json").open("wb") as stream:
        stream.truncate(1 << 30)
    assert "larger than 1 MiB" in read.results(tmp_path).problems[0]


def test_a_base_gives_contracts_by_the_contracts_own_name(tmp_path):
    written = contract("classifier@small")
    write(tmp_path / "anything", "contract.json", codec.dumps(written))
    write(tmp_path / "broken", "contract.json", "{}")
    (tmp_path / "empty").mkdir()
    found, notes = read.contracts(tmp_path)
    assert found == {"classifier@small": written}
    assert len(notes) == 1
    assert "broken/contract.json" in notes[0]


def test_no_more_of_a_base_is_read_than_of_results(tmp_path, monkeypatch):
    text = codec.dumps(contract("a"))
    for name in ("a", "b"):
        write(tmp_path / name, "contract.json", text)
    monkeypatch.setattr(read, "MAX_TOTAL_BYTES", len(text))
    found, notes = read.contracts(tmp_path)
    assert (list(found), len(notes)) == (["a"], 1)
    assert notes[0].startswith("The base's b/contract.json: larger than")


def test_a_base_that_is_not_there_is_a_note(tmp_path):
    found, notes = read.contracts(tmp_path / "none")
    assert (found, notes) == ({}, [])


@pytest.mark.parametrize(
    "text",
    [
        '{"schema_version": 1, "commit": "HEAD"}',
        '{"schema_version": 1, "commit": "@team"}',
        '{"schema_version": 2, "commit": "%s"}' % ("a" * 40),
        "[]",
        "x" * 100_000,
    ],
)
def test_a_provenance_that_names_no_commit_is_none(tmp_path, text):
    write(tmp_path, "provenance.json", text)
    assert read.provenance(tmp_path) is None


def test_a_provenance_is_read_and_a_link_in_its_place_is_not(tmp_path):
    write(tmp_path / "one", "provenance.json", codec.dumps(Provenance(schema_version=1, commit="a" * 40, run="7")))
    assert read.provenance(tmp_path / "one") == Provenance(schema_version=1, commit="a" * 40, run="7")
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "provenance.json").symlink_to(tmp_path / "one" / "provenance.json")
    assert read.provenance(tmp_path / "two") is None
