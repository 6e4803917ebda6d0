"""The address of a pod behind a forwarded port, as the pod speaks there."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hascheduler.demo.kubernetes.kubectl import Kubectl
from hascheduler.demo.kubernetes.pods import Pods, PortForwards
from tests.system.processes import eventually


class ForwardingKubectl:
    """Its output stops after the first line, and ends never."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, ...]] = []

    @asynccontextmanager
    async def follow(self, *call: str) -> AsyncIterator[asyncio.StreamReader]:
        self.calls.append(call)
        output = asyncio.StreamReader()
        output.feed_data(b"Forwarding from 127.0.0.1:4321 -> 8080\n")
        yield output


async def _are_there(forwards: PortForwards) -> bool:
    return bool(forwards.urls)


@pytest.mark.parametrize(("https", "url"), [(False, "http://127.0.0.1:4321"), (True, "https://127.0.0.1:4321")])
async def test_a_forwarded_port_is_asked_in_the_pods_own_scheme(*, https: bool, url: str) -> None:
    kubectl = ForwardingKubectl()
    pod: Any = SimpleNamespace(uid="1", name="scheduler-1", serves=True)
    pods: Any = SimpleNamespace(of=lambda _: [pod])
    forwards = PortForwards(cast("Kubectl", kubectl), cast("Pods", pods), 8080, https=https)
    keeping = asyncio.create_task(forwards.keep_open())
    try:
        await eventually(lambda: _are_there(forwards), "it is forwarded")
        assert forwards.urls == {"scheduler-1": url}
        assert kubectl.calls == [("port-forward", "pod/scheduler-1", ":8080", "--address", "127.0.0.1")]
    finally:
        keeping.cancel()
        await asyncio.wait([keeping])
