"""A small GitHub on loopback: comments and pull requests, its limits, and the ways in which it fails.

Every exchange is checked against GitHub's own OpenAPI: `violations` must stay empty, as leaving the context asserts.

    with GitHubFake(comments=130) as fake:
        ...                             # GITHUB_API_URL = fake.url
        fake.bodies(7)                  # what the pull request's comments say
    python -m tests.fakes.github        # prints its address and serves until it is stopped
"""

import argparse
import json
import re
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit

from tests.fakes.schema import Schema

TOO_LONG = "Body is too long (maximum is 65536 characters)"
NOT_ACCESSIBLE = "Resource not accessible by integration"
BOT = "github-actions[bot]"
_LIMIT = 65536


@dataclass(frozen=True, kw_only=True)
class Fault:
    """How one call goes wrong: an answer, one that breaks off, or none; `done` does the work before it fails."""

    kind: Literal["answer", "truncated", "hang"] = "answer"
    status: int = 500
    message: str = "Server Error"
    headers: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    verb: str = ""
    done: bool = False


@dataclass(frozen=True, kw_only=True)
class Call:
    """One request as it came."""

    verb: str
    path: str
    query: str
    authorization: str
    body: str


def secondary(retry_after: int | None = 1, status: int = 403) -> Fault:
    """GitHub's secondary limit, with or without a time to wait."""
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    message = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
    return Fault(status=status, message=message, headers=headers)


def exhausted(reset: int) -> Fault:
    """The hour's calls are used up until `reset`, in seconds since the epoch."""
    return Fault(
        status=403,
        message="API rate limit exceeded for installation ID 1.",
        headers={"x-ratelimit-limit": "1000", "x-ratelimit-remaining": "0", "x-ratelimit-reset": str(reset)},
    )


@cache
def _schema() -> Schema:
    return Schema()


