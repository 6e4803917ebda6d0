"""``hascheduler demo --kubernetes`` against a cluster's double with real processes: its story, its verdict, its end."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from tests.manifests.making import make_secrets
from tests.system.demo.cluster_double import TOKEN, ClusterDouble, open_cluster
from tests.unit.cli.terminal import hear_ctrl_c

_SECONDS = 250


@pytest.fixture
def environment(mongodb_uri: str, database_name: str) -> dict[str, str]:
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("HASCHEDULER_")},
        "HASCHEDULER_MONGODB_URI": mongodb_uri,
        "HASCHEDULER_DATABASE": database_name,
        "HASCHEDULER_TRANSPORT": "mongo",
        "HASCHEDULER_AUTH": "tokens",
        "HASCHEDULER_ADMIN_TOKEN": TOKEN,
        "HASCHEDULER_LOG_FORMAT": "json",
        "HASCHEDULER_DRAIN_GRACE": "2s",
        "HASCHEDULER_HEARTBEAT_INTERVAL": "400ms",
        "HASCHEDULER_HEARTBEAT_TIMEOUT": "2s",
    }


@pytest.fixture
async def cluster(tmp_path: Path, environment: dict[str, str]) -> AsyncIterator[ClusterDouble]:
    async with open_cluster(ClusterDouble(tmp_path, environment)) as opened:
        yield opened


async def _start(cluster: ClusterDouble, *arguments: str) -> asyncio.subprocess.Process:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HASCHEDULER_")}
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "hascheduler", "demo", "--kubernetes", "--pause", "1s"),
        *("--folder", str(cluster.folder / "demo"), *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        preexec_fn=hear_ctrl_c,  # nothing that a thread may hold is touched
        env={**clean, **cluster.variables, "COLUMNS": "120"},
    )


async def _schedules(cluster: ClusterDouble) -> list[str]:
    port = next(pod.http_port for pod in cluster.pods.values() if pod.component == "scheduler" and pod.ready)
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}) as http:
        answer = await http.get(f"http://127.0.0.1:{port}/v1/schedules?limit=200")
    return [item["name"] for item in answer.json()["items"]]


async def test_every_way_to_lose_a_leader_loses_and_doubles_nothing(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    made = make_secrets(tmp_path / "secrets", TLS="no", CERTIFICATES="yes")
    # Followed logs end in the middle, as they do behind proxies.
    double = ClusterDouble(tmp_path, environment, tls=made / "hascheduler-tls", break_off=150)
    async with open_cluster(double) as cluster:
        process = await _start(cluster, "--kills", "3")
        try:
            async with asyncio.timeout(_SECONDS):
                shown = (await process.communicate())[0].decode()
        finally:
            if process.returncode is None:
                process.kill()
    assert process.returncode == 0, shown
    assert "Nothing missed, nothing doubled." in shown
    for line in ("kill -9 inside scheduler-", "kubectl delete pod scheduler-", "kubectl delete pod --force scheduler-"):
        assert line in shown
    assert "kubectl delete pod --force processor-" in shown
    assert shown.count("first decision after") == 3
    assert "without a line" not in shown, "the pod that was deleted by force did not take its log along"
    assert "is not deleted" not in shown
    assert TOKEN not in shown


async def test_ctrl_c_leaves_no_schedule_behind(cluster: ClusterDouble) -> None:
    process = await _start(cluster)
    assert process.stdout is not None
    try:
        async with asyncio.timeout(_SECONDS):
            while b"schedules over HTTP" not in (line := await process.stdout.readline()):
                assert line, "it ended before it began"
            assert len(await _schedules(cluster)) > 30
            process.send_signal(signal.SIGINT)
            rest = (await process.communicate())[0].decode()
    finally:
        if process.returncode is None:
            process.kill()
    assert (process.returncode, await _schedules(cluster)) == (130, []), rest
