import pytest
from tests.fakes.results import contract

from onnx_ci.records import codec
from onnx_ci.records.report import PROVENANCE, Provenance
from onnx_ci.report import base

ONE, OTHER = "1" * 40, "2" * 40


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "base" / "net").mkdir(parents=True)
    (tmp_path / "base" / "net" / "contract.json").write_text(codec.dumps(contract("net")))
    return tmp_path / "base"


def kept(folder, commit=ONE, run="7"):
    (folder / PROVENANCE).write_text(codec.dumps(Provenance(schema_version=1, commit=commit, run=run)))
    return folder


def test_the_base_of_the_wanted_commit_needs_no_word(folder):
    found = base.find(kept(folder), ONE, "9")
    assert (found.commit, found.notes, set(found.contracts)) == (ONE, [], {"net"})


def test_one_of_another_commit_is_said(folder):
    (note,) = base.find(kept(folder), OTHER, "9").notes
    assert note.startswith("The base is commit 1111111111, not 2222222222 that this one is merged into")


def test_one_that_this_run_exported_is_said(folder):
    (note,) = base.find(kept(folder), ONE, "7").notes
    assert note == "The base, commit 1111111111, was exported in this run, since none was kept."


def test_one_that_says_nothing_of_its_commit_is_a_note_where_one_was_wanted(folder):
    assert base.find(folder, ONE, "9").notes == ["The base does not say which commit it is of."]
    assert base.find(folder, "", "").notes == []


@pytest.mark.parametrize("there", [True, False])
def test_none_is_said_and_which_one_was_wanted(tmp_path, there):
    if there:
        kept(tmp_path)
    found = base.find(tmp_path if there else tmp_path / "none", OTHER, "9")
    assert (found.contracts, found.commit) == ({}, "")
    assert found.notes[0].startswith("There is no base of commit 2222222222 in ")
