"""The command on a real database: what it prints, and its status."""

import json

from tests.integration.check.healthy import Healthy
from tests.unit.check.test_command import run


async def test_a_healthy_database_is_status_0_and_a_broken_one_status_1(mongodb_uri: str, healthy: Healthy) -> None:
    name = healthy.database.name
    ended = run(name, "--mongodb-uri", mongodb_uri)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("no problems found; ")
    await healthy.database.jobs.insert_one(healthy.job("job:[red]x", "sleeping"))
    ended = run(name, "--mongodb-uri", mongodb_uri)
    assert ended.returncode == 1
    # Such a document may hold markup.
    assert "unknown_state  jobs/job:[red]x" in ended.stdout
    assert "→ it neither runs nor ends" in ended.stdout
    assert "unknown_state 1; " in ended.stdout
    ended = run(name, "--mongodb-uri", mongodb_uri, "--json")
    assert ended.returncode == 1
    answer = json.loads(ended.stdout)
    assert (answer["database"], answer["counts"], answer["complete"]) == (name, {"unknown_state": 1}, True)
    [finding] = answer["findings"]
    assert set(finding) == {"kind", "document", "what", "since", "hint"}
    assert (finding["kind"], finding["document"]) == ("unknown_state", "jobs/job:[red]x")
