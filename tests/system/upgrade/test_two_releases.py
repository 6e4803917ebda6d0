"""Release 0.2.0 and this code.

A deployment is replaced process by process while jobs run, and its database is migrated. And side by side: the SDK and
the commands of the release ask this API, and each reads the documents that the other has stored.
"""

import asyncio
import itertools
import json
import os
import subprocess
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest
from structlog.testing import capture_logs

from hascheduler.api.http.server import ApiServer
from hascheduler.client import AsyncScheduler
from hascheduler.model.collection import Collection
from hascheduler.mongo.schema.indexes import SUPERSEDED
from hascheduler.schema.definition import Definition
from hascheduler.schema.lane import Lane
from hascheduler.schema.noun import Noun, document_of, read_document
from hascheduler.schema.tenant import Tenant
from hascheduler.schema.uniqueness import Uniqueness
from tests.system.processes import Processes, environment_of, eventually
from tests.unit.api.doubles import World, app_of

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
            except httpx2.TransportError:
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


NOUNS: dict[str, type[Noun]] = {"definition": Definition, "lane": Lane, "tenant": Tenant}
ASKS = """
import sys
from hascheduler.client import Refused, Scheduler

with Scheduler(sys.argv[1]) as scheduler:
    job = scheduler.submit("log", {"n": 1}, idempotency_key="k", labels={"team": "a"})
    assert scheduler.submit("log", {"n": 1}, idempotency_key="k", labels={"team": "a"}).id == job.id
    done = scheduler.submit_many([{"ref": "a", "definition": "log"}, {"definition": "log", "depends_on": ["ref:a"]}])
    assert [one.status for one in done.results] == [201, 201]
    assert scheduler.cancel(job.id) == "cancelled"
    assert scheduler.wait(job.id, timeout=5).state == "cancelled"
    assert len(list(scheduler.list(definition="log"))) == 3
    assert scheduler.cancel_where(definition="log").changed == 2
    try:
        scheduler.get("job:none")
    except Refused as refused:
        print(refused.status)
"""
DOCUMENTS = """
import json, sys
from dataclasses import replace
from hascheduler.model import documents
from hascheduler.model.definition import Definition, RateLimit
from hascheduler.model.lane import Lane
from hascheduler.model.retry import RetryPolicy
from hascheduler.model.tenant import Tenant

some, retry = RateLimit(5, 1_000), RetryPolicy(attempts_max=7, backoff_ms=10)
nouns = {
    "definition": [
        Definition("plain"),
        Definition("log", 1, 3, 5_000, "group", 2, some, retry=retry, timeout_ms=1_000, total_timeout_ms=9_000),
    ],
    "lane": [Lane("plain"), Lane("slow", 1, 2, (60_000,))],
    "tenant": [Tenant("plain"), Tenant("acme", 1, 4, 5, some, 6, some)],
}
if len(sys.argv) == 1:
    print(json.dumps({kind: [getattr(documents, f"encode_{kind}")(one) for one in all] for kind, all in nouns.items()}))
else:
    for kind, stored in json.loads(sys.argv[1]).items():
        read = [getattr(documents, f"decode_{kind}")(one["_id"], one) for one in stored]
        assert read == [replace(one, rev=9) for one in nouns[kind]], read
"""

COMMANDS = "import sys; from hascheduler.__main__ import main; sys.argv[0] = 'hascheduler'; main()"
NEW_FIELDS = {"unique": {"by": ["target"]}, "key_limits": [{"key": "target", "max_concurrency": 2}]}
"""What definitions of 0.2.0 do not have."""


@pytest.fixture
async def url() -> AsyncIterator[str]:
    server = ApiServer(app_of(World()), "127.0.0.1", 0)
    await server.bind()
    with capture_logs():
        serving = asyncio.create_task(server.run())
        yield f"http://127.0.0.1:{server.port}"
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving


async def printed(code: Path, script: str, *arguments: str, url: str = "") -> str:
    """Return what the script prints with the code of a release; its commands ask the replica at ``url``."""
    environment = {**os.environ, "PYTHONPATH": str(code), "HASCHEDULER_URL": url}
    started = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, *arguments, stdout=PIPE, stderr=PIPE, cwd=code, env=environment
    )
    out, err = await asyncio.wait_for(started.communicate(), 60)
    assert started.returncode == 0, err.decode()
    return out.decode()


async def test_the_sdk_of_the_release_asks_this_api(release: Path, url: str) -> None:
    assert await printed(release, ASKS, url) == "404\n"


async def test_each_reads_what_the_other_has_stored(release: Path) -> None:
    stored: dict[str, Any] = json.loads(await printed(release, DOCUMENTS))
    edited = {
        kind: [document_of(read_document(NOUNS[kind], one["_id"], one).model_copy(update={"rev": 9})) for one in all]
        for kind, all in stored.items()
    }
    assert all({*one} <= {*other} for kind in stored for one, other in zip(stored[kind], edited[kind], strict=True))
    await printed(release, DOCUMENTS, json.dumps(edited))


async def test_the_commands_of_the_release_edit_what_has_new_fields(release: Path, url: str) -> None:
    async with AsyncScheduler(url) as scheduler:
        await scheduler.definitions.put_document("log", NEW_FIELDS)
        for command in (
            "definition edit log --timeout 5s",
            "lane put slow --weight 2",
            "schedule add hourly --every 1h --definition log",
            "schedule edit hourly --label team=a",
            "job submit log",
        ):
            await printed(release, COMMANDS, *command.split(), url=url)
        assert "hourly" in await printed(release, COMMANDS, "schedule", "list", url=url)
        assert "pending" in await printed(release, COMMANDS, "job", "list", url=url)
        kept = await scheduler.definitions.get("log")
        assert (kept.timeout_ms, kept.unique, len(kept.key_limits)) == (5_000, Uniqueness(by=("target",)), 1)
        assert (await scheduler.schedules.get("hourly"))["labels"] == {"team": "a"}
