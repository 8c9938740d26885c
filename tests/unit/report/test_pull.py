import pytest

from onnx_ci.report.context import Event
from onnx_ci.report.pull import NoPull, Pull, find

SHA = "b" * 40


def event(name, payload, repository="org/name"):
    return Event(name=name, payload=payload, repository=repository)


def run_of(**more):
    run = {
        "event": "pull_request",
        "head_sha": SHA,
        "head_branch": "topic",
        "head_repository": {"full_name": "fork/name", "owner": {"login": "fork"}},
        "pull_requests": [],
    }
    return event("workflow_run", {"workflow_run": run | more})


def pull(number=7, sha=SHA, head="fork/name", base="org/name"):
    return Pull(number=number, head_sha=sha, head_repository=head, base_repository=base)


def never(head):
    raise AssertionError(f"asked for {head}")


def test_a_pull_request_event_names_its_own():
    assert find(event("pull_request", {"pull_request": {"number": 12}}), never) == 12


@pytest.mark.parametrize("number", [None, "12", True, 0, -1, {"a": 1}])
def test_a_number_that_is_none_is_refused(number):
    assert isinstance(find(event("pull_request", {"pull_request": {"number": number}}), never), NoPull)


def test_a_run_of_a_fork_is_looked_up_by_its_head():
    asked = []
    assert find(run_of(), lambda head: asked.append(head) or [pull()]) == 7
    assert asked == ["fork:topic"]


@pytest.mark.parametrize(
    "pulls",
    [
        [],
        [pull(sha="c" * 40)],  # pushed again since
        [pull(head="other/name")],  # a branch of one name in another fork
        [pull(base="org/other")],
        [pull(7), pull(8)],  # two bases: which one is meant can't be told
    ],
)
def test_anything_but_one_match_is_no_pull_request(pulls):
    assert isinstance(find(run_of(), lambda head: pulls), NoPull)


@pytest.mark.parametrize(
    "more", [{"event": "push"}, {"head_sha": None}, {"head_branch": None}, {"head_repository": None}]
)
def test_a_run_that_is_not_a_pull_requests_is_not_looked_up(more):
    assert isinstance(find(run_of(**more), never), NoPull)


@pytest.mark.parametrize(("name", "wanted"), [("push", False), ("schedule", False), ("pull_request_target", True)])
def test_other_events_have_none_and_only_the_dangerous_one_warns(name, wanted):
    found = find(event(name, {"pull_request": {"number": 12}}), never)
    assert isinstance(found, NoPull)
    assert found.wanted is wanted


def test_without_a_repository_nothing_is_asked():
    assert isinstance(find(event("pull_request", {"pull_request": {"number": 1}}, repository=""), never), NoPull)
