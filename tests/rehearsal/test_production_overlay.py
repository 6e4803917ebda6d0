"""The production overlay with fresh secrets: three members become one set, which goes on without its primary."""

from base64 import b64encode
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pymongo import AsyncMongoClient
from pymongo.errors import PyMongoError

from tests.bootstrap.deployment import done
from tests.integration.processes import eventually
from tests.kubernetes.objects import Object, Objects
from tests.kubernetes.rendering import PRODUCTION, rendered
from tests.rehearsal.client import Client
from tests.rehearsal.cluster import Cluster
from tests.rehearsal.conftest import Apply
from tests.rehearsal.pod import Pod

pytestmark = [pytest.mark.real, pytest.mark.timeout(420)]

READY_LIMIT_S = 150


async def test_three_members_carry_on_whichever_is_lost(apply: Apply, tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    await done("secrets", "--out", str(folder))
    objects = rendered(PRODUCTION).copy()
    cluster = await apply(Objects([*objects.all, *_secrets(folder)]))
    await cluster.all_ready(READY_LIMIT_S)
    client = Client(cluster)
    try:
        await client.begin("tick")
        await client.fires("tick")
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
        cluster.run_again("bootstrap")
        await cluster.all_ready(READY_LIMIT_S)
        await client.finish("tick")
        client.assert_all_fired("tick", once=False)
    finally:
        await client.close()


def _secrets(folder: Path) -> list[Object]:
    """As the printed `kubectl create secret generic … --from-file` makes them."""
    return [
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": secret.name, "namespace": "hascheduler"},
            "data": {file.name: b64encode(file.read_bytes()).decode() for file in secret.iterdir()},
        }
        for secret in folder.iterdir()
    ]


async def _primary(cluster: Cluster, secrets: Path) -> Pod:
    password = (secrets / "hascheduler-mongodb/admin-password").read_text()

    async def look() -> Pod | None:
        for pod in cluster.pods("mongodb"):
            uri = f"mongodb://admin:{password}@{pod.link.ip}/?directConnection=true&serverSelectionTimeoutMS=2000"
            with suppress(PyMongoError):
                async with AsyncMongoClient[dict[str, Any]](uri) as member:
                    if (await member.admin.command("hello"))["isWritablePrimary"]:
                        return pod
        return None

    return await eventually(look, "a primary", 60)
