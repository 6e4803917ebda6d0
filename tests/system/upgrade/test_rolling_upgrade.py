"""A deployment of release 0.2.0 is replaced process by process while jobs run, and its database is migrated."""

import asyncio
import itertools
import json
import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from hascheduler.model.collection import Collection
from hascheduler.mongo.schema.indexes import SUPERSEDED
from tests.system.processes import Processes, environment_of, eventually

pytestmark = [pytest.mark.timeout(600)]

_COMMITS = ("v0.2.0", "f684198")
"""The tag of the release, and the commit that it names, if tags were not fetched."""
ROOT = Path(__file__).resolve().parents[3]
REPLICAS, PROCESSORS = ("one", "two", "three"), ("worker", "helper")
SCHEDULES = {"fast": 250, "steady": 1_000, "also-steady": 1_000}
SUPERSEDED_NAMES = [f"jobs.{name}" for name in SUPERSEDED[Collection.JOBS]]


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """A folder with the packages of 0.2.0, and its tests."""
    into = tmp_path / "release"
    into.mkdir()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    for commit in _COMMITS:
        command = ["git", "-C", str(ROOT), "archive", commit, "hascheduler", "processors", "tests"]
        packed = subprocess.run(command, capture_output=True, check=False, env=environment)
        if not packed.returncode:
            subprocess.run(["tar", "-x", "-C", into], input=packed.stdout, check=True)
            return into
    pytest.skip("release 0.2.0 is taken from git, whose history is not here: git fetch --unshallow --tags")


@dataclass
class Fleet(Processes):
    """`Processes` of 0.2.0 while ``release`` is its folder, and of this code without one."""

    release: Path | None = None
    submitted: list[str] = field(default_factory=list)
    """The ids of the jobs whose submission was acknowledged."""

    @property
    def code(self) -> Path | None:
        return self.release

    async def end(self, *names: str) -> None:
        for name in names:
            assert await (self.replicas | self.processors)[name].terminate(30) == 0

    @asynccontextmanager
    async def load(self) -> AsyncIterator[None]:
        """Meanwhile jobs are submitted, each to the next replica that takes it."""
        enough = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._submit_until(enough))
            yield
            enough.set()

    async def goes_on(self, at_least: int = 5) -> None:
        """Wait until so many more jobs were acknowledged and each schedule has fired again."""
        submitted = len(self.submitted) + at_least
        fired = {name: len(self.nominal_times(name)) for name in SCHEDULES}

        async def enough() -> bool:
            fires = all(len(self.nominal_times(name)) > before for name, before in fired.items())
            return fires and len(self.submitted) >= submitted

        await eventually(enough, f"{at_least} more jobs, and a fire of each schedule")

    async def migrated(self) -> dict[str, Any]:
        status, out, err = await self.command("migrate", "--json")
        assert status == 0, err
        answer: dict[str, Any] = json.loads(out)
        return answer

    async def assert_nothing_was_lost(self) -> None:
        """No nominal time was missed or doubled, each acknowledged job succeeded once, and all could be read."""
        await self.assert_all_fired_once(SCHEDULES, 10)
        jobs = {job["_id"]: job async for job in self.database.jobs.find()}
        assert set(self.submitted) <= set(jobs) == set(self.effects())
        for job in jobs.values():
            succeeded = [attempt for attempt in job["attempts"] if attempt["outcome"] == "succeeded"]
            assert (job["state"], len(succeeded)) == ("succeeded", 1), job
        assert await self.database.verdicts.find_one({}) is None
        for name in REPLICAS:
            errors = (self.folder / f"{name}.err").read_text()
            assert 'quarantined"' not in errors, errors[-2_000:]
            assert "Traceback" not in errors, errors[-2_000:]

    async def _submit_until(self, enough: asyncio.Event) -> None:
        while not enough.is_set():
            self.submitted.append(await self._submit(len(self.submitted)))

    async def _submit(self, number: int) -> str:
        """Its id. Asks the replicas in turn, as a client does that has a list of them; the key makes it one job."""
        body = {"definition": "log", "target": f"submitted-{number % 5}", "payload": {"message": "hello"}}

        async def taken() -> str | None:
            replicas = [replica for replica in self.replicas.values() if replica.running]
            url = replicas[next(turns) % len(replicas)].url
            try:
                answer = await self.http.post(f"{url}/v1/jobs", json=body, headers={"Idempotency-Key": f"n-{number}"})
            except httpx.TransportError:
                return None
            assert answer.is_success or answer.status_code == 503, answer.text
            return str(answer.json()["id"]) if answer.is_success else None

        turns = itertools.count(number)
        return await eventually(taken, f"a replica takes job {number}")


@pytest.fixture
async def fleet(tmp_path: Path, mongodb_uri: str, amqp_url: str, database_name: str) -> AsyncIterator[Fleet]:
    environment = environment_of(mongodb_uri, amqp_url, database_name)
    async with Fleet(tmp_path, environment, mongodb_uri, database_name) as running:
        yield running


async def test_a_rolling_upgrade_from_0_2_0_loses_nothing(fleet: Fleet, release: Path) -> None:
    fleet.release = release
    await fleet.together(*REPLICAS)
    for name in PROCESSORS:
        await fleet.processor(name)
    for name, every_ms in SCHEDULES.items():
        await fleet.schedule(name, f"{every_ms}ms")
    async with fleet.load():
        await fleet.goes_on(20)

        # A new leader after an old one, and an old one after a new one.
        await fleet.end("one")
        fleet.release = None
        await fleet.replica("one")
        await fleet.end("two", "three")
        await fleet.goes_on()
        fleet.release = release
        await fleet.together("two", "three")
        await fleet.end("one")
        await fleet.goes_on()

        fleet.release = None
        assert (await fleet.migrated())["kept"] == SUPERSEDED_NAMES
        await fleet.replica("one")
        for name in ("two", "three"):
            await fleet.end(name)
            await fleet.replica(name)
            await fleet.goes_on()
        for name in PROCESSORS:
            await fleet.end(name)
            await fleet.processor(name)
            await fleet.goes_on()
        assert [step["name"] for step in (await fleet.migrated())["steps"]] == SUPERSEDED_NAMES
        assert (await fleet.migrated())["steps"] == []
        await fleet.goes_on(20)
    cluster = await fleet.get("/v1/cluster")
    assert [bool(replica["zone_data"]) for replica in cluster["replicas"]] == [True] * 3  # 0.2.0 does not show it
    assert (cluster["schema"]["version"], cluster["quarantine"]) == (1, [])
    await fleet.assert_nothing_was_lost()
