"""The edge to GitHub's API: four calls, and what its refusals mean.

Paths are ours, never the server's: pages are asked for by number and not by following `Link`, so that the token can
reach no other host. PyGithub refuses redirects to another one.
"""

from __future__ import annotations

import ipaddress
import json
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import urlsplit

import github
from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass
from requests import RequestException

from onnx_ci import __version__
from onnx_ci.report.comment import Comment
from onnx_ci.report.pull import Pull

TIMEOUT = 20
PER_PAGE = 100
MAX_PAGES = 100
_SECONDARY_WAIT = 60.0
T = TypeVar("T")


class GitHubError(Exception):
    """GitHub did not do what was asked.

    Attributes:
        status: Of HTTP; 0 where no whole answer came.
        again: Whether the same may succeed later.
        wait: Seconds after which GitHub wants to be asked again; None where it does not say.
    """

    def __init__(self, message: str, *, status: int = 0, again: bool = False, wait: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.again = again
        self.wait = wait


@dataclass
class _User:
    login: str


@dataclass
class _Comment:
    id: int
    body: str | None = None
    user: _User | None = None


@dataclass
class _Repository:
    full_name: str


@dataclass
class _End:
    sha: str
    repo: _Repository | None = None


@dataclass
class _Pull:
    number: int
    head: _End
    base: _End


class Api:
    """Comments and pull requests of one repository.

    Args:
        url: GITHUB_API_URL.
        token: Sent to that host only.
        repository: "owner/name".
        timeout: Seconds without a byte after which a call counts as hanging.
        now: Seconds since the epoch, for rate limits that name a time.

    Raises:
        GitHubError: The address is no https address (http is for loopback only).
    """

    def __init__(
        self, url: str, token: str, repository: str, *, timeout: int = TIMEOUT, now: Callable[[], float] = time.time
    ) -> None:
        _check_address(url)
        self._repository = repository
        self._now = now
        self._github = github.Github(
            base_url=url.rstrip("/"),
            auth=github.Auth.Token(token),
            timeout=timeout,
            retry=None,  # what to repeat is decided in `report.post`: a repeated POST could comment twice
            user_agent=f"onnx-ci/{__version__}",
            seconds_between_requests=None,
            seconds_between_writes=None,
        )

    def comments(self, number: int) -> list[Comment]:
        """All comments of a pull request, over all pages."""
        found: list[Comment] = []
        for page in range(1, MAX_PAGES + 1):
            answer = self._ask("GET", f"/issues/{number}/comments", {"per_page": PER_PAGE, "page": page})
            read = _parse(list[_Comment], answer)
            found += [
                Comment(id=one.id, author=one.user.login if one.user else "", body=one.body or "") for one in read
            ]
            if len(read) < PER_PAGE:
                break
        return found

    def create(self, number: int, body: str) -> int:
        """Writes a comment and gives back its id."""
        return _parse(_Comment, self._ask("POST", f"/issues/{number}/comments", body={"body": body})).id

    def update(self, id: int, body: str) -> int:
        """Writes over a comment and gives back its id."""
        return _parse(_Comment, self._ask("PATCH", f"/issues/comments/{id}", body={"body": body})).id

    def pulls(self, head: str) -> list[Pull]:
        """Open pull requests of a head, "owner:branch"."""
        answer = self._ask("GET", "/pulls", {"state": "open", "head": head, "per_page": PER_PAGE})
        return [
            Pull(
                number=one.number,
                head_sha=one.head.sha,
                head_repository=one.head.repo.full_name if one.head.repo else "",
                base_repository=one.base.repo.full_name if one.base.repo else "",
            )
            for one in _parse(list[_Pull], answer)
        ]

    def _ask(
        self, verb: str, path: str, parameters: dict[str, Any] | None = None, body: dict[str, str] | None = None
    ) -> Any:
        try:
            _, answer = self._github.requester.requestJsonAndCheck(
                verb, f"/repos/{self._repository}{path}", parameters=parameters, input=body
            )
        except github.GithubException as error:
            raise refusal(error.status, error.headers or {}, _message(error), now=self._now()) from None
        except (RequestException, json.JSONDecodeError, UnicodeDecodeError) as error:
            # the messages of these can carry addresses of proxies, with their passwords
            raise GitHubError(f"no whole answer ({type(error).__name__})", again=True) from None
        except (RuntimeError, AssertionError) as error:
            raise GitHubError(f"the answer leads to another address: {error}") from None
        return answer


def refusal(status: int, headers: Mapping[str, Any], message: str, *, now: float) -> GitHubError:
    """Reads an answer that refuses: whether to ask again, and when.

    Source: docs.github.com, "Rate limits for the REST API" and "Best practices for using the REST API".
    """
    given = {str(name).lower(): str(value) for name, value in headers.items()}
    text = f"{status} {message}".strip()
    if status in (403, 429):
        if (wait := _seconds(given.get("retry-after"))) is not None:
            return GitHubError(text, status=status, again=True, wait=wait)
        reset = _seconds(given.get("x-ratelimit-reset"))
        if given.get("x-ratelimit-remaining") == "0" and reset is not None:
            return GitHubError(text, status=status, again=True, wait=max(0.0, reset - now) + 1)
        if status == 429 or "secondary rate limit" in message.lower():
            return GitHubError(text, status=status, again=True, wait=_SECONDARY_WAIT)
    return GitHubError(text, status=status, again=status >= 500, wait=_seconds(given.get("retry-after")))


def _seconds(text: str | None) -> float | None:
    return float(text) if text and text.isascii() and text.isdigit() and len(text) <= 12 else None


def _message(error: github.GithubException) -> str:
    data = error.data
    if not isinstance(data, dict):
        return ""
    details = data.get("errors")
    texts = (
        [one["message"] for one in details if isinstance(one, dict) and isinstance(one.get("message"), str)]
        if (isinstance(details, list))
        else []
    )
    return ": ".join(str(part) for part in [data.get("message") or "", *texts] if part)[:500]


def _parse(cls: type[T], answer: Any) -> T:
    try:
        return TypeAdapter(cls).validate_python(answer)
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"]))
        raise GitHubError(f"an answer that is not GitHub's: {where or 'the whole'}", again=True) from None


def _check_address(url: str) -> None:
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.username or parts.password or not host:
        raise GitHubError(f"GITHUB_API_URL is no plain address: {host or 'no host'}")
    if parts.scheme != "https" and not (parts.scheme == "http" and _is_loopback(host)):
        raise GitHubError(f"the token is not sent to {host}: GITHUB_API_URL must be https")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
