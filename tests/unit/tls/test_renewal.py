"""A replica's certificate ends after a year or a month; its connections, and its term, need not."""

import asyncio
import os
import shutil
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from hascheduler.api.edge import Edge
from hascheduler.errors import InvalidInput
from hascheduler.tls import PemFile, ServedCertificates, client_context
from tests.unit.api.doubles import World, app_of
from tests.unit.tls.certificates import Authority, Issued
from tests.unit.tls.test_https import served

NONE = PemFile("NONE", "")


@pytest.fixture(scope="module")
def app() -> Edge:
    return app_of(World())


class Mounted:
    """A Secret as a kubelet mounts it: an update turns one link, and both files are others at once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._number = 0
        self.cert, self.key = (PemFile(name.upper(), str(folder / "..data" / f"tls.{name}")) for name in ("crt", "key"))

    def put(self, cert: str, key: str) -> None:
        self._number += 1
        inner = self._folder / f"..{self._number}"
        inner.mkdir()
        shutil.copy(cert, inner / "tls.crt")
        shutil.copy(key, inner / "tls.key")
        (self._folder / "new").symlink_to(inner.name)
        os.replace(self._folder / "new", self._folder / "..data")

    def served(self) -> ServedCertificates:
        return ServedCertificates(self.cert, self.key, NONE)


@pytest.fixture
def mounted(tmp_path: Path) -> Mounted:
    return Mounted(tmp_path)


def _issue(authority: Authority, name: str) -> Issued:
    return authority.issue(name, "IP:127.0.0.1")


@asynccontextmanager
async def connected(url: str, authority: Authority) -> AsyncIterator[httpx2.AsyncClient]:
    context = client_context(PemFile("CA", authority.cert), NONE, NONE)
    async with httpx2.AsyncClient(base_url=url, verify=context) as client:
        yield client


async def _shown(url: str) -> str:
    host, _, port = url.removeprefix("https://").partition(":")
    return await asyncio.to_thread(ssl.get_server_certificate, (host, int(port)))


def _is(shown: str, issued: Issued) -> bool:
    return ssl.PEM_cert_to_DER_cert(shown) == ssl.PEM_cert_to_DER_cert(Path(issued.cert).read_text())


async def test_a_new_connection_is_shown_the_new_certificate_and_the_old_one_goes_on(
    app: Edge, authority: Authority, mounted: Mounted
) -> None:
    first, second = _issue(authority, "first"), _issue(authority, "second")
    mounted.put(first.cert, first.key)
    certificates = mounted.served()
    async with served(app, certificates.context) as url, connected(url, authority) as kept:
        assert (await kept.get("/livez")).status_code == 200
        assert _is(await _shown(url), first)
        assert certificates.renew() is False
        mounted.put(second.cert, second.key)
        assert certificates.renew() is True
        assert _is(await _shown(url), second)
        answer = await kept.get("/livez")
        assert answer.status_code == 200
        # On the connection that began with the first one.
        stream = answer.extensions["network_stream"]
        assert _is(ssl.DER_cert_to_PEM_cert(stream.get_extra_info("ssl_object").getpeercert(binary_form=True)), first)


async def test_files_are_looked_at_again_and_again(app: Edge, authority: Authority, mounted: Mounted) -> None:
    first, second = _issue(authority, "first"), _issue(authority, "second")
    mounted.put(first.cert, first.key)
    certificates = mounted.served()
    looking = asyncio.create_task(certificates.keep_fresh(0.01))
    try:
        async with served(app, certificates.context) as url:
            assert _is(await _shown(url), first)
            # Neither half of a pair nor what is no certificate stops the looking, or what is served.
            mounted.put(second.cert, first.key)
            assert _is(await _shown(url), first)
            mounted.put(second.cert, second.key)
            async with asyncio.timeout(30):
                while not _is(await _shown(url), second):
                    pass  # each look is a handshake, and lets the other task have its turn
    finally:
        looking.cancel()
        await asyncio.wait([looking])


@pytest.mark.parametrize(("cert", "key"), [("second", "first"), ("first", "second"), ("none", "second")])
async def test_files_that_cannot_be_used_leave_all_as_it_was(
    app: Edge, authority: Authority, mounted: Mounted, *, cert: str, key: str
) -> None:
    issued = {name: _issue(authority, name) for name in ("first", "second")}
    mounted.put(issued["first"].cert, issued["first"].key)
    certificates = mounted.served()
    mounted.put(__file__ if cert == "none" else issued[cert].cert, issued[key].key)
    async with served(app, certificates.context) as url, connected(url, authority) as client:
        with pytest.raises(InvalidInput):
            certificates.renew()
        assert _is(await _shown(url), issued["first"])
        assert (await client.get("/livez")).status_code == 200
        # And what can be used again is.
        mounted.put(issued["second"].cert, issued["second"].key)
        assert certificates.renew() is True
        assert _is(await _shown(url), issued["second"])


def test_clients_of_a_new_authority_get_in_beside_those_of_the_old(
    authority: Authority, stranger: Authority, mounted: Mounted, tmp_path: Path
) -> None:
    own = _issue(authority, "own")
    mounted.put(own.cert, own.key)
    trusted = tmp_path / "clients.pem"
    shutil.copy(authority.cert, trusted)
    certificates = ServedCertificates(mounted.cert, mounted.key, PemFile("CA", str(trusted)))
    assert len(certificates.context.get_ca_certs()) == 1
    trusted.write_text(Path(authority.cert).read_text() + Path(stranger.cert).read_text())
    assert certificates.renew() is True
    assert len(certificates.context.get_ca_certs()) == 2
