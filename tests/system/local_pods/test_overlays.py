"""The overlays, applied: they come up, stay confined, and go on whatever pod is lost, the primary's disk included."""

import asyncio
import os
import re
import signal
import ssl
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pymongo import AsyncMongoClient
from pymongo.errors import PyMongoError

from hascheduler.demo.kubernetes import KILL_SCRIPT
from tests.manifests.making import make_secrets
from tests.manifests.objects import Objects
from tests.manifests.rendering import KIND, PRODUCTION, render, rendered
from tests.system.local_pods.client import Client
from tests.system.local_pods.cluster import Cluster
from tests.system.local_pods.conftest import Apply
from tests.system.local_pods.kubelet import REPOSITORY, Pod, update_volume
from tests.system.processes import eventually

pytestmark = [pytest.mark.usefixtures("able"), pytest.mark.timeout(420)]
READY_LIMIT_S = 150


async def test_sigterm_ends_it_before_anything_is_there_that_takes_care_of_signals() -> None:
    process = await asyncio.create_subprocess_exec(
        *("unshare", "--pid", "--fork", "--kill-child=KILL", "--", sys.executable, "-c"),
        "from hascheduler.cli.setting_options import exit_on_sigterm; exit_on_sigterm();"
        "print('on', flush=True); import time; time.sleep(600)",
        stdout=asyncio.subprocess.PIPE,
        cwd=REPOSITORY,
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"on\n"
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()  # noqa: ASYNC240  # of the kernel
    os.kill(int(children), signal.SIGTERM)
    assert await asyncio.wait_for(process.wait(), 30) == 128 + signal.SIGTERM


async def test_it_comes_up_and_goes_on_whatever_pod_is_lost(apply: Apply) -> None:
    cluster = await apply(rendered(KIND).copy())
    await cluster.all_ready(READY_LIMIT_S)
    # Nobody was restarted, however long it had to wait for the others.
    assert not [pod.said for pod in _all(cluster) if pod.said], cluster.describe()
    await _confined(cluster)
    client = Client(cluster)
    try:
        await _leaders_lost(cluster, client)
        await _servers_lost(cluster, client)
        await _bootstrapped_again(cluster, client)
    finally:
        await client.close()


def _all(cluster: Cluster) -> list[Pod]:
    return [
        pod for name in ("bootstrap", "mongodb", "rabbitmq", "scheduler", "processor") for pod in cluster.pods(name)
    ]


async def _confined(cluster: Cluster) -> None:
    """The rehearsal is as strict as a kubelet: no root, no capability, nothing to write but volumes."""
    for component, uid, may_write in (
        ("scheduler", 10001, "none"),
        ("processor", 10001, "/tmp"),
        ("mongodb", 999, "/data/db"),
    ):
        [container, *_] = [pod.container for pod in cluster.pods(component)]
        _, said = await container.execute(["cat", "/proc/self/status"], 10)
        status = {name: value.split() for name, _, value in (line.partition(":") for line in said.splitlines())}
        assert status["Uid"] == [str(uid)] * 4
        assert {int(status[name][0], 16) for name in ("CapEff", "CapPrm", "CapBnd", "CapInh")} == {0}
        assert status["NoNewPrivs"] == ["1"]
        for folder in ("/", "/tmp", "/run", "/etc", "/data/db", "/run/secrets/hascheduler"):
            wrote, _ = await container.execute(["touch", f"{folder}/mine"], 10)
            assert (wrote == 0) is (folder == may_write), f"{component}: {folder}"


async def _leaders_lost(cluster: Cluster, client: Client) -> None:
    await client.begin("leaders")
    await client.fires("leaders")
    leader, term = await client.leader()
    for pod in cluster.pods("scheduler"):
        assert await client.status(pod, "/readyz") == 200
        assert await client.status(pod, "/leaderz") == (200 if pod is leader else 503)
    for pod in (*cluster.pods("scheduler"), *cluster.pods("processor")):
        assert await client.status(pod, "/metrics") == 200
    # `kubectl delete pod`: it hands over, and ends by itself within its grace.
    await cluster.delete(leader)
    assert (leader.said, leader.container.exit_codes) == ([], [0])
    leader, term = await client.leader(not_in_term=term)
    await client.fires("leaders")
    # A kill -9 from inside, as the demo does it: the container starts again in the same pod.
    await leader.container.execute(["sh", "-c", KILL_SCRIPT], 10)
    killed, (_, term) = leader, await client.leader(not_in_term=term)
    await client.fires("leaders")
    await cluster.all_ready(READY_LIMIT_S)
    assert killed.restarts == 1
    # And a processor, while jobs run.
    processor = cluster.pods("processor")[0]
    await cluster.delete(processor)
    assert (processor.said, processor.container.exit_codes) == ([], [0])
    await client.fires("leaders")
    await client.finish("leaders")
    client.assert_all_fired("leaders", once=True)
    await cluster.all_ready(READY_LIMIT_S)


async def _servers_lost(cluster: Cluster, client: Client) -> None:
    """Work goes on with both pods new, at other addresses, with the data that they had."""
    await client.begin("servers")
    await client.fires("servers")
    for component in ("rabbitmq", "mongodb"):
        [pod] = cluster.pods(component)
        await cluster.delete(pod)
        assert pod.said == [], cluster.describe()
        await cluster.all_ready(READY_LIMIT_S)
        await client.fires("servers")
    await client.finish("servers")
    # An attempt whose end could not be written is lost, and another made.
    client.assert_all_fired("servers", once=False)
    restarted = [pod.name for pod in _all(cluster) if pod.restarts and not pod.name.startswith("scheduler")]
    assert restarted == [], cluster.describe()


async def _bootstrapped_again(cluster: Cluster, client: Client) -> None:
    [pod] = cluster.pods("bootstrap")
    await cluster.delete(pod)
    await cluster.all_ready(READY_LIMIT_S)
    [pod] = cluster.pods("bootstrap")
    assert '"scheduler":"unchanged","processor":"unchanged","admin":"unchanged"' in pod.containers[0].log.read_text()


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
        return all("fallback_started" in pod.log for pod in cluster.pods("processor"))

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
