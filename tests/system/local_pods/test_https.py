"""The API speaks HTTPS alone: commands inside the pod work, and who has the authority is answered from outside."""

from pathlib import Path

import pytest

from tests.manifests.making import make_secrets
from tests.manifests.objects import Objects
from tests.manifests.rendering import HTTPS, render, rendered
from tests.system.local_pods.client import Client
from tests.system.local_pods.conftest import Apply

pytestmark = [pytest.mark.timeout(300)]


async def test_commands_inside_the_pod_and_clients_outside_speak_https(apply: Apply, tmp_path: Path) -> None:
    made = make_secrets(tmp_path / "secrets", TLS="no", CERTIFICATES="yes", MEMBERS="mongodb-0.mongodb:27017")
    cluster = await apply(Objects([*rendered(HTTPS).copy().all, *render(made).all]))
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
