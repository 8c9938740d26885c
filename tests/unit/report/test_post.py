"""Against a loopback GitHub that is checked by GitHub's own OpenAPI; waits are recorded, not slept."""

import time

import pytest
from tests.fakes.github import NOT_ACCESSIBLE, Fault, GitHubFake, exhausted, secondary

from onnx_ci.report.comment import AUTHOR, marker, signature
from onnx_ci.report.context import Run
from onnx_ci.report.github import Api, GitHubError, refusal
from onnx_ci.report.post import LONGEST_WAIT, NotPosted, Posted, upsert

KEY = "onnx-ci.toml"
RUN = Run(id=50, attempt=1, number=3, sha="d" * 40)
TOKEN = "ghs_a_token_that_is_fake"


def body(limit=0, run=RUN):
    return f"the table\n\n{signature(KEY, run)}"


def post(fake, *, run=RUN, render=body, waits=None, timeout=5):
    waits = [] if waits is None else waits
    api = Api(fake.url, TOKEN, fake.repository, timeout=timeout)
    return upsert(api, 7, marker=marker(KEY), author=AUTHOR, run=run, render=render, sleep=waits.append)


def test_the_comment_is_created_once_and_then_written_over_on_the_second_page():
    with GitHubFake(comments=130) as fake:
        first = post(fake)
        again = post(fake, run=Run(id=51, attempt=1), render=lambda limit: body(run=Run(id=51, attempt=1)))
        assert first == again == Posted(id=fake.ours()[0]["id"])
        assert len(fake.bodies()) == 131
        assert "id=51" in fake.bodies()[-1]
        assert {call.authorization for call in fake.calls} == {f"token {TOKEN}"}


def test_an_enterprise_server_is_asked_below_its_own_path():
    with GitHubFake(comments=130, prefix="/api/v3") as fake:
        assert post(fake) == post(fake) == Posted(id=fake.ours()[0]["id"])


def test_exactly_a_full_page_is_followed_by_another():
    with GitHubFake(comments=99) as fake:
        fake.add(body())
        assert post(fake) == Posted(id=fake.ours()[0]["id"])
        assert len(fake.bodies()) == 100


def test_a_quotation_and_a_strangers_marker_are_left_alone():
    with GitHubFake() as fake:
        fake.add(body(), author="mallory")
        fake.add("> " + body().replace("\n", "\n> "))
        post(fake)
        assert len(fake.bodies()) == 3
        assert fake.bodies()[0] == body()


def test_an_older_run_does_not_overwrite_a_newer_one():
    newer = Run(id=60, attempt=1)
    with GitHubFake() as fake:
        id = fake.add(body(run=newer))
        assert post(fake) == Posted(id=id, newer=True)
        assert fake.bodies() == [body(run=newer)]


def test_a_read_only_token_says_which_permission_is_missing():
    waits = []
    with GitHubFake(comments=3, read_only=True) as fake:
        found = post(fake, waits=waits)
        assert isinstance(found, NotPosted)
        assert NOT_ACCESSIBLE in found.why
        assert "pull-requests: write" in found.hint
        assert waits == []
        assert len(fake.bodies()) == 3


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (secondary(retry_after=7), 7.0),
        (secondary(retry_after=3, status=429), 3.0),
        (secondary(retry_after=None), 60.0),
        (Fault(status=500), 1.0),
        (Fault(status=502, verb="POST"), 1.0),
        (Fault(status=503, headers={"Retry-After": "9"}), 9.0),
        (Fault(kind="truncated", status=200), 1.0),
        (Fault(kind="truncated", verb="POST", done=True), 1.0),
        (Fault(status=502, verb="POST", done=True), 1.0),
    ],
)
def test_what_may_pass_is_waited_for_and_never_comments_twice(fault, expected):
    waits = []
    with GitHubFake(comments=2) as fake:
        fake.faults.append(fault)
        assert isinstance(post(fake, waits=waits), Posted)
        assert waits == [expected]
        assert len(fake.ours()) == 1


def test_a_rate_limit_is_waited_for_until_its_reset():
    waits = []
    with GitHubFake() as fake:
        fake.faults.append(exhausted(reset=int(time.time()) + 30))
        assert isinstance(post(fake, waits=waits), Posted)
        assert 25 < waits[0] <= 32


def test_a_wait_longer_than_a_job_is_worth_is_not_waited_for():
    waits = []
    with GitHubFake() as fake:
        fake.faults.append(secondary(retry_after=3600))
        found = post(fake, waits=waits)
        assert isinstance(found, NotPosted)
        assert "3600 s" in found.why
        assert waits == []


