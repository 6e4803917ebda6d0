"""A cluster for each test, where this machine can be one."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from hascheduler.embedded.servers import find_rabbitmq
from tests.manifests.objects import Objects
from tests.system.local_pods.cluster import Cluster

Apply = Callable[[Objects], Awaitable[Cluster]]


def _lacking() -> str:
    """What this machine lacks; nothing where it can be a cluster."""
    if sys.platform != "linux":
        return "network and mount namespaces (Linux)"
    if os.geteuid() != 0:
        return "root, to make namespaces"
    for program in ("kubectl", "ip", "unshare", "nsenter", "setpriv"):
        if shutil.which(program) is None:
            return program
    if find_rabbitmq() is None:
        return "rabbitmq-server"
    # In a container of its own, root may be one that can't.
    tried = "ip link add reh-try type bridge && ip link delete reh-try && mount -t tmpfs tmpfs /mnt"
    may = subprocess.run(
        ["unshare", "--mount", "--net", "--pid", "--fork", "sh", "-c", tried], capture_output=True, check=False
    )
    return "" if may.returncode == 0 else "the right to make networks and mounts"


@pytest.fixture(scope="session")
def able() -> None:
    lacking = _lacking()
    if lacking:
        pytest.skip(f"this machine lacks {lacking}")


@pytest.fixture
async def apply(able: None) -> AsyncIterator[Apply]:
    async with AsyncExitStack() as clusters:

        async def applied(objects: Objects) -> Cluster:
            # Not in a folder of pytest's: the users of the containers have to get there.
            folder = clusters.enter_context(tempfile.TemporaryDirectory(prefix="hascheduler-rehearsal-"))
            os.chmod(folder, 0o755)  # nothing to wait for
            cluster = Cluster(objects, Path(folder))
            clusters.push_async_callback(cluster.stop)
            await cluster.apply()
            return cluster

        yield applied
