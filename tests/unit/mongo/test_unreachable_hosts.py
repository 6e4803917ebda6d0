"""Hosts without an address are reported at once, even where the resolver says nothing."""

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from hascheduler.errors import Unreachable
from hascheduler.mongo import unreachable
from hascheduler.mongo.unreachable import explained

_SILENT = "silent.invalid"


@pytest.fixture
def resolver(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Says nothing about one host until the test is over, knows `here`, and no other."""
    is_over = threading.Event()

    def getaddrinfo(host: str, port: Any, *_: Any, **__: Any) -> list[Any]:
        if host == _SILENT:
            is_over.wait()
        if host != "here":
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 1))]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    yield
    is_over.set()
    for thread in threading.enumerate():
        if thread.name.startswith("look up "):
            thread.join()


@pytest.mark.parametrize(
    ("hosts", "told"),
    [
        (_SILENT, "the host 'silent.invalid' can't be looked up: no answer; expected a resolver that answers"),
        ("a.invalid,b.invalid", "there is no address for the host 'a.invalid', 'b.invalid'; expected the name of"),
        (f"a.invalid,{_SILENT}", "for the host 'a.invalid'; the host 'silent.invalid' can't be looked up"),
    ],
)
async def test_without_an_address_the_database_is_not_tried(
    monkeypatch: pytest.MonkeyPatch, resolver: None, hosts: str, told: str
) -> None:
    """What the driver begins to look up, it waits for at the end, however long that takes."""
    if _SILENT in hosts:
        monkeypatch.setattr(unreachable, "_ANSWER_LIMIT_S", 0.05)
    tried = []

    async def doing() -> None:
        tried.append(1)

    with pytest.raises(Unreachable, match=told):
        await explained(doing, f"mongodb://{hosts}/?replicaSet=rs0", {})
    assert tried == []


async def test_one_host_with_an_address_is_enough_to_try(monkeypatch: pytest.MonkeyPatch, resolver: None) -> None:
    tried = []

    async def doing() -> None:
        tried.append(1)

    async def asked_nobody(*_: Any) -> None:
        """A connection that is refused would be left to the collector."""

    monkeypatch.setattr(unreachable, "_look", asked_nobody)
    await explained(doing, "mongodb://a.invalid,here/?replicaSet=rs0", {})
    assert tried == [1]
