"""The production overlay with fresh secrets: three members become one set, which goes on without its primary."""

import asyncio
import re
import ssl
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pymongo import AsyncMongoClient
from pymongo.errors import PyMongoError

from tests.manifests.making import make_secrets
from tests.manifests.objects import Objects
from tests.manifests.rendering import PRODUCTION, render, rendered
from tests.system.local_pods.client import Client
from tests.system.local_pods.cluster import Cluster
from tests.system.local_pods.conftest import Apply
from tests.system.local_pods.pod import Pod
from tests.system.local_pods.volumes import update_volume
from tests.system.processes import eventually

pytestmark = [pytest.mark.timeout(420)]

READY_LIMIT_S = 150


async def test_three_members_carry_on_whichever_is_lost(apply: Apply, tmp_path: Path) -> None:
    folder = make_secrets(tmp_path / "secrets")
    objects = rendered(PRODUCTION).copy()
    cluster = await apply(Objects([*objects.all, *render(folder).all]))
    await cluster.all_ready(READY_LIMIT_S)
    client = Client(cluster)
    try:
        await _nothing_is_said_in_plain_text(cluster)
        await _a_new_certificate_is_served(cluster, client, folder)
        await client.begin("tick")
        await client.fires("tick")
        await _the_broker_is_lost(cluster, client)
        primary = await _primary(cluster, folder)
        await cluster.delete(primary)
        assert primary.said == [], cluster.describe()
        await client.fires("tick")
        await cluster.all_ready(READY_LIMIT_S)
        # And one more without its disk: it fetches everything from the others.
        primary = await _primary(cluster, folder)
        lost = next(pod for pod in cluster.pods("mongodb") if pod is not primary)
        await cluster.delete(lost, force=True, with_claims=True)
        await client.fires("tick")
        await cluster.all_ready(READY_LIMIT_S)
        await cluster.delete(cluster.pods("bootstrap")[0])
        await cluster.all_ready(READY_LIMIT_S)
        await client.finish("tick")
        client.assert_all_fired("tick", once=False)
    finally:
        await client.close()


async def _the_broker_is_lost(cluster: Cluster, client: Client) -> None:
    """Its pod goes, and processors find their jobs in MongoDB until another is there."""
    [broker] = cluster.pods("rabbitmq")
    await cluster.delete(broker, force=True)

    async def stand_in() -> bool:
        return all("standing_in_for_the_broker" in pod.log for pod in cluster.pods("processor"))

    await eventually(stand_in, "MongoDB stands in for the broker", 60)
    await client.fires("tick")
    await cluster.all_ready(READY_LIMIT_S)
    await client.fires("tick")


async def _nothing_is_said_in_plain_text(cluster: Cluster) -> None:
    """Who does not speak TLS gets no answer; the commands inside a pod do, and know whom to trust."""
    scheduler = cluster.pods("scheduler")[0]
    status, shown = await scheduler.container.execute(["hascheduler", "cluster", "--json"], 30)
    assert status == 0, shown
    member = cluster.pods("mongodb")[0].container
    for how, is_answered in (([], False), (["tls"], True)):
        status, _ = await member.execute(["bash", "/etc/hascheduler/member-ready", "27017", *how], 30)
        assert (status == 0) is is_answered, how
    for component, port in (("rabbitmq", 5671), ("scheduler", 8080)):
        reader, writer = await asyncio.open_connection(cluster.pods(component)[0].link.ip, port)
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        said = b""
        async with asyncio.timeout(20):
            with suppress(ConnectionError):
                said = await reader.read()
        writer.close()
        # The beginning of what each of them says without TLS; with it, at most an alert.
        assert not re.search(rb"HTTP|AMQP", said), f"{component}: {said!r}"


async def _a_new_certificate_is_served(cluster: Cluster, client: Client, secrets: Path) -> None:
    """As soon as the kubelet has the new files, by the process that runs, in the term that it has."""
    pod, term = await client.leader()
    port = pod.template.ports["http"]
    before = await asyncio.to_thread(ssl.get_server_certificate, (pod.link.ip, port))
    make_secrets(secrets)
    new = {file.name: file.read_bytes() for file in (secrets / "hascheduler-tls").iterdir()}
    update_volume(pod.folder / "volumes" / "tls", new)

    async def is_another() -> bool:
        return await asyncio.to_thread(ssl.get_server_certificate, (pod.link.ip, port)) != before

    await eventually(is_another, "the new certificate is served", 60)
    assert await client.leader() == (pod, term)
    assert not pod.restarts


async def _primary(cluster: Cluster, secrets: Path) -> Pod:
    password = (secrets / "hascheduler-mongodb/admin-password").read_text()

    async def look() -> Pod | None:
        for pod in cluster.pods("mongodb"):
            uri = f"mongodb://admin:{password}@{pod.link.ip}/?directConnection=true&serverSelectionTimeoutMS=2000"
            # Its certificate is for its name, which this machine can't look up.
            uri += f"&tls=true&tlsCAFile={secrets}/authority/ca.crt&tlsAllowInvalidHostnames=true"
            with suppress(PyMongoError):
                async with AsyncMongoClient[dict[str, Any]](uri) as member:
                    if (await member.admin.command("hello"))["isWritablePrimary"]:
                        return pod
        return None

    return await eventually(look, "a primary", 60)
