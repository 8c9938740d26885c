"""The fake behaves like GitHub for a client that is not ours."""

import json
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import github
import pytest
from tests.fakes.github import TOO_LONG, Fault, GitHubFake, secondary


def client(fake, **more):
    return github.Github(base_url=fake.url, auth=github.Auth.Token("t"), lazy=True, seconds_between_writes=None, **more)


def test_plain_pygithub_pages_creates_and_edits():
    with GitHubFake(comments=65) as fake:
        issue = client(fake).get_repo("org/name").get_issue(7)
        assert len(list(issue.get_comments())) == 65
        made = issue.create_comment("hello")
        made.edit("goodbye")
        assert fake.bodies()[-1] == "goodbye"
        assert {call.authorization for call in fake.calls} == {"token t"}
        assert sum(call.verb == "GET" for call in fake.calls) == 3


def test_plain_pygithub_obeys_retry_after_and_repeats_a_502():
    with GitHubFake(comments=1) as fake:
        fake.faults += [secondary(retry_after=1), Fault(status=502)]
        retry = github.GithubRetry(total=3, backoff_factor=0.01)
        assert len(list(client(fake, retry=retry).get_repo("org/name").get_issue(7).get_comments())) == 1


def test_a_body_over_the_limit_is_refused_as_github_does():
    with GitHubFake() as fake, pytest.raises(github.GithubException) as raised:
        client(fake).get_repo("org/name").get_issue(7).create_comment("x" * 65537)
    assert raised.value.status == 422
    assert raised.value.data["errors"][0]["message"] == TOO_LONG


def test_a_request_that_github_would_not_take_is_a_violation():
    with GitHubFake() as fake:
        request = Request(f"{fake.url}/repos/org/name/issues/7/comments", data=json.dumps({"body": 3}).encode())
        with pytest.raises(HTTPError) as refused:
            urlopen(request, timeout=5)
        refused.value.close()
        assert "request POST" in fake.violations.pop()
