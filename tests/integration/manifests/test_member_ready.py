"""The readiness probe of MongoDB's pods, on a real mongod."""

import asyncio
from pathlib import Path

import pytest
from pymongo.uri_parser import parse_uri

from tests.integration.mongods import mongod
from tests.manifests.rendering import ROOT

_PROBE = ROOT / "k8s/base/mongodb/member-ready"


async def _probe(port: int) -> int:
    child = await asyncio.create_subprocess_exec(
        "bash", str(_PROBE), str(port), stderr=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL
    )
    return await asyncio.wait_for(child.wait(), 20)


async def test_a_primary_is_ready(mongodb_uri: str) -> None:
    [(host, port)] = parse_uri(mongodb_uri)["nodelist"]
    if host not in ("127.0.0.1", "localhost"):
        pytest.skip("the probe asks its own machine")
    assert await _probe(port) == 0


async def test_a_member_of_no_replica_set_is_not_ready(tmp_path: Path) -> None:
    async with mongod(tmp_path, "--replSet", "rs0") as port:
        assert await _probe(port) == 1
