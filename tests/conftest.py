"""For all tests: nothing reaches out of this machine by accident, and how they are spread over processes."""

from __future__ import annotations

import ipaddress
import sys

import pytest


class ReachedOutError(RuntimeError):
    """A test opened a connection beyond loopback."""


def _is_near(address: object) -> bool:
    host = address[0] if isinstance(address, tuple) and address else None
    if not isinstance(host, str):
        return True  # a local socket's path
    if host in ("", "localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _watch(event: str, arguments: tuple[object, ...]) -> None:
    if event == "socket.connect" and not _is_near(arguments[1]):
        raise ReachedOutError(f"connect to {arguments[1]}")
    if event == "socket.getaddrinfo" and not _is_near((arguments[0],)):
        raise ReachedOutError(f"look-up of {arguments[0]}")


sys.addaudithook(_watch)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A file stays in one process, for what its fixtures set up once; an example project goes wherever one is free."""
    for item in items:
        parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
        example = getattr(parameters.get("example"), "name", None)
        item.add_marker(pytest.mark.xdist_group(example or item.location[0]))
