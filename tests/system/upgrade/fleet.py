"""Replicas and processors of several releases in one deployment, under load, and how all their jobs ended."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import httpx

from hascheduler.embedded.daemons import Daemon
from tests.system.processes import Processes, eventually
from tests.system.upgrade.releases import Release, this_release

SCHEDULES = {"fast": "250ms", "steady": "1s", "also-steady": "1s"}


@dataclass
class Fleet(Processes):
    """`Processes` of the release that ``release`` says at the moment; what was started before stays what it is."""

    release: Release = field(default_factory=this_release)
    submitted: list[str] = field(default_factory=list)
    """The ids of the jobs whose submission was acknowledged."""

    commands: list[Daemon] = field(default_factory=list)
    have_health_ports: ClassVar[bool] = False  # the previous release has none

    async def upgrade_replica(self, name: str) -> None:
        """SIGTERM, then one of the present release by the same name, ready."""
        assert await self.replicas[name].terminate() == 0
        await self.replica(name)

    async def upgrade_processor(self, name: str) -> None:
        assert await self.processors[name].terminate(30) == 0
        await self.processor(name)

    async def set_out(self) -> None:
        """Three replicas and two processors, and schedules that fire."""
        for name in ("one", "two", "three"):
            await self.replica(name)
        for name in ("worker", "helper"):
            await self.processor(name)
        for name, every in SCHEDULES.items():
            await self.schedule(name, every)

    @asynccontextmanager
    async def load(self) -> AsyncIterator[None]:
        """Meanwhile jobs are submitted, each to the next replica that takes it."""
        enough = asyncio.Event()
        submitting = asyncio.create_task(self._submit(enough))
        try:
            yield
        finally:
            enough.set()
            await asyncio.wait([submitting])
        submitting.result()

    async def goes_on(self, at_least: int) -> None:
        """Until so many more jobs were acknowledged and every schedule has fired again."""
        submitted = len(self.submitted) + at_least
        fired = {name: len(self.nominal_times(name)) for name in SCHEDULES}

        async def enough() -> bool:
            return len(self.submitted) >= submitted and all(
                len(self.nominal_times(name)) > before for name, before in fired.items()
            )

        await eventually(enough, f"{at_least} more jobs, and a fire of each schedule", 60)

    async def migrated(self) -> dict[str, Any]:
        """What ``hascheduler migrate`` of the present release says."""
        status, out, err = await self.command("migrate", "--json")
        assert status == 0, err
        answer: dict[str, Any] = json.loads(out)
        return answer

    async def start(self, name: str, *arguments: str) -> Daemon:
        """A command of the present release in the background; `said` returns its lines."""
        self.commands.append(await self._start(name, arguments, {}))
        return self.commands[-1]

    async def stop(self) -> None:
        for process in self.commands:
            if process.running:
                await process.kill()
        await super().stop()

    async def cluster(self, name: str) -> dict[str, Any]:
        """As that replica sees it."""
        answer = await self.http.get(self.replicas[name].url + "/v1/cluster")
        answer.raise_for_status()
        content: dict[str, Any] = answer.json()
        return content

    async def runs(self, name: str) -> str:
        """The release of that replica, as its API says."""
        answer = await self.http.get(self.replicas[name].url + "/openapi.json")
        return str(answer.json()["info"]["version"])

    # What must hold

    async def assert_nothing_was_lost(self, at_least: int) -> None:
        """No nominal time missed or doubled, every acknowledged job ended once, and everything could be read; after
        each schedule has fired so often."""

        async def fired() -> bool:
            return all(len(self.nominal_times(name)) >= at_least for name in SCHEDULES)

        await eventually(fired, f"each schedule has fired {at_least} times", 60)
        await self.settled(60)
        for name, every in SCHEDULES.items():
            self.assert_no_gap(name, 250 if every == "250ms" else 1_000, at_least)
        self.assert_no_effect_twice()
        await self.assert_terms_never_return()
        jobs = {job["_id"]: job async for job in self.database.jobs.find()}
        effects = self.effects()
        assert set(self.submitted) <= set(jobs)
        assert set(effects) == set(jobs)
        for id, job in jobs.items():
            succeeded = [attempt for attempt in job["attempts"] if attempt["outcome"] == "succeeded"]
            assert (job["state"], len(succeeded)) == ("succeeded", 1), job
            assert len(effects[id]) == 1, job
        # All nominal times fired: none was passed over.
        assert await self.database.verdicts.find_one({}) is None
        self.assert_nothing_set_aside()

    def assert_nothing_set_aside(self) -> None:
        for name in self.replicas:
            errors = (self.folder / f"{name}.err").read_text()
            assert '"quarantined"' not in errors, errors[-2_000:]
            assert "Traceback" not in errors, errors[-2_000:]

    def said(self, name: str, event: str) -> list[dict[str, Any]]:
        """That replica's log lines of that kind."""
        lines = (self.folder / f"{name}.err").read_text().splitlines()
        said = [json.loads(line) for line in lines if line.startswith("{")]
        return [line for line in said if line["event"] == event]

    # How it is done

    async def _submit(self, enough: asyncio.Event) -> None:
        for number in itertools.count():
            if enough.is_set():
                return
            body = {"definition": "log", "target": f"submitted-{number % 5}", "payload": {"message": "hello"}}
            self.submitted.append(await self._submitted(number, body))
            await asyncio.sleep(0.02)

    async def _submitted(self, number: int, body: dict[str, Any]) -> str:
        """Its id. Asks the replicas in turn, as a client does that has a list of them; the key makes it one job."""
        deadline = asyncio.get_running_loop().time() + 30
        for turn in itertools.count(number):
            assert asyncio.get_running_loop().time() < deadline, f"no replica takes job {number}"
            replicas = [replica for replica in self.replicas.values() if replica.running]
            url = replicas[turn % len(replicas)].url
            try:
                answer = await self.http.post(f"{url}/v1/jobs", json=body, headers={"Idempotency-Key": f"n-{number}"})
            except httpx.TransportError:
                await asyncio.sleep(0.02)
                continue
            if answer.status_code < 300:
                return str(answer.json()["id"])
            assert answer.status_code == 503, answer.text
            await asyncio.sleep(0.05)
        raise AssertionError

    @property
    def code(self) -> Path:
        return self.release.folder
