"""The smallest world the API can live in: memory stores, a clock that stands still, a cluster that stays as it is."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from functools import cache, partial
from importlib.resources import files
from typing import Any, TypeVar

import orjson
from fastapi import FastAPI

from hascheduler.api.admission.control import AdmissionControl
from hascheduler.api.admission.worker_registrations import WorkerRegistrations, WorkTerms
from hascheduler.api.app import DESCRIPTION, create_routes, with_edge
from hascheduler.api.edge import Edge
from hascheduler.api.http.limits import limits
from hascheduler.api.middleware.audit import AuditWriter
from hascheduler.api.middleware.auth import AuthConfig
from hascheduler.api.services import ApiServices
from hascheduler.daemon.outbound.event_log import EventLog
from hascheduler.daemon.outbound.waiters import StreamWaiter, Waiters
from hascheduler.dispatch.decisions import Decision, Dispatch, Fire, RecordVerdict, Settlement
from hascheduler.dispatch.explanation import Explanation
from hascheduler.dispatch.recording import RecordedStep, RecordingEnd, RecordingHeading
from hascheduler.errors import InvalidInput
from hascheduler.mirror.history import JobHistory
from hascheduler.model.collection import Collection
from hascheduler.model.documents.processor import decode_processor
from hascheduler.model.documents.schedule import decode_schedule
from hascheduler.model.job import JobState
from hascheduler.model.leadership import EntryKind, JournalHead, LeaseRecord
from hascheduler.model.processor import ProcessorRef, Rest
from hascheduler.model.values.instants import MonoMs, WallMs
from hascheduler.model.verdict import Verdict, VerdictRun
from hascheduler.ports import Cluster, Gauges, LeaderLag, Recording, StoredDocument
from hascheduler.schema.calendar import Calendar
from hascheduler.schema.definition import Definition
from hascheduler.schema.lane import Lane
from hascheduler.schema.noun import Part, read_document
from hascheduler.schema.pause import EVERYTHING, StandingPause, drains
from hascheduler.schema.replica import LastCheck
from hascheduler.schema.schedule import ScheduleRef
from hascheduler.schema.tenant import Tenant
from hascheduler.schema.token import Token
from hascheduler.telemetry.metrics_http import HttpMetrics
from hascheduler.telemetry.metrics_replica import ReplicaGauges
from hascheduler.testing.memory.access import MemoryAuditStore, MemoryBucketStore, MemoryTokenStore
from hascheduler.testing.memory.claims import MemoryClaimStore
from hascheduler.testing.memory.database import MemoryConnection, MemoryDatabase
from hascheduler.testing.memory.jobs import MemoryJobStore
from hascheduler.testing.memory.leadership import MemoryFailoverStore
from hascheduler.testing.memory.resources import MemoryResourceStore, MemoryScheduleStore, MemoryVerdictStore
from hascheduler.testing.memory.work import MemoryWorkStore
from hascheduler.triggers import calendars_of
from tests.factories import make_processor, make_replica

NOW = WallMs(1_893_456_000_000)  # 2030-01-01T00:00:00Z, a Tuesday
RETENTION_MS = 600_000
MAX_PENDING = 1_000_000
MAX_DEPENDENCIES = 1_000_000

Resource = TypeVar("Resource")
Noun = TypeVar("Noun", bound=Part)
Overtaker = Callable[[], Awaitable[object]]


class StandingClock:
    """It stands at ``now`` and ``mono`` until the test moves them."""

    def __init__(self) -> None:
        self.now: WallMs = NOW
        self.mono = 0

    def wall_ms(self) -> WallMs:
        return self.now

    def mono_ms(self) -> MonoMs:
        return MonoMs(self.mono)


class OvertakenScheduleStore(MemoryScheduleStore):
    """Before each write, the next one of ``overtakers`` gets through."""

    def __init__(self, connection: MemoryConnection) -> None:
        super().__init__(connection)
        self.overtakers: list[Overtaker] = []

    async def edit(self, name: str, rev: int, fields: Mapping[str, Any]) -> StoredDocument | None:
        await _overtaken(self.overtakers)
        return await super().edit(name, rev, fields)

    async def delete(self, name: str, rev: int | None = None) -> bool:
        await _overtaken(self.overtakers)
        return await super().delete(name, rev)


class OvertakenResourceStore(MemoryResourceStore[Noun]):
    """Before each write that demands a revision, the next one of ``overtakers`` gets through."""

    def __init__(self, connection: MemoryConnection, collection: Collection) -> None:
        super().__init__(connection, collection)
        self.overtakers: list[Overtaker] = []

    async def replace(self, resource: Noun, rev: int) -> StoredDocument | None:
        await _overtaken(self.overtakers)
        return await super().replace(resource, rev)

    async def delete(self, name: str, rev: int | None = None) -> bool:
        await _overtaken(self.overtakers)
        return await super().delete(name, rev)


async def _overtaken(overtakers: list[Overtaker]) -> None:
    if overtakers:
        await overtakers.pop(0)()


@dataclass
class StandingView:
    """A small cluster that never changes, but for the switches, and what it knows of jobs."""

    ready: bool = True
    leader_lag: LeaderLag = field(default_factory=LeaderLag)
    alive: bool = True
    leading: bool = True
    stopping: bool = False
    holder: str = "replica-1.aa"
    broken: bool = False
    explanations: dict[str, Explanation] = field(default_factory=dict)
    never_to_run: set[str] = field(default_factory=set)
    heading: RecordingHeading | None = None
    recorded: list[RecordedStep | RecordingEnd] = field(default_factory=list)
    recorded_for_ms: int = 0
    token: Callable[[str], Token | None] = lambda _: None
    tenant: Callable[[str], Tenant | None] = lambda _: None
    lanes: Callable[[], Mapping[str, Lane]] = dict
    pauses: Callable[[], Mapping[str, StandingPause]] = dict
    definitions: Callable[[], Mapping[str, Definition]] = dict
    calendars: Callable[[], Mapping[str, Calendar]] = dict
    schedules: Callable[[], Mapping[str, ScheduleRef]] = dict
    schedules_on: Callable[[str], list[str]] = lambda _: []
    past: JobHistory = field(default_factory=lambda: JobHistory(MonoMs(0), {}))
    live: dict[tuple[str | None, str | None], Mapping[str, int]] = field(default_factory=dict)
    """By definition and tenant, live jobs by state: what a test has put there."""
    waiting: Counter[str] = field(default_factory=Counter)
    later: int = 0
    awaited: int = 0
    """How many of those are not runnable yet."""
    dispatched_attempts: Callable[[str], Sequence[tuple[str, int]]] = lambda _: ()
    processors: Callable[[], Sequence[ProcessorRef]] = lambda: ()
    occupied: Callable[[str], int] = lambda _: 0
    silent: Sequence[str] = ()
    consuming: bool = True
    rests: dict[str, Rest] = field(default_factory=dict)
    learned: dict[tuple[str, str], int] = field(default_factory=dict)
    """What jobs of a definition took on a target."""
    copied: frozenset[int] = frozenset()
    """The partitions that another shard counts for."""
    waiters: Waiters = field(default_factory=Waiters)
    """For ends and dispatches, by the id of the job or the processor; a test notifies them."""

    @property
    def unready_reason(self) -> str:
        return "" if self.ready else "the mirror is incomplete"

    def overdue_schedules(self, before_ms: int) -> Sequence[ScheduleRef]:
        return [*self.schedules().values()]

    def history(self) -> JobHistory:
        return self.past

    def copied_partitions(self) -> frozenset[int]:
        return self.copied

    def processor(self, id: str) -> ProcessorRef | None:
        return next((processor for processor in self.processors() if processor.id == id), None)

    def job_end_waiter(self, job_id: str) -> AbstractContextManager[StreamWaiter]:
        return self.waiters.waiting(job_id)

    def dispatch_waiter(self, processor_id: str) -> AbstractContextManager[StreamWaiter]:
        return self.waiters.waiting(processor_id)

    def pending(self, tenant: str | None = None) -> int:
        return self.waiting.total() if tenant is None else self.waiting[tenant]

    def dependencies(self) -> int:
        return self.awaited

    def runnable(self) -> int:
        return self.pending() - self.later

    def live_jobs(self, *, definition: str | None = None, tenant: str | None = None) -> Mapping[str, int]:
        return self.live.get((definition, tenant), {})

    def explain(self, job_id: str, only: str | None = None) -> Explanation | None:
        return self.explanations.get(job_id)

    def unschedulable(self) -> set[str]:
        return self.never_to_run

    def learned_cost_ms(self, definition: str, target: str) -> int | None:
        return self.learned.get((definition, target))

    def record(self, for_ms: int) -> Recording | None:
        """What a test has put there; nothing happens here by itself."""
        if self.heading is None:
            return None
        self.recorded_for_ms = for_ms

        async def told() -> AsyncIterator[RecordedStep | RecordingEnd]:
            for step in self.recorded:
                yield step

        return self.heading, told()

    def gauges(self) -> Gauges:
        if self.broken:
            raise RuntimeError("a secret detail")
        return Gauges(
            leading=self.leading,
            ready=self.ready,
            term=7,
            stream_lag_ms=3,
            loop_age_ms=20,
            quarantined=1,
            broker_accepting=True,
            jobs={"pending": 3, "running": 1},
            jobs_of_definition={"log": {"pending": 3, "running": 1}},
            jobs_of_lane={"default": {"pending": 3, "running": 1}},
            jobs_of_tenant={"acme": {"pending": 2}, "umbrella": {"pending": 1, "running": 1}},
            definitions=("log", "sleep"),
            lanes=("slow",),
            tenants=("acme",),
            unschedulable=len(self.never_to_run),
            waited_ms={"default": 90_000},
            wait_bound_ms=1_920_000,
            schedules={"active": 2, "paused": 1},
            processors={"live": 1, "draining": 0, "lost": 1},
            unable={"not_consuming": 1, "resting": 0},
            slots={"occupied": 2, "free": 6},
            findings={"overdue": 2},
            mirrors_differ=1,
            decision_lag_ms=120,
        )

    def cluster(self) -> Cluster:
        if self.broken:
            raise RuntimeError("a secret detail")
        processor = ProcessorRef("p-1.bb", "p-1", "default", frozenset({"sleep", "log"}), 8, 3, False, 0, (("cpu", 8),))
        processor = replace(processor, draining=not self.consuming, consuming=self.consuming)
        status = make_replica(
            "replica-1.aa", name="replica-1", beat=4, http_endpoint="127.0.0.1:8080", position="7.1", quarantined=1
        )
        return Cluster(
            replica_id="replica-1.aa",
            lease=LeaseRecord("default", self.holder, 7, 2, "127.0.0.1:9", NOW, NOW, 10_000, 6),
            journal=JournalHead("default", 41, 7, EntryKind.DECISIONS, "replica-1.aa", 40),
            leading=True,
            ready=self.ready,
            replicas=[status],
            processors=[(processor, 2, True)],
            counts={"pending": 1, "schedules": 2},
            quarantine=[("jobs", "bad", "state: missing")],
            quarantined=1,
            stream_lag_ms=3,
            position="7.1",
            digest="d",
            last_check=LastCheck(NOW, {"overdue": 2}),
            silent=self.silent,
            pause=self.pauses().get(EVERYTHING),
            drains=drains(self.pauses()),
            differing=["replica-2.bb"],
            rests=self.rests,
        )


class World:
    def __init__(self) -> None:
        self.database = MemoryDatabase()
        self.connection = MemoryConnection(self.database)
        self.schedules = OvertakenScheduleStore(self.connection)
        self.definitions = OvertakenResourceStore[Definition](self.connection, Collection.DEFINITIONS)
        self.lanes = OvertakenResourceStore[Lane](self.connection, Collection.LANES)
        self.calendars = OvertakenResourceStore[Calendar](self.connection, Collection.CALENDARS)
        self.tenants = OvertakenResourceStore[Tenant](self.connection, Collection.TENANTS)
        self.pauses = OvertakenResourceStore[StandingPause](self.connection, Collection.PAUSES)
        self.jobs = MemoryJobStore(self.connection, RETENTION_MS)
        self.verdicts = MemoryVerdictStore(self.connection)
        self.tokens = MemoryTokenStore(self.connection)
        self.audit = MemoryAuditStore(self.connection, RETENTION_MS)
        self.auth = AuthConfig(hosts=frozenset({"api", "a", "x"}))  # as the tests call it
        self.view = StandingView(
            token=self._token,
            dispatched_attempts=self._dispatched_attempts,
            tenant=self._tenant,
            lanes=self._readable(Collection.LANES, partial(read_document, Lane)),
            pauses=self._readable(Collection.PAUSES, partial(read_document, StandingPause)),
            definitions=self._readable(Collection.DEFINITIONS, partial(read_document, Definition)),
            calendars=self._readable(Collection.CALENDARS, partial(read_document, Calendar)),
            schedules=self._readable(Collection.SCHEDULES, decode_schedule),
            schedules_on=self._schedules_on,
            processors=self._processors,
            occupied=self._occupied,
        )
        self.clock = StandingClock()
        self.metrics = HttpMetrics()
        self.metrics.registry.register(ReplicaGauges(lambda: {"": self.view.gauges()}))
        self.admission = AdmissionControl(
            self.view,
            MemoryBucketStore(self.connection),
            self.clock,
            MAX_PENDING,
            self.metrics.refused,
            max_dependencies=MAX_DEPENDENCIES,
        )
        self.events = EventLog()
        self.work = MemoryWorkStore(self.connection, RETENTION_MS)
        self.audit_writer = AuditWriter(self.audit, self.clock)
        self.failovers = MemoryFailoverStore(self.connection)
        self.limits = limits()
        self._job_count = 0

    def services(self) -> ApiServices:
        names = {each.name for each in fields(ApiServices)} & {*vars(self)}
        own: dict[str, Any] = {name: getattr(self, name) for name in names}
        return ApiServices(
            **own,
            new_id=self._new_id,
            new_job_id=lambda _: f"job:{self._new_id()}",
            work_terms=WorkTerms("default", 1_000, 4_000),
            registrations=WorkerRegistrations(self.view, self.clock),
        )

    def go_away(self) -> None:
        self.connection.cut()

    # Behind the API's back

    def stored(self, collection: Collection, id: str) -> dict[str, Any]:
        document = self.database.find(collection, id)
        assert document is not None, f"no {id} in {collection}"
        return deepcopy(dict(document))

    def schedule(self, name: str = "tick") -> dict[str, Any]:
        return self.stored(Collection.SCHEDULES, name)

    def job(self, id: str) -> dict[str, Any]:
        return self.stored(Collection.JOBS, id)

    def rewrite(self, collection: Collection, id: str, **fields: Any) -> None:
        """A user with a shell."""
        self.database.replace(collection, {**self.stored(collection, id), **fields})

    def rewrite_job(self, id: str, **fields: Any) -> None:
        self.rewrite(Collection.JOBS, id, **fields)

    def everything(self) -> dict[str, list[dict[str, Any]]]:
        """To compare with later: whether anything was written."""
        return {
            name.value: [deepcopy(dict(document)) for document in self.database.documents(name)] for name in Collection
        }

    # What a leader would write

    async def fire(self, nominal_ms: int, name: str = "tick") -> str:
        """The id of the job."""
        schedule = decode_schedule(name, self.schedule(name))
        basis, tally = schedule.basis_at(schedule.cursor_ms), schedule.tally.plus(Verdict.FIRED)
        fire = Fire(name, WallMs(nominal_ms), basis, tally, is_graph=schedule.graph is not None)
        await self.decide(fire)
        return fire.job_id

    async def dispatch(self, job_id: str, processor_id: str, attempt: int = 1) -> None:
        await self.decide(Dispatch(job_id, attempt, processor_id))
        self.view.waiters.notify(processor_id)

    async def pass_over(
        self,
        verdict: Verdict,
        first_ms: int,
        last_ms: int | None = None,
        *,
        count: int = 1,
        because_of: str | None = None,
        name: str = "tick",
    ) -> None:
        schedule = decode_schedule(name, self.schedule(name))
        last_ms = first_ms if last_ms is None else last_ms
        run = VerdictRun(name, verdict, WallMs(first_ms), WallMs(last_ms), count, because_of)
        await self.decide(
            RecordVerdict(run, schedule.basis_at(schedule.cursor_ms), schedule.tally.plus(verdict, count))
        )

    async def decide(self, decision: Decision) -> None:
        claims = MemoryClaimStore(self.connection, RETENTION_MS)
        assert await claims.apply([decision], self.clock.now, majority=True) == [Settlement.DONE]

    def _processors(self) -> list[ProcessorRef]:
        """Return the stored ones and one that runs every definition, so that no submit warns of its definition."""
        return [
            make_processor("runs-all", ("*",)),
            *(decode_processor(one["_id"], one) for one in self.database.documents(Collection.PROCESSORS)),
        ]

    def _token(self, digest: str) -> Token | None:
        """As a mirror without any lag has it."""
        document = self.database.find(Collection.TOKENS, digest)
        return None if document is None else read_document(Token, digest, document)

    def _readable(
        self, collection: Collection, read: Callable[[str, StoredDocument], Resource]
    ) -> Callable[[], dict[str, Resource]]:
        """What can't be read is set aside, as a mirror does."""

        def found() -> dict[str, Resource]:
            readable: dict[str, Resource] = {}
            for document in self.database.documents(collection):
                with suppress(InvalidInput):
                    readable[document["_id"]] = read(document["_id"], document)
            return readable

        return found

    def _schedules_on(self, calendar: str) -> list[str]:
        schedules = [decode_schedule(each["_id"], each) for each in self.database.documents(Collection.SCHEDULES)]
        return [schedule.name for schedule in schedules if calendar in calendars_of(schedule)]

    def _tenant(self, name: str) -> Tenant | None:
        """As a mirror without any lag has it."""
        document = self.database.find(Collection.TENANTS, name)
        return None if document is None else read_document(Tenant, name, document)

    def _dispatched_attempts(self, processor_id: str) -> Sequence[tuple[str, int]]:
        jobs = self.database.documents(Collection.JOBS)
        return [
            (job["_id"], job["attempt"])
            for job in jobs
            if (job["state"], job["processor"]) == (JobState.DISPATCHED, processor_id)
        ]

    def _occupied(self, processor_id: str) -> int:
        held = (JobState.DISPATCHED, JobState.RUNNING)
        jobs = self.database.documents(Collection.JOBS)
        return sum(job["state"] in held and job["processor"] == processor_id for job in jobs)

    def _new_id(self) -> str:
        self._job_count += 1
        return f"{self._job_count:04d}"


@cache
def the_routes() -> FastAPI:
    """One for all tests of a process: to make it takes longer than most of them."""
    return create_routes()


@cache
def the_app() -> Edge:
    """One for all tests of a process, as the routes are."""
    return with_edge(the_routes(), World().services())


@cache
def description() -> dict[str, Any]:
    """OpenAPI's document as the package has it. `test_openapi` holds it to the routes, from which it is made in half a
    second: too long for each process that reads the tests."""
    found: dict[str, Any] = orjson.loads(files("hascheduler.api").joinpath(DESCRIPTION).read_bytes())
    return found


def operations() -> list[tuple[str, str, dict[str, Any]]]:
    """Each of OpenAPI's document, with its method and its path."""
    paths = description()["paths"].items()
    return [(method.upper(), path, operation) for path, item in paths for method, operation in item.items()]


def app_of(world: World) -> Edge:
    """The one application, which has the services of ``world`` until the next one takes it."""
    app = the_app()
    app.services = world.services()
    return app
