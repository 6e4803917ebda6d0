"""A fired job begins a trace; of repeated fires only the one that inserted the job exports its span."""

from hascheduler.model.collection import Collection
from hascheduler.mongo.apply.claims import MongoClaimStore
from hascheduler.mongo.connection import Database
from hascheduler.mongo.schedules import MongoScheduleStore
from tests.contract.claim_checks import DONE, applied
from tests.factories import make_fire, make_schedule
from tests.unit.telemetry.spans import Recorded, parent_of

RETENTION_MS = 600_000


async def test_a_fire_is_the_first_span_of_its_job_however_often_it_is_applied(
    database: Database,
) -> None:
    created = await MongoScheduleStore(database).create(make_schedule())
    assert created is not None
    one, another = Recorded(), Recorded()
    fires = make_fire(1), make_fire(2)
    assert await applied(MongoClaimStore(database, RETENTION_MS, one.tracer), *fires) == [DONE, DONE]
    assert await applied(MongoClaimStore(database, RETENTION_MS, another.tracer), *fires) == [DONE, DONE]
    # As a crash between the jobs and the cursor leaves it.
    await database[Collection.SCHEDULES.value].update_one({}, {"$set": {"cursor_ms": created["cursor_ms"]}})
    assert await applied(MongoClaimStore(database, RETENTION_MS, another.tracer), *fires) == [DONE, DONE]
    assert (one.names, another.names) == (["fire log"] * 2, [])
    jobs = database[Collection.JOBS.value]
    exported = {str((span.attributes or {})["hascheduler.job.id"]): span for span in one.exporter.get_finished_spans()}
    assert exported.keys() == {fire.job_id for fire in fires}
    for id, span in exported.items():
        job = await jobs.find_one({"_id": id})
        assert job is not None
        assert span.context is not None
        assert job["trace"][3:52] == f"{span.context.trace_id:032x}-{span.context.span_id:016x}"
        assert (parent_of(span), (span.attributes or {})["hascheduler.job.schedule"]) == (None, "tick")
    assert len({span.context.trace_id for span in exported.values() if span.context}) == 2


async def test_without_tracing_a_fired_job_has_no_trace(database: Database) -> None:
    await MongoScheduleStore(database).create(make_schedule())
    assert await applied(MongoClaimStore(database, RETENTION_MS), make_fire(1)) == [DONE]
    job = await database[Collection.JOBS.value].find_one({})
    assert job is not None
    assert "trace" not in job
