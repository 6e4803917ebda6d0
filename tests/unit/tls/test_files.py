"""Certificate files: what is wrong with one is one line that names it, and nobody is asked for a password."""

import ssl
from pathlib import Path

import pytest

from hascheduler.errors import InvalidInput
from hascheduler.tls import PemFile, server_context
from tests.unit.tls.certificates import Authority


def server(cert: str, key: str, ca: str = "") -> ssl.SSLContext:
    return server_context(PemFile("CERT", cert), PemFile("KEY", key), PemFile("CA", ca))


@pytest.mark.parametrize(
    ("cert", "key", "ca", "named", "said"),
    [
        ("none", "a.key", "", "CERT", "No such file"),
        (".", "a.key", "", "CERT", "Is a directory"),
        ("a\0b", "a.key", "", "CERT", "is no path"),
        ("empty", "a.key", "", "CERT", "no certificate can be read from it"),
        ("a.key", "a.key", "", "CERT", "no certificate can be read from it"),
        ("a.pem", "text", "", "KEY", "no key can be read from it"),
        ("a.pem", "locked.key", "", "KEY", "no key can be read from it"),
        ("a.pem", "b.key", "", "KEY", "is not the key of"),
        ("a.pem", "a.key", "text", "CA", "no certificate can be read from it"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_of_that_file(
    authority: Authority, *, cert: str, key: str, ca: str, named: str, said: str
) -> None:
    home = Path(authority.cert).parent
    authority.issue("a")
    authority.issue("b")
    authority.issue("locked", password="hunter2")
    (home / "text").write_text("a certificate\n")
    (home / "empty").write_text("")
    paths = [f"{home}/{name}" if name else "" for name in (cert, key, ca)]
    with pytest.raises(InvalidInput) as refused:
        server(*paths)
    assert refused.value.path == (named,)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
