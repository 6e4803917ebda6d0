"""Server-side JavaScript: whoever may read a collection could run programs in mongod, so it is off everywhere."""

from pathlib import Path

import pytest
import yaml
from pymongo import AsyncMongoClient
from pymongo.errors import OperationFailure

from hascheduler.embedded.children import free_port, start_child
from hascheduler.embedded.mongod import find_mongod, start_mongod
from tests.kubernetes.rendering import EXTERNAL, ROOT, VARIANTS, rendered

_SCRIPT = "function() { return true }"
SCRIPTS = (
    {"find": "jobs", "filter": {"$where": _SCRIPT}},
    {"find": "jobs", "filter": {"$expr": {"$function": {"body": _SCRIPT, "args": [], "lang": "js"}}}},
    {"mapReduce": "jobs", "map": _SCRIPT, "reduce": _SCRIPT, "out": {"inline": 1}},
)


def _configurations() -> list[tuple[str, dict[str, object]]]:
    return [
        (folder, yaml.safe_load(rendered(folder).get("ConfigMap", "mongodb-config")["data"]["mongod.conf"]))
        for folder in VARIANTS
        if folder != EXTERNAL  # somebody else's servers
    ]


def test_it_is_off_in_every_configuration_that_is_ours() -> None:
    for folder, configuration in _configurations():
        assert configuration["security"]["javascriptEnabled"] is False, folder  # type: ignore[index]


async def _refuses_scripts(uri: str) -> None:
    async with AsyncMongoClient[dict[str, object]](uri, directConnection=True) as client:
        await client.hascheduler.jobs.find_one({})
        for script in SCRIPTS:
            with pytest.raises(OperationFailure, match=r"(?i)javascript|scripting|ScriptEngine"):
                await client.hascheduler.command(script)


@pytest.mark.real
async def test_the_embedded_server_runs_no_scripts(tmp_path: Path) -> None:
    async with start_mongod(tmp_path) as mongod:
        async with AsyncMongoClient[dict[str, object]](mongod.uri) as client:
            await client.hascheduler.jobs.insert_one({})
        await _refuses_scripts(mongod.uri)


@pytest.mark.real
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


def test_nothing_of_ours_asks_for_scripts() -> None:
    words = ("$where", "$function", "$accumulator", "mapReduce", "map_reduce", "bson.Code", "system.js")
    found = {
        (path.name, word)
        for folder in ("hascheduler", "processors")
        for path in (ROOT / folder).rglob("*.py")
        for word in words
        if word in path.read_text() and path.name != "database_roles.py"  # which says that they are off
    }
    assert found == set()
