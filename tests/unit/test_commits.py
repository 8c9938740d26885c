import subprocess

import pytest

from onnx_ci import commits

PULL = {"pull_request": {"base": {"sha": "b" * 40}}}


def git(folder, *arguments):
    who = ["-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def commit(folder, name):
    git(folder, "commit", "-q", "--allow-empty", "-m", f"{name}\n\nparent {'c' * 40}")
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """main, and a branch merged into it after main went on; cloned as the runner does it, one commit deep."""
    folder = tmp_path_factory.mktemp("repository")
    git(folder, "init", "-q")
    commit(folder, "first")
    git(folder, "checkout", "-q", "-b", "change")
    commit(folder, "change")
    git(folder, "checkout", "-q", "main")
    tip = commit(folder, "second")
    git(folder, "merge", "-q", "--no-ff", "change", "-m", "merge")
    clone = tmp_path_factory.mktemp("clone")
    git(clone, "clone", "-q", "--depth=1", folder.as_uri(), "here")
    return clone / "here", tip, git(folder, "rev-parse", "HEAD")


def test_the_base_of_a_merge_is_what_it_is_merged_into_even_in_a_shallow_clone(repository):
    clone, tip, merge = repository
    assert commits.base(PULL, merge, clone) == tip
    assert commits.head(clone) == merge


@pytest.mark.parametrize("merge", ["", "--help", "d" * 40])
def test_another_checkout_has_the_events_base(repository, merge):
    assert commits.base(PULL, merge, repository[0]) == "b" * 40


def test_outside_a_repository_nothing_is_known(tmp_path):
    assert commits.head(tmp_path / "none") == ""
    assert commits.base(PULL, "d" * 40, tmp_path / "none") == "b" * 40


@pytest.mark.parametrize("event", [{}, {"pull_request": None}, {"pull_request": {"base": {"sha": "main"}}}])
def test_what_is_no_pull_request_or_no_commit_has_none(repository, event):
    assert commits.base(event, repository[2] if not event else "", repository[0]) == ""
