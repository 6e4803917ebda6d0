"""The API over HTTPS, on a port of this machine, with certificates made for the purpose."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest

from hascheduler.api.edge import Edge
from hascheduler.api.middleware.auth import AuthConfig
from hascheduler.errors import InvalidInput
from hascheduler.model.token import digest_of
from hascheduler.tls import PemFile, client_context, server_context
from tests.unit.api.doubles import World, app_of
from tests.unit.api.test_server import serving
from tests.unit.cli.invoking import Replica, invoke
from tests.unit.shards.replicas import JOB, Peer, replica
from tests.unit.shards.replicas import serving as serving_peer
from tests.unit.tls.certificates import Authority

ADMIN = "an-admin-token-of-the-settings"


@pytest.fixture(scope="module")
def app() -> Edge:
    return app_of(World())


@asynccontextmanager
async def served(app: Edge, tls: ssl.SSLContext) -> AsyncIterator[str]:
    app.services = replace(World().services(), auth=AuthConfig(required=True, admin_digest=digest_of(ADMIN)))
    async with serving(None, app, tls) as server:
        yield f"https://127.0.0.1:{server.port}"


def of_server(authority: Authority, names: str = "IP:127.0.0.1", client_ca: str = "") -> ssl.SSLContext:
    issued = authority.issue("server", names)
    return server_context(PemFile("CERT", issued.cert), PemFile("KEY", issued.key), PemFile("CA", client_ca))


@pytest.fixture
async def url(app: Edge, authority: Authority) -> AsyncIterator[str]:
    async with served(app, of_server(authority)) as url:
        yield url


async def test_with_an_authority_only_its_clients_get_in(app: Edge, authority: Authority, stranger: Authority) -> None:
    ca = PemFile("CA", authority.cert)
    async with served(app, of_server(authority, client_ca=authority.cert)) as url:
        for issued, gets_in in ((authority.issue("client"), True), (stranger.issue("client"), False), (None, False)):
            cert = PemFile("CERT", issued.cert if issued else "")
            context = client_context(ca, cert, PemFile("KEY", issued.key if issued else ""))
            async with httpx2.AsyncClient(base_url=url, verify=context) as client:
                if gets_in:
                    assert (await client.get("/livez")).status_code == 200
                else:
                    with pytest.raises(httpx2.TransportError):
                        await client.get("/livez")


async def test_the_commands_trust_whom_they_are_told_to(url: str, authority: Authority, stranger: Authority) -> None:
    whoami = ("token", "whoami")
    await Replica(url).done("--ca-file", authority.cert, *whoami, HASCHEDULER_TOKEN=ADMIN)
    for arguments in ((), ("--ca-file", stranger.cert)):
        refused = await Replica(url).run(*arguments, *whoami, HASCHEDULER_TOKEN=ADMIN)
        assert refused.status == 2
        assert refused.err.count("\n") == 1
        assert "is not trusted" in refused.err
        assert "--ca-file" in refused.err


async def test_the_commands_show_their_certificate(app: Edge, authority: Authority) -> None:
    issued = authority.issue("client")
    named = {"HASCHEDULER_CA_FILE": authority.cert, "HASCHEDULER_TOKEN": ADMIN}
    own = {"HASCHEDULER_CLIENT_CERT_FILE": issued.cert, "HASCHEDULER_CLIENT_KEY_FILE": issued.key}
    async with served(app, of_server(authority, client_ca=authority.cert)) as url:
        await Replica(url).done("schedule", "list", **named, **own)
        assert (await Replica(url).run("schedule", "list", **named)).status == 1
    one = {"HASCHEDULER_CLIENT_CERT_FILE": issued.cert}
    assert invoke("schedule", "list", HASCHEDULER_URL="https://127.0.0.1:1", **one).status == 2


@pytest.mark.parametrize("wrong", ["HTTP_TLS_CERT_FILE", "HTTP_TLS_KEY_FILE", "HTTP_TLS_CLIENT_CA_FILE"])
def test_a_replica_with_a_wrong_file_says_which_and_does_not_start(
    authority: Authority, tmp_path: Path, wrong: str
) -> None:
    issued = authority.issue("server")
    files = {
        "HASCHEDULER_HTTP_TLS_CERT_FILE": issued.cert,
        "HASCHEDULER_HTTP_TLS_KEY_FILE": issued.key,
        "HASCHEDULER_HTTP_TLS_CLIENT_CA_FILE": authority.cert,
        f"HASCHEDULER_{wrong}": str(tmp_path / "none"),
    }
    refused = invoke("serve", **files)
    assert refused.status == 2
    assert refused.err.count("\n") == 1
    assert f"HASCHEDULER_{wrong}: {tmp_path / 'none'}: No such file" in refused.err


PEER = "replicas.example"


def _pem(path: str) -> PemFile:
    return PemFile("FILE", path)


@pytest.mark.parametrize(
    ("names", "expected_name", "status"),
    [
        (f"DNS:{PEER}", PEER, 200),
        ("IP:127.0.0.1", "", 200),
        (f"DNS:{PEER}", "", 503),
        ("DNS:another.example", PEER, 503),
        ("a stranger's", PEER, 503),
    ],
)
async def test_a_replica_is_asked_whose_certificate_is_for_it_and_trusted(
    authority: Authority, stranger: Authority, names: str, expected_name: str, status: int
) -> None:
    is_trusted = names != "a stranger's"
    peer, own = Peer(), authority.issue("replica", names if is_trusted else f"DNS:{PEER}")
    served = server_context(_pem(own.cert), _pem(own.key), _pem(authority.cert))
    trusted = authority if is_trusted else stranger
    tls = client_context(_pem(trusted.cert), _pem(own.cert), _pem(own.key))
    async with (
        serving_peer(peer, tls=served) as addresses,
        replica(World(), addresses, tls=tls, tls_name=expected_name) as client,
    ):
        answer = await client.get(JOB, headers={"x-request-id": "secret"})
    assert answer.status_code == status
    assert bool(peer.requests) is (status == 200), "nothing is shown to a stranger"


@pytest.mark.parametrize(
    ("cert", "key", "ca", "named", "said"),
    [
        ("none", "a.key", "", "CERT", "No such file"),
        (".", "a.key", "", "CERT", "Is a directory"),
        ("a\0b", "a.key", "", "CERT", "is not a path"),
        ("empty", "a.key", "", "CERT", "holds no readable certificate"),
        ("a.key", "a.key", "", "CERT", "holds no readable certificate"),
        ("a.pem", "text", "", "KEY", "holds no readable key"),
        ("a.pem", "locked.key", "", "KEY", "holds no readable key"),
        ("a.pem", "b.key", "", "KEY", "is not the key of"),
        ("a.pem", "a.key", "text", "CA", "holds no readable certificate"),
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
        server_context(*(PemFile(name, path) for name, path in zip(("CERT", "KEY", "CA"), paths, strict=True)))
    assert refused.value.path == (named,)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