def test_it_gives_up_after_a_bounded_time():
    waits = []
    with GitHubFake() as fake:
        fake.faults += [Fault(status=500)] * 50
        assert isinstance(post(fake, waits=waits), NotPosted)
        assert sum(waits) <= LONGEST_WAIT
        assert len(fake.calls) < 10


def test_a_hang_ends_with_the_time_limit_and_is_tried_again():
    with GitHubFake() as fake:
        fake.faults.append(Fault(kind="hang", seconds=2))
        assert isinstance(post(fake, timeout=1), Posted)


@pytest.mark.parametrize("status", [401, 404, 410])
def test_what_stays_as_it_is_is_asked_once(status):
    with GitHubFake() as fake:
        fake.faults += [Fault(status=status, message="Gone")] * 9
        found = post(fake)
        assert isinstance(found, NotPosted)
        assert str(status) in found.why
        assert len(fake.calls) == 1


def test_a_comment_deleted_under_our_hands_is_written_anew():
    with GitHubFake() as fake:
        fake.add(body())
        fake.faults.append(Fault(status=404, message="Not Found", verb="PATCH"))
        assert isinstance(post(fake), Posted)
        assert len(fake.ours()) == 1


def test_a_body_that_is_still_too_long_is_cut_further():
    asked = []

    def render(limit):
        asked.append(limit)
        return ("é" * 70_000 if limit > 40_000 else "short") + "\n" + signature(KEY, RUN)

    with GitHubFake() as fake:
        assert isinstance(post(fake, render=render), Posted)
        assert asked == [65_536, 32_768]


def test_another_validation_error_is_not_repeated():
    with GitHubFake() as fake:
        fake.faults.append(Fault(status=422, message="Validation Failed", verb="POST"))
        assert isinstance(post(fake), NotPosted)


def test_an_answer_that_is_not_githubs_is_no_comment():
    with GitHubFake() as fake:
        fake.faults += [Fault(status=200, message="a proxy's login page")] * 20
        assert isinstance(post(fake), NotPosted)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_the_token_follows_no_redirect_to_another_host(status):
    with GitHubFake() as fake, GitHubFake() as other:
        elsewhere = other.url.replace("127.0.0.1", "localhost")
        location = f"{elsewhere}/repos/org/name/issues/7/comments"
        fake.faults += [Fault(status=status, headers={"Location": location})] * 20
        assert isinstance(post(fake), NotPosted)
        assert other.calls == []


def test_the_token_follows_no_link_to_another_host():
    with GitHubFake(comments=130) as fake, GitHubFake() as other:
        answer, link = fake.answer, f'<{other.url}/repos/org/name/issues/7/comments?page=2>; rel="next"'

        def lying(verb, path, query, body):
            status, headers, content = answer(verb, path, query, body)
            return status, headers | ({"Link": link} if verb == "GET" else {}), content

        fake.answer = lying
        assert isinstance(post(fake), Posted)
        assert other.calls == []


@pytest.mark.parametrize(
    "url",
    ["http://github.example.com/api/v3", "ftp://x", "https://user:secret@host/api", "//x", "https://", "file:///x"],
)
def test_the_token_is_not_sent_in_the_clear_or_to_an_odd_address(url):
    with pytest.raises(GitHubError) as raised:
        Api(url, TOKEN, "org/name")
    assert "secret" not in str(raised.value)


def test_no_message_shows_the_token():
    with GitHubFake(read_only=True) as fake:
        assert TOKEN not in repr(post(fake))


@pytest.mark.parametrize(
    ("status", "headers", "message", "again", "wait"),
    [
        (403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "130"}, "API rate limit exceeded", True, 31.0),
        (403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "10"}, "", True, 1.0),
        (403, {"x-ratelimit-remaining": "40", "x-ratelimit-reset": "130"}, NOT_ACCESSIBLE, False, None),
        (403, {"retry-after": "soon"}, "", False, None),
        (403, {"retry-after": "²"}, "", False, None),
        (429, {}, "", True, 60.0),
        (500, {}, "", True, None),
        (422, {}, "", False, None),
    ],
)
def test_a_refusal_says_whether_and_when_to_ask_again(status, headers, message, again, wait):
    found = refusal(status, headers, message, now=100.0)
    assert (found.again, found.wait) == (again, wait)
