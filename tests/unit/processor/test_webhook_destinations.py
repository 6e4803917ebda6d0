"""Where webhooks may go: no address that was not checked is ever connected to, whatever leads there."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence
from ipaddress import ip_address, ip_network
from typing import Any

import pytest

from hascheduler.errors import InvalidInput
from hascheduler.handlers.webhook import (
    ALLOW,
    ALLOW_PRIVATE,
    Address,
    Destinations,
    Resolve,
    WebhookRefused,
    WebhookUndelivered,
    deliver,
    resolved,
    special_kind,
)
from tests.unit.processor.ready_made import error_of, make_job, result_of
from tests.unit.processor.receiver import Receiver, answer, receiving

LOOPBACK = Destinations(networks=(ip_network("127.0.0.1/32"),))


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as receiver:
        yield receiver


async def send(
    url: str, destinations: Destinations = LOOPBACK, resolve: Resolve = resolved, **payload: Any
) -> dict[str, Any]:
    return await deliver(make_job({"url": url, **payload}), destinations, resolve)


class Names:
    """A DNS of the test's own, which answers each question with the next of its answers."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> list[Address]:
        self.asked.append(host)
        return [ip_address(text) for text in self._answers.pop(0)]


@pytest.mark.parametrize(
    ("kind", "addresses"),
    [
        ("unspecified", "0.0.0.0 0.1.2.3 ::"),
        ("private", "10.1.2.3 172.16.0.1 172.31.255.255 192.168.0.1 64:ff9b::10.0.0.1 2002:c0a8:1::1"),
        ("private", "fc00::1 fd12:3456::1 fd00:ec2::254"),
        ("carrier-grade NAT", "100.64.0.1 100.127.255.255"),
        ("loopback", "127.0.0.1 127.255.255.254 ::1 ::ffff:127.0.0.1 2002:7f00:1::"),
        ("the platform's own (Azure)", "168.63.129.16"),
        ("link-local", "169.254.169.254 ::ffff:169.254.169.254 fe80::1"),
        ("reserved", "192.0.0.192 240.0.0.1 4000::1 5f00::1"),
        ("documentation", "192.0.2.1 203.0.113.7 2001:db8::1"),
        ("6to4 relay", "192.88.99.1"),
        ("benchmarking", "198.19.255.255"),
        ("multicast", "224.0.0.1 239.255.255.255 ff02::1"),
        ("broadcast", "255.255.255.255"),
        ("IPv4-compatible", "::7f00:1"),
        ("NAT64 of a private network", "64:ff9b:1::1"),
        ("Teredo", "2001::1"),
        ("discard-only", "100::1"),
        ("site-local", "fec0::1"),
        (None, "8.8.8.8 100.63.255.255 100.128.0.1 172.32.0.1 192.167.255.255 223.255.255.255"),
        (None, "2606:4700:4700::1111 ::ffff:8.8.8.8 64:ff9b::8.8.8.8 2002:808:808::1"),
    ],
)
def test_only_what_is_of_the_public_internet_counts_as_public(kind: str | None, addresses: str) -> None:
    assert {special_kind(ip_address(text)) for text in addresses.split()} == {kind}


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "127.1", "2130706433", "0x7f.1", "0177.1", "0.0.0.0", "10.0.0.1", "169.254.169.254"),
        *("[::1]", "[::]", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[fd00::1]", "localhost"),
        "LOCALHOST",
    ],
)
async def test_no_way_of_writing_a_private_address_gets_through(receiver: Receiver, host: str) -> None:
    with pytest.raises(InvalidInput, match=r"^payload\.url: .*is not allowed; expected a public address, or one that"):
        await send(receiver.url(host=host), Destinations())
    assert receiver.requests == []


