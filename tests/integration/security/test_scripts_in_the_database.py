"""Server-side JavaScript: a user who may read a collection could run programs in mongod, so it is off everywhere."""

from pathlib import Path

import pytest
import yaml
from pymongo import AsyncMongoClient
from pymongo.errors import OperationFailure

from hascheduler.embedded.children import free_port, start_child
from hascheduler.embedded.servers import find_mongod, start_mongod
from tests.manifests.rendering import ROOT

_SCRIPT = "function() { return true }"
SCRIPTS = (
    {"find": "jobs", "filter": {"$where": _SCRIPT}},
    {"find": "jobs", "filter": {"$expr": {"$function": {"body": _SCRIPT, "args": [], "lang": "js"}}}},
    {"mapReduce": "jobs", "map": _SCRIPT, "reduce": _SCRIPT, "out": {"inline": 1}},
)


async def _refuses_scripts(uri: str) -> None:
    async with AsyncMongoClient[dict[str, object]](uri, directConnection=True) as client:
        await client.hascheduler.jobs.find_one({})
        for script in SCRIPTS:
            with pytest.raises(OperationFailure, match=r"(?i)javascript|scripting|ScriptEngine"):
                await client.hascheduler.command(script)


async def test_the_embedded_server_runs_no_scripts(tmp_path: Path) -> None:
    async with start_mongod(tmp_path) as mongod:
        async with AsyncMongoClient[dict[str, object]](mongod.uri) as client:
            await client.hascheduler.jobs.insert_one({})
        await _refuses_scripts(mongod.uri)


@pytest.mark.parametrize("path", ["k8s/base/mongodb/mongod.conf", "k8s/overlays/trial/mongod.conf"])
async def test_a_server_with_our_configuration_runs_no_scripts(tmp_path: Path, path: str) -> None:
    """With this setting of ours; who asks, and where the data is, is another matter."""
    security = yaml.safe_load((ROOT / path).read_text())["security"]
    configuration = tmp_path / "mongod.conf"
    configuration.write_text(yaml.safe_dump({"security": {"javascriptEnabled": security["javascriptEnabled"]}}))
    port = free_port()
    home = tmp_path / "data"
    home.mkdir()
    arguments = [find_mongod(), "--config", str(configuration), "--dbpath", str(home), "--port", str(port)]
    child = await start_child(
        "mongod",
        [*arguments, "--bind_ip", "127.0.0.1", "--nounixsocket", "--wiredTigerCacheSizeGB", "0.25"],
        tmp_path / "mongod.log",
        environment={},
    )
    try:
        await child.listens(port)
        async with AsyncMongoClient[dict[str, object]]("127.0.0.1", port, directConnection=True) as client:
            await client.hascheduler.jobs.insert_one({})
        await _refuses_scripts(f"mongodb://127.0.0.1:{port}")
    finally:
        await child.stop()
