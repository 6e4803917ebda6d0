"""MongoDB and the broker over TLS: what the settings name is what is trusted and shown."""

from collections.abc import AsyncIterator

import pytest
from pymongo.errors import ServerSelectionTimeoutError

from hascheduler.errors import StoreUnavailable, Unreachable
from hascheduler.mongo.connection import connect, tls_options
from hascheduler.mongo.unreachable import explained
from tests.integration.mongods import mongod
from tests.unit.tls.certificates import Authority


@pytest.fixture(scope="module")
async def secured(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    """The URI of a mongod that speaks TLS only, to those who show a certificate of the authority."""
    files = ("--tlsCertificateKeyFile", authority.issue("mongod").both, "--tlsCAFile", authority.cert)
    async with mongod(tmp_path_factory.mktemp("mongod"), "--tlsMode", "requireTLS", *files) as port:
        yield f"mongodb://127.0.0.1:{port}/?directConnection=true"


async def test_a_mongod_that_demands_tls_and_a_certificate_is_reached(secured: str, authority: Authority) -> None:
    own = authority.issue("replica").both
    async with connect(secured, tls_ca_file=authority.cert, tls_cert_file=own) as client:
        assert (await client.admin.command("ping"))["ok"] == 1


@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
async def test_it_is_not_reached_without_one_or_where_it_is_not_trusted(
    secured: str, authority: Authority, stranger: Authority
) -> None:
    own = authority.issue("replica").both
    for ca, cert in ((authority.cert, ""), (stranger.cert, own), (authority.cert, stranger.issue("replica").both)):
        async with connect(f"{secured}&serverSelectionTimeoutMS=500", tls_ca_file=ca, tls_cert_file=cert) as client:
            with pytest.raises(ServerSelectionTimeoutError):
                await client.admin.command("ping")


async def test_the_cause_of_a_failure_is_looked_for_over_tls_too(secured: str, authority: Authority) -> None:
    """Else it would be said to take no TLS."""
    tls = tls_options(authority.cert, authority.issue("replica").both)
    with pytest.raises(Unreachable, match="is not a member of a replica set"):
        await explained(_fails, secured, tls)


async def _fails() -> None:
    raise StoreUnavailable("no answer")
