"""What MongoDB's driver and the broker's client make of the settings of TLS."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hascheduler.assembly_replica import broker_tls
from hascheduler.errors import BrokerUnavailable, InvalidInput
from hascheduler.mongo.connection import connect
from hascheduler.rabbitmq.connection import BrokerConnection
from hascheduler.settings import read_settings
from hascheduler.tls import PemFile, client_context, server_context
from tests.unit.tls.certificates import Authority


@pytest.mark.parametrize(("ca", "cert", "named"), [("none", "", "CA_FILE"), ("", "none", "CERT_FILE")])
def test_a_file_that_mongodb_could_not_be_told_of_is_named(tmp_path: Path, ca: str, cert: str, named: str) -> None:
    paths = {"tls_ca_file": ca and str(tmp_path / ca), "tls_cert_file": cert and str(tmp_path / cert)}
    with pytest.raises(InvalidInput) as refused:
        connect("mongodb://user:hunter2@127.0.0.1:1/", **paths)
    assert refused.value.path == (f"HASCHEDULER_MONGODB_TLS_{named}",)
    assert "hunter2" not in str(refused.value)


@asynccontextmanager
async def listening(context: ssl.SSLContext) -> AsyncIterator[tuple[int, "asyncio.Queue[tuple[object, bytes]]"]]:
    """A port, and for each client that shook hands: its certificate, and how it began to speak."""
    met: asyncio.Queue[tuple[object, bytes]] = asyncio.Queue()

    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        met.put_nowait((writer.get_extra_info("peercert"), await reader.readexactly(4)))
        writer.close()

    server = await asyncio.start_server(meet, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1], met


def of_broker(authority: Authority) -> ssl.SSLContext:
    issued = authority.issue("broker")
    return server_context(PemFile("C", issued.cert), PemFile("K", issued.key), PemFile("A", authority.cert))


async def test_the_broker_is_shown_the_certificate_that_the_settings_name(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = authority.issue("replica")
    for name, value in (
        ("AMQP_URL", "amqps://guest:guest@127.0.0.1/"), ("AMQP_TLS_CA_FILE", authority.cert),
        ("AMQP_TLS_CERT_FILE", own.cert), ("AMQP_TLS_KEY_FILE", own.key),
    ):  # fmt: skip
        monkeypatch.setenv(f"HASCHEDULER_{name}", value)
    tls = broker_tls(read_settings())
    async with listening(of_broker(authority)) as (port, met):
        with pytest.raises(BrokerUnavailable):
            async with BrokerConnection(f"amqps://guest:guest@127.0.0.1:{port}/", "test", tls).session():
                pass
        certificate, spoken = met.get_nowait()
    assert "replica" in str(certificate)
    assert spoken == b"AMQP"


async def test_a_broker_that_is_not_trusted_is_told_nothing(authority: Authority, stranger: Authority) -> None:
    own = authority.issue("replica")
    tls = client_context(PemFile("A", stranger.cert), PemFile("C", own.cert), PemFile("K", own.key))
    async with listening(of_broker(authority)) as (port, met):
        for context in (tls, None):
            with pytest.raises(BrokerUnavailable):
                async with BrokerConnection(f"amqps://guest:guest@127.0.0.1:{port}/", "test", context).session():
                    pass
        assert met.empty()