@pytest.mark.parametrize(
    ("private", "host", "through"),
    [
        ("127.0.0.0/8", "127.0.0.1", True),
        ("10.0.0.0/8, 127.0.0.1", "localhost", True),
        ("127.0.0.0/8", "[::ffff:127.0.0.1]", True),
        ("127.0.0.2/32", "127.0.0.1", False),
        ("::/0", "127.0.0.1", False),
        ("", "127.0.0.1", False),
    ],
)
async def test_the_networks_of_the_setting_are_let_through_and_no_others(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, private: str, host: str, through: bool
) -> None:
    monkeypatch.setenv(ALLOW_PRIVATE, private)
    payload = {"url": receiver.url(host=host)}
    if through:
        assert (await result_of("webhook", payload))["status"] == 200
    else:
        assert "(loopback), which is not allowed" in await error_of("webhook", payload)
        assert receiver.requests == []


@pytest.mark.parametrize(
    ("allow", "host", "through"),
    [
        ("", "a.example.com", True),
        ("*", "a.example.com", True),
        ("example.com", "example.com", True),
        ("example.com", "EXAMPLE.com.", True),
        ("Example.COM.", "example.com", True),
        ("other.net, *.example.com", "a.b.example.com", True),
        ("*.example.com", "example.com", False),
        ("*.example.com", "evilexample.com", False),
        ("example.com", "a.example.com", False),
        ("example.com", "example.com.evil.net", False),
        ("127.0.0.1", "127.0.0.1", True),
    ],
)
async def test_the_list_of_hosts_is_asked_before_the_name_is_resolved(
    receiver: Receiver, allow: str, host: str, through: bool
) -> None:
    destinations = Destinations.of_environment({ALLOW: allow, ALLOW_PRIVATE: "127.0.0.1/32"})
    names = Names(["127.0.0.1"])
    if through:
        assert (await send(receiver.url(host=host), destinations, names))["status"] == 200
    else:
        with pytest.raises(InvalidInput, match=rf"^payload\.url: the host '{host}' is not allowed; expected .*{ALLOW}"):
            await send(receiver.url(host=host), destinations, names)
        assert names.asked == []


async def test_a_name_is_resolved_once_and_the_connection_goes_to_that_answer(receiver: Receiver) -> None:
    names = Names(["127.0.0.1"], ["169.254.169.254"])
    await send(receiver.url("/a", host="rebind.test"), resolve=names)
    assert names.asked == ["rebind.test"]
    assert receiver.requests[0].headers["host"] == f"rebind.test:{receiver.port}"


async def test_of_several_addresses_only_allowed_ones_are_tried_in_order(receiver: Receiver) -> None:
    # Nobody listens on 127.0.0.2; 10.0.0.1 would hang or answer, so an attempt on it shows.
    destinations = Destinations(networks=(ip_network("127.0.0.0/30"),))
    names = Names(["10.0.0.1", "127.0.0.2", "127.0.0.1"])
    assert (await send(receiver.url(host="many.test"), destinations, names))["status"] == 200


async def test_a_name_without_an_address_may_have_one_later() -> None:
    with pytest.raises(WebhookUndelivered, match=r"'none\.test' has no address"):
        await send("http://none.test/", resolve=Names([]))
    with pytest.raises(WebhookUndelivered, match="can't be resolved"):
        await send(f"http://{'x' * 64}.test/")  # a label that long is refused without asking anybody


async def test_tls_names_the_server_and_not_the_address() -> None:
    named: list[str | None] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.sni_callback = lambda _socket, name, _context: named.append(name)

    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Reads the first flight; without a certificate the handshake can't go on, and need not."""
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(incoming, outgoing, server_side=True)
        incoming.write(await reader.read(65_536))
        with pytest.raises(ssl.SSLError):
            tls.do_handshake()
        writer.close()

    server = await asyncio.start_server(served, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        with pytest.raises(WebhookUndelivered):
            await send(f"https://Name.Test:{port}/", resolve=Names(["127.0.0.1"]))
    finally:
        server.close()
    assert named == ["name.test"]


async def test_a_redirect_is_an_answer_and_is_not_followed(receiver: Receiver) -> None:
    receiver.answers["/"] = answer(302, Location="/next")
    with pytest.raises(WebhookRefused, match="answered 302"):
        await send(receiver.url())
    assert (await send(receiver.url(), expect=[302]))["headers"]["location"] == "/next"
    assert [request.path for request in receiver.requests] == ["/", "/"]
