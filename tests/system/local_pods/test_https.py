"""The API speaks HTTPS alone: commands inside the pod work, and who has the authority is answered from outside."""

from pathlib import Path

import pytest

from tests.integration.bootstrap.deployment import done
from tests.manifests.objects import Objects
from tests.manifests.rendering import HTTPS, rendered
from tests.system.local_pods.client import Client
from tests.system.local_pods.conftest import Apply
from tests.system.local_pods.volumes import secrets_from

pytestmark = [pytest.mark.timeout(300)]


async def test_commands_inside_the_pod_and_clients_outside_speak_https(apply: Apply, tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    await done("secrets", "--out", str(folder), "--no-tls", "--certificates", "--members", "mongodb-0.mongodb")
    cluster = await apply(Objects([*rendered(HTTPS).copy().all, *secrets_from(folder)]))
    await cluster.all_ready(120)
    client = Client(cluster)
    try:
        leader, _ = await client.leader()
        for pod in cluster.pods("scheduler"):
            status, shown = await pod.container.execute(["hascheduler", "cluster"], 30)
            assert status == 0, shown
            # The name that `kubectl delete pod` takes.
            assert leader.name in shown.split()
        await client.begin("tick")
        await client.fires("tick")
    finally:
        await client.close()
