"""Replicas that ask each other over TLS: each shows its certificate, and nobody is asked whom they do not trust."""

import pytest

from hascheduler.tls import PemFile, client_context, server_context
from tests.unit.api.doubles import World
from tests.unit.shards.replicas import JOB, Peer, replica, serving
from tests.unit.tls.certificates import Authority

NAME = "replicas.example"


def pem(path: str) -> PemFile:
    return PemFile("FILE", path)


@pytest.mark.parametrize(
    ("names", "expected_name", "status"),
    [
        (f"DNS:{NAME}", NAME, 200),
        ("IP:127.0.0.1", "", 200),
        (f"DNS:{NAME}", "", 503),
        ("DNS:another.example", NAME, 503),
        ("a stranger's", NAME, 503),
    ],
)
async def test_a_replica_is_asked_whose_certificate_is_for_it_and_trusted(
    authority: Authority, stranger: Authority, names: str, expected_name: str, status: int
) -> None:
    is_trusted = names != "a stranger's"
    peer, own = Peer(), authority.issue("replica", names if is_trusted else f"DNS:{NAME}")
    served = server_context(pem(own.cert), pem(own.key), pem(authority.cert))
    trusted = authority if is_trusted else stranger
    tls = client_context(pem(trusted.cert), pem(own.cert), pem(own.key))
    async with (
        serving(peer, tls=served) as addresses,
        replica(World(), addresses, tls=tls, tls_name=expected_name) as client,
    ):
        answer = await client.get(JOB, headers={"x-request-id": "secret"})
    assert answer.status_code == status
    assert bool(peer.requests) is (status == 200), "nothing is shown to a stranger"
