"""A job that fails for good is reported by one job, whoever leads and however often it is looked at."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from structlog.testing import capture_logs

from hascheduler.daemon.outbound import failure_reports as room
from hascheduler.daemon.outbound.event_log import EventLog
from hascheduler.daemon.outbound.failure_reports import FailureReports, report_of
from hascheduler.model.collection import Collection
from hascheduler.model.documents.job import new_job_document
from hascheduler.model.event import Event, EventType, position
from hascheduler.model.partition import Hold, partition_key, partition_of
from hascheduler.processor import PermanentError
from hascheduler.telemetry.metrics_replica import ReplicaMetrics
from hascheduler.testing import VirtualScheduler
from hascheduler.testing.memory.database import MemoryConnection, MemoryDatabase
from hascheduler.testing.memory.jobs import MemoryJobStore
from tests.factories import make_definition, make_job, make_tenant
from tests.system.processes import eventually
from tests.unit.daemon.doubles import HandClock, running
from tests.unit.telemetry.scraping import scrape

ERROR = "no disk at mongodb://me:secret@host"


@pytest.fixture
def scheduler() -> Iterator[VirtualScheduler]:
    with VirtualScheduler() as scheduler:
        scheduler.handle("notify", lambda job: job.payload["error"])
        scheduler.handle("fine", lambda job: None)

        @scheduler.handler("broken")
        def broken(job: Any) -> None:
            raise PermanentError(ERROR)

        scheduler.put_definition("broken", on_failure="notify")
        yield scheduler


def failing(definition: str = "broken", **fields: Any) -> Callable[[VirtualScheduler], object]:
    return lambda scheduler: scheduler.submit(definition, {"secret": 1}, **fields)


def retried(scheduler: VirtualScheduler) -> None:
    job = scheduler.submit("broken")
    scheduler.advance("2s")
    scheduler.request("POST", f"/v1/jobs/{job.id}/retry")


def a_dependency_failed(scheduler: VirtualScheduler) -> None:
    scheduler.submit("broken", depends_on=[scheduler.submit("broken").id])


def fired(on_failure: str | None, *jobs: dict[str, Any]) -> Callable[[VirtualScheduler], object]:
    made = {"job": jobs[0]} if len(jobs) == 1 else {"jobs": jobs}
    trigger = {"type": "once", "at": "2030-01-01T00:00:01Z"}
    return lambda scheduler: scheduler.add_schedule("nightly", trigger=trigger, on_failure=on_failure, **made)


GRAPH = (
    {"ref": "load", "definition": "broken"},
    {"ref": "show", "definition": "fine", "depends_on": ["load"]},
)
LAST = "fire:nightly:1893456001000"


@pytest.mark.parametrize(
    ("happens", "reported"),
    [
        (failing(), ["notify of job:000001"]),
        (failing("fine"), []),
        (retried, ["notify of job:000001", "notify of job:000001"]),
        (a_dependency_failed, ["notify of job:000001"]),
        (fired(None, {"definition": "broken"}), [f"notify of {LAST}"]),
        (fired(None, *GRAPH), [f"notify of {LAST}.load"]),
        (fired("page", {"definition": "broken"}), [f"page of {LAST}"]),
        (fired("page", *GRAPH), [f"page of {LAST}"]),
    ],
)
def test_each_failure_for_good_is_reported_once(
    scheduler: VirtualScheduler, happens: Callable[[VirtualScheduler], object], reported: list[str]
) -> None:
    scheduler.handle("page", lambda job: None)
    happens(scheduler)
    scheduler.advance("5m")
    reports = [job for job in scheduler.jobs() if job["failed_job"] is not None]
    assert [f"{report.definition} of {report['failed_job']}" for report in reports] == reported
    marks = {job.id: job["on_failure_job"] for job in scheduler.jobs() if job["on_failure_job"] is not None}
    assert marks == {report["failed_job"]: report.id for report in reports}


def test_the_report_says_what_failed_in_the_lane_and_the_tenant_of_the_job(scheduler: VirtualScheduler) -> None:
    scheduler.request("PUT", "/v1/lanes/slow", {})
    failed = scheduler.submit("broken", tenant="acme", lane="slow", target="disk", labels={"team": "a"})
    scheduler.advance("1s")
    report = scheduler.job(scheduler.job(failed.id)["on_failure_job"])
    assert (report.definition, report["tenant"], report["lane"], report["labels"], report["target"]) == (
        "notify", "acme", "slow", {"team": "a"}, report.id,
    )  # fmt: skip
    assert report["payload"] == {
        "job": failed.id,
        "definition": "broken",
        "schedule": None,
        "tenant": "acme",
        "target": "disk",
        "error": "PermanentError: no disk at mongodb://***@host",
        "attempt": 1,
        "failures": 1,
        "failed_at": scheduler.job(failed.id)["finished_at"],
        "labels": {"team": "a"},
    }


def test_a_report_that_fails_is_not_reported(scheduler: VirtualScheduler) -> None:
    scheduler.put_definition("notify", on_failure="notify")
    scheduler.fail_next("notify", PermanentError("no mail"))
    scheduler.submit("broken")
    scheduler.advance("5m")
    assert [(job.definition, str(job.state)) for job in scheduler.jobs()] == [
        ("broken", "failed"),
        ("notify", "failed"),
    ]


def test_a_definition_that_nobody_runs_gets_its_report_as_any_job_is_submitted(scheduler: VirtualScheduler) -> None:
    scheduler.put_definition("broken", on_failure="nobody")
    scheduler.submit("broken")
    scheduler.advance("1s")
    assert [(job.definition, str(job.state)) for job in scheduler.jobs()][1] == ("nobody", "pending")


def test_a_report_has_the_keys_of_its_definition(scheduler: VirtualScheduler) -> None:
    scheduler.put_definition("notify", unique={"by": ["payload.definition"], "period": "1h"})
    for _ in range(3):
        scheduler.submit("broken")
    scheduler.advance("5m")
    reports = [job for job in scheduler.jobs() if job.definition == "notify"]
    assert len(reports) == 1
    assert {job["on_failure_job"] for job in scheduler.jobs() if job.definition == "broken"} == {reports[0].id}


# Two leaders on one database

JOBS = Collection.JOBS


class Scene:
    def __init__(self) -> None:
        self.database = MemoryDatabase()
        self.clock, self.metrics, self.log = HandClock(), ReplicaMetrics(), EventLog()
        self.nouns: dict[Collection, dict[str, Any]] = {
            Collection.DEFINITIONS: {"log": make_definition(on_failure="notify")},
            Collection.TENANTS: {},
            Collection.HOLDS: {},
        }
        self.pending = 0
        self.leads: dict[str, Callable[[], bool]] = {"a": lambda: True}
        self.log.begin(position(1, 1))

    def fail(self, id: str, **fields: Any) -> None:
        ended = {"state": "failed", "attempt": 1, "finished_at_ms": self.clock.now, "error": "no disk", **fields}
        self.database.insert(JOBS, {**new_job_document(make_job(id)), **ended})

    def loop_of(self, leader: str, connection: MemoryConnection | None = None, shards: int = 1) -> FailureReports:
        return FailureReports(
            jobs=MemoryJobStore(connection or MemoryConnection(self.database), 600_000),
            events=self.log,
            nouns=self.nouns.__getitem__,
            pending=lambda _: self.pending,
            leading=self.leads[leader],
            clock=self.clock,
            metrics=self.metrics,
            shards=shards,
        )

    def reports(self) -> list[str]:
        return [str(job["failed_job"]) for job in self.database.documents(JOBS) if "failed_job" in job]

    async def marked(self, *ids: str) -> None:
        def all_are() -> bool:
            return all((self.database.find(JOBS, id) or {}).get("on_failure_job") for id in ids)

        await becomes(all_are, "the failed jobs are marked")


async def becomes(condition: Callable[[], bool], what: str) -> None:
    async def holds() -> bool:
        return condition()

    await eventually(holds, what)


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    monkeypatch.setattr(room, "LOOK_EVERY_S", 0.0)
    monkeypatch.setattr(room, "_POLL_MS", 1)
    return Scene()


@pytest.mark.parametrize(
    ("of", "carried_out"),
    [("jobs.unreported", False), ("jobs.submit", False), ("jobs.submit", True), ("jobs.reported", False)],
)
async def test_the_next_leader_reports_what_the_one_before_left(scene: Scene, of: str, carried_out: bool) -> None:
    scene.fail("j")
    dying = MemoryConnection(scene.database)
    dying.fail_next(of=of, carried_out=carried_out)
    scene.leads["a"] = lambda: bool(dying._faults)
    scene.leads["b"] = lambda: not dying._faults
    async with running(scene.loop_of("a", dying).run(), scene.loop_of("b").run()):
        await scene.marked("j")
    assert scene.reports() == ["j"]


async def test_two_that_believe_to_lead_make_one_report(scene: Scene) -> None:
    for number in range(20):
        scene.fail(f"j{number}")
    async with running(scene.loop_of("a").run(), scene.loop_of("a").run()):
        await scene.marked(*(f"j{number}" for number in range(20)))
    assert sorted(scene.reports()) == sorted(f"j{number}" for number in range(20))


def full(scene: Scene) -> Callable[[], None]:
    scene.nouns[Collection.TENANTS]["tenant"] = make_tenant("tenant", max_pending=3)
    scene.pending = 3

    def drained() -> None:
        scene.pending = 0

    return drained


def held(scene: Scene) -> Callable[[], None]:
    key = partition_key(partition_of("tenant"))
    scene.nouns[Collection.HOLDS][key] = Hold(key, 1, is_held=True)
    return scene.nouns[Collection.HOLDS].clear


@pytest.mark.parametrize("prevents", [full, held])
async def test_a_report_that_is_not_possible_now_is_made_later(
    scene: Scene, prevents: Callable[[Scene], Callable[[], None]]
) -> None:
    over = prevents(scene)
    scene.fail("j")
    with capture_logs() as logs:
        async with running(scene.loop_of("a").run()):
            await becomes(lambda: bool(logs), "it is logged")
            assert scene.reports() == []
            over()
            await scene.marked("j")
    assert scene.reports() == ["j"]
    assert [line["event"] for line in logs] == ["failure_report_postponed"]  # however often it was tried


async def test_a_tenant_gets_no_more_reports_than_jobs_may_wait_and_hides_no_failure_of_others(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "_AT_ONCE_MAX", 3)
    monkeypatch.setattr(room, "LOOK_EVERY_S", 600)
    full(scene)
    scene.pending = 1
    scene.fail("broken by hand", tenant="other", attempt={"no": "number"}, labels=7, lane=None, finished_at_ms=2**60)
    scene.fail("of another", tenant="other")
    for number in range(9):
        scene.fail(f"j{number}")
    async with running(scene.loop_of("a").run()):
        await scene.marked("of another", "broken by hand")
    assert sorted(scene.reports()) == ["broken by hand", "j7", "j8", "of another"]


async def test_a_failed_job_that_makes_no_sense_is_left_and_ends_no_leader(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sensible(job: Any, *rest: Any) -> Any:
        if job["_id"] == "odd":
            raise KeyError("attempt")
        return report_of(job, *rest)

    monkeypatch.setattr(room, "report_of", sensible)
    scene.fail("odd")
    scene.fail("j")
    with capture_logs() as logs:
        async with running(scene.loop_of("a").run()):
            await scene.marked("j")
    assert [line["job"] for line in logs] == ["odd"]


async def test_of_several_shards_the_id_of_a_report_ends_in_the_partition(scene: Scene) -> None:
    scene.fail("j")
    async with running(scene.loop_of("a", shards=2).run()):
        await scene.marked("j")
    assert str((scene.database.find(JOBS, "j") or {})["on_failure_job"]).endswith(f"~{partition_of('tenant'):02x}")


async def test_failures_are_counted_by_definition_and_reports_ask_only_for_what_may_have_one(scene: Scene) -> None:
    def event(number: int, definition: str, schedule: str | None = None) -> Event:
        return Event(position(2, number), 0, EventType.FAILED, "j", "t", definition, schedule)

    async with running(scene.loop_of("a").run()):
        zeros = {"log": 0.0}
        await becomes(lambda: counted(scene) == zeros, "the definitions are shown")
        scene.log.append([event(1, "log"), event(2, "other"), event(3, "other", "nightly")], position(2, 3))
        await becomes(lambda: counted(scene) == {"log": 1.0, "other": 2.0}, "they are counted")


def counted(scene: Scene) -> dict[str, float]:
    return dict(scrape(scene.metrics.registry).by("hascheduler_jobs_failed_total", "definition"))