class GitHubFake:
    """The state behind the server.

    Args:
        comments: How many comments of other people the pull request has.
        number: Of the pull request.
        read_only: Whether the token may not write, as a fork's.
        prefix: Path before the API's own, as "/api/v3" on GitHub Enterprise Server.
        pulls: Open pull requests as (number, head "owner:branch", head sha, head repository).
    """

    def __init__(
        self,
        comments: int = 0,
        *,
        number: int = 7,
        repository: str = "org/name",
        author: str = BOT,
        read_only: bool = False,
        pulls: tuple[tuple[int, str, str, str], ...] = (),
        prefix: str = "",
        port: int = 0,
    ) -> None:
        self.prefix = prefix
        self.schema = _schema()
        self.repository = repository
        self.author = author
        self.number = number
        self.read_only = read_only
        self.pulls = pulls
        self.faults: deque[Fault] = deque()
        self.calls: list[Call] = []
        self.violations: list[str] = []
        self.comments: dict[int, dict[str, Any]] = {}
        self._lock = threading.Lock()
        self._next = 1000
        handler = type("Handler", (_Handler,), {"fake": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", port), handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}{prefix}"
        for at in range(comments):
            self.add(f"a person's comment {at}", author="somebody")

    def __enter__(self) -> "GitHubFake":
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self.server.shutdown()
        self.server.server_close()
        if error[0] is None:
            assert not self.violations, "\n".join(self.violations)

    def add(self, body: str, *, author: str | None = None, number: int | None = None) -> int:
        """Writes a comment as somebody, and gives back its id."""
        self._next += 1
        here = f"{self.repository}/issues/{number or self.number}"
        user = self.schema.least("simple-user", login=author or self.author)
        self.comments[self._next] = self.schema.least(
            "issue-comment",
            id=self._next,
            body=body,
            user=user,
            url=f"{self.url}/repos/{self.repository}/issues/comments/{self._next}",
            issue_url=f"{self.url}/repos/{here}",
        )
        return self._next

    def bodies(self, number: int | None = None) -> list[str]:
        """What the pull request's comments say, oldest first."""
        return [comment["body"] for comment in self._of(number or self.number)]

    def ours(self) -> list[dict[str, Any]]:
        """Comments that the bot wrote."""
        return [comment for comment in self.comments.values() if comment["user"]["login"] == self.author]

    def answer(self, verb: str, path: str, query: str, body: bytes) -> tuple[int, dict[str, str], Any]:
        """Does what is asked, and says status, headers and content."""
        with self._lock:
            if match := re.fullmatch(rf"/repos/{self.repository}/issues/(\d+)/comments", path):
                number = int(match[1])
                if number != self.number:
                    return _refuse(404, "Not Found")
                return self._list(number, path, query) if verb == "GET" else self._create(number, body)
            if match := re.fullmatch(rf"/repos/{self.repository}/issues/comments/(\d+)", path):
                return self._update(int(match[1]), body)
            if path == f"/repos/{self.repository}/pulls" and verb == "GET":
                return self._pulls(query)
        return _refuse(404, "Not Found")

    def _of(self, number: int) -> list[dict[str, Any]]:
        return [one for one in self.comments.values() if one["issue_url"].endswith(f"/issues/{number}")]

    def _list(self, number: int, path: str, query: str) -> tuple[int, dict[str, str], Any]:
        asked = {name: int(values[0]) for name, values in parse_qs(query).items() if values[0].isdigit()}
        size, page = min(asked.get("per_page", 30), 100), asked.get("page", 1)
        found = self._of(number)
        pages = max(1, -(-len(found) // size))
        links = {"next": page + 1, "last": pages} if page < pages else {}
        link = ", ".join(f'<{self.url}{path}?per_page={size}&page={at}>; rel="{rel}"' for rel, at in links.items())
        return 200, {"Link": link} if link else {}, found[(page - 1) * size : page * size]

    def _create(self, number: int, body: bytes) -> tuple[int, dict[str, str], Any]:
        if refused := self._refused(body):
            return refused
        made = self.add(json.loads(body)["body"], number=number)
        return 201, {"Location": self.comments[made]["url"]}, self.comments[made]

    def _update(self, id: int, body: bytes) -> tuple[int, dict[str, str], Any]:
        if id not in self.comments:
            return _refuse(404, "Not Found")
        if refused := self._refused(body):
            return refused
        self.comments[id]["body"] = json.loads(body)["body"]
        return 200, {}, self.comments[id]

    def _refused(self, body: bytes) -> tuple[int, dict[str, str], Any] | None:
        if self.read_only:
            return _refuse(403, NOT_ACCESSIBLE)
        text = json.loads(body).get("body")
        if not isinstance(text, str):
            return _refuse(422, "Invalid request.")
        if len(text) > _LIMIT:
            errors = [{"resource": "IssueComment", "code": "unprocessable", "field": "data", "message": TOO_LONG}]
            return 422, {}, {"message": "Validation Failed", "errors": errors, "documentation_url": "https://docs"}
        return None

    def _pulls(self, query: str) -> tuple[int, dict[str, str], Any]:
        head = parse_qs(query).get("head", [""])[0]
        return 200, {}, [self._pull(*one) for one in self.pulls if one[1] == head]

    def _pull(self, number: int, head: str, sha: str, repository: str) -> dict[str, Any]:
        pull: dict[str, Any] = self.schema.least("pull-request-simple", number=number, state="open")
        for end, name, commit in (("head", repository, sha), ("base", self.repository, "0" * 40)):
            repo = self.schema.least("repository", full_name=name)
            user = self.schema.least("simple-user", login=name.partition("/")[0])
            pull[end] = {"label": head, "ref": head.partition(":")[2], "sha": commit, "repo": repo, "user": user}
        return pull


class _Handler(BaseHTTPRequestHandler):
    fake: GitHubFake
    protocol_version = "HTTP/1.1"

    def _serve(self) -> None:
        parts = urlsplit(self.path.removeprefix(self.fake.prefix))
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.fake.calls.append(
            Call(
                verb=self.command,
                path=parts.path,
                query=parts.query,
                authorization=self.headers.get("Authorization", ""),
                body=body.decode("utf-8", "replace"),
            )
        )
        fault = self._fault()
        if fault is None or fault.done:
            status, headers, answer = self.fake.answer(self.command, parts.path, parts.query, body)
            content = json.dumps(answer).encode()
            broken = self.fake.schema.violations(self.command, parts.path, parts.query, body, status, headers, content)
            self.fake.violations += [broken] if broken else []
            if fault is None or fault.kind == "truncated":
                self._write(status, headers, content, whole=fault is None)
                return
        if fault.kind == "hang":
            time.sleep(fault.seconds)
            self.close_connection = True
            return
        content = json.dumps({"message": fault.message, "documentation_url": "https://docs"}).encode()
        self._write(fault.status, fault.headers, content, whole=fault.kind != "truncated")

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _serve

    def _fault(self) -> Fault | None:
        faults = self.fake.faults
        if faults and faults[0].verb in ("", self.command):
            return faults.popleft()
        return None

    def _write(self, status: int, headers: Mapping[str, str], content: bytes, *, whole: bool) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content if whole else content[: len(content) // 2])
        self.close_connection = self.close_connection or not whole

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing: the calls are kept in `calls`."""


def _refuse(status: int, message: str) -> tuple[int, dict[str, str], Any]:
    return status, {}, {"message": message, "documentation_url": "https://docs.github.com/rest", "status": str(status)}


def main() -> None:
    """Serves until it is stopped."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--comments", type=int, default=0)
    given = parser.parse_args()
    with GitHubFake(given.comments, port=given.port) as fake:
        print(fake.url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
