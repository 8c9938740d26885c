import socket

import pytest
from tests import conftest


@pytest.mark.parametrize("host", ["192.0.2.1", "2001:db8::1"])
def test_a_connection_beyond_loopback_raises(host):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as one, pytest.raises(RuntimeError, match="connect to"):
        one.connect((host, 9))


def test_a_name_is_not_looked_up():
    with pytest.raises(RuntimeError, match="look-up of"):
        socket.getaddrinfo("api.github.com", 443)


def test_loopback_is_near():
    assert all(conftest._is_near((host, 1)) for host in ("127.0.0.1", "::1", "localhost"))
    assert not conftest._is_near(("github.com", 1))
