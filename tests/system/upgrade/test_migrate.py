"""`migrate` of an empty database, of the previous release's, repeated, concurrent, cut short, and refused."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pymongo import ASCENDING, IndexModel

from hascheduler.errors import DatabaseUnfit
from hascheduler.model.collection import Collection
from hascheduler.model.schema_version import MigrationStep, StepKind
from hascheduler.mongo.connection import Database, connect, open_database
from hascheduler.mongo.schema.indexes import INDEXES, SUPERSEDED
from hascheduler.mongo.schema.migrate import migrate, prepare
from tests.system.processes import eventually
from tests.system.upgrade.fleet import Fleet
from tests.system.upgrade.releases import Release

pytestmark = [pytest.mark.timeout(300)]

_LISTS = [
    str(model.document["name"]) for model in INDEXES[Collection.JOBS] if "submitted" in str(model.document["name"])
]
_NEW = (
    "calendars",
    "pauses",
    "failovers",
    "routing",
    "names",
    "caps",
    "shares",
    "identities",
    "departures",
    "arrivals",
    "meta",
)
"""The collections that the previous release has not."""
VERSION = MigrationStep(StepKind.VERSION, "1")
EVERYTHING = [
    *(MigrationStep(StepKind.COLLECTION, collection.value) for collection in Collection),
    *(
        MigrationStep(StepKind.INDEX, f"{collection}.{model.document['name']}")
        for collection, models in INDEXES.items()
        for model in models
    ),
    VERSION,
]


class _Killed(BaseException):
    """Nothing handles it, as nothing handles a SIGKILL."""


def _silent(_event: str, _step: MigrationStep, _more: Mapping[str, Any]) -> None:
    pass


@pytest.fixture
async def database(mongodb_uri: str, database_name: str) -> AsyncIterator[Database]:
    """An empty one."""
    async with connect(mongodb_uri) as client:
        yield open_database(client, database_name)


async def _is_whole(database: Database) -> None:
    assert set(await database.list_collection_names()) == set(Collection)
    for collection, models in INDEXES.items():
        names = set(await database[collection.value].index_information())
        assert names == {"_id_"} | {model.document["name"] for model in models}
    assert await database.meta.find_one({}, {"raised_at": False}) == {"_id": "schema", "version": 1, "rev": 1}


async def test_an_empty_database_is_migrated_and_then_nothing_is_missing(database: Database) -> None:
    looked = await migrate(database, _silent, dry_run=True)
    assert (looked.before, looked.after, list(looked.steps)) == (None, 1, EVERYTHING)
    assert await database.list_collection_names() == []
    done = await migrate(database, _silent)
    assert (done.before, done.after, done.steps) == (None, 1, looked.steps)
    await _is_whole(database)
    again = await migrate(database, _silent)
    assert (again.before, again.after, again.steps) == (1, 1, [])
    await _is_whole(database)


async def test_concurrent_migrations_share_the_work(database: Database) -> None:
    done = await asyncio.gather(*(migrate(database, _silent) for _ in range(4)))
    assert [migration.after for migration in done] == [1] * 4
    await _is_whole(database)


async def test_a_migration_cut_short_before_any_step_is_continued_by_the_next(database: Database) -> None:
    done: list[MigrationStep] = []

    def one_step_and_no_more(event: str, step: MigrationStep, _more: Mapping[str, Any]) -> None:
        if event == "migrating" and done and done[-1] not in before:
            raise _Killed
        if event == "migrated":
            done.append(step)

    while True:
        before = set(done)
        try:
            await migrate(database, one_step_and_no_more)
        except _Killed:
            continue
        break
    assert done == EVERYTHING
    await _is_whole(database)


async def test_a_replica_creates_what_is_missing_and_never_raises_the_version(database: Database) -> None:
    await prepare(database)
    assert set(await database.list_collection_names()) == set(Collection)
    assert await database.meta.find_one({}) is None
    assert list((await migrate(database, _silent)).steps) == [VERSION]


@pytest.mark.parametrize(
    ("index", "problem"),
    [
        (
            IndexModel([("state", ASCENDING)], name="state_submitted"),
            "the index 'state_submitted' of jobs is on state, and should be on state, submitted_at_ms, _id;",
        ),
        (
            IndexModel([("tenant", ASCENDING), ("idempotency_key", ASCENDING)], name="idempotency_key"),
            "and should be on tenant, idempotency_key, unique True,",
        ),
        (
            IndexModel([("expire_at", ASCENDING)], name="expire_at", expireAfterSeconds=60, sparse=True),
            "and should be on expire_at, sparse True, expireAfterSeconds 0;",
        ),
        (
            IndexModel([("submitted_at_ms", ASCENDING), ("_id", ASCENDING)], name="mine"),
            "the index 'mine' of jobs is in the place of 'submitted'; drop it: db.jobs.dropIndex(\"mine\")",
        ),
    ],
)
async def test_an_index_of_another_shape_is_named_before_anything_is_changed(
    database: Database, index: IndexModel, problem: str
) -> None:
    await database.jobs.create_indexes([index])
    for attempt in (migrate(database, _silent), migrate(database, _silent, dry_run=True), prepare(database)):
        with pytest.raises(DatabaseUnfit) as refusal:
            await attempt
        assert problem in str(refusal.value)
    assert await database.list_collection_names() == ["jobs"]


async def test_an_additional_index_does_not_prevent_a_migration(database: Database) -> None:
    await migrate(database, _silent)
    await database.jobs.create_indexes([IndexModel([("labels.team", ASCENDING)], name="team")])
    await database.schedules.create_indexes([IndexModel([("state", ASCENDING)], name="state")])
    assert (await migrate(database, _silent)).steps == []


async def _with_the_indexes_of_0_2_0(database: Database) -> list[MigrationStep]:
    await migrate(database, _silent)
    for name in SUPERSEDED[Collection.JOBS]:
        await database.jobs.create_indexes([IndexModel([(name, ASCENDING), ("_id", ASCENDING)], name=name)])
    return [MigrationStep(StepKind.SUPERSEDED, f"jobs.{name}") for name in SUPERSEDED[Collection.JOBS]]


async def test_superseded_indexes_are_dropped(database: Database) -> None:
    superseded = await _with_the_indexes_of_0_2_0(database)
    looked = await migrate(database, _silent, dry_run=True)
    assert (looked.steps, looked.kept) == (superseded, [])
    done = await asyncio.gather(*(migrate(database, _silent) for _ in range(3)))
    assert [migration.kept for migration in done] == [[], [], []]
    await _is_whole(database)


async def test_superseded_indexes_stay_while_an_older_replica_lives(database: Database) -> None:
    superseded = await _with_the_indexes_of_0_2_0(database)
    # What one of this release says of itself is in the heartbeat; an older one does not say it.
    new = {"expire_at": datetime.now(UTC) + timedelta(minutes=1), "reads": 1}
    await database.replicas.insert_many([{"_id": "new", **new, "indexes": 2}, {"_id": "old", **new}])
    for dry_run in (True, False):
        done = await migrate(database, _silent, dry_run=dry_run)
        assert (done.steps, done.kept) == ([], superseded)
        assert done.kept_because == "a replica of the older release uses them; migrate again once it is gone"
        assert not done.is_complete
    await database.replicas.delete_one({"_id": "old"})
    assert (await migrate(database, _silent)).steps == superseded
    await _is_whole(database)


async def test_a_long_index_build_is_reported_and_waited_for(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hascheduler.mongo.schema.migrate._REPORT_EVERY_S", 0.01)
    await database.create_collection("jobs")
    await database.jobs.insert_one({"_id": "a"})
    held = MigrationStep(StepKind.INDEX, "jobs.submitted")
    reported = asyncio.Event()

    def listen(event: str, step: MigrationStep, more: Mapping[str, Any]) -> None:
        if event == "still_migrating" and step == held and more.keys() == {"documents", "for_s"}:
            reported.set()

    # Building begins when no transaction holds the collection any more.
    async with database.client.start_session() as session, await session.start_transaction():
        await database.jobs.insert_one({"_id": "b"}, session=session)
        migrating = asyncio.create_task(migrate(database, listen))
        await asyncio.wait_for(reported.wait(), 60)
        assert not migrating.done()
    assert (await migrating).after == 1
    await _is_whole(database)


# As a command, on what the previous release has left


async def test_a_database_of_the_previous_release_needs_little(
    fleet: Fleet, previous: Release, present: Release
) -> None:
    fleet.release = previous
    await fleet.replica("old")
    await fleet.processor("worker")
    await fleet.schedule("tick", "250ms")
    await fleet.post("/v1/jobs", {"definition": "log", "target": "a"})

    async def fired() -> bool:
        return len(fleet.nominal_times("tick")) > 3

    await eventually(fired, "it fires")
    await fleet.processors["worker"].terminate()
    await fleet.replicas["old"].terminate()
    before = await _stored(fleet)
    fleet.release = present
    indexes = (*_LISTS, "unique_key", "depends_on")
    missing = [
        *({"kind": "collection", "name": name} for name in _NEW),
        *({"kind": "index", "name": f"jobs.{name}"} for name in indexes),
        {"kind": "index", "name": "verdicts.verdict_decided"},
    ]
    superseded = [{"kind": "superseded", "name": f"jobs.{name}"} for name in SUPERSEDED[Collection.JOBS]]
    version = {"kind": "version", "name": "1"}
    status, out, _ = await fleet.command("migrate", "--dry-run")
    assert status == 0
    assert out == (
        "".join(f"would create the collection {name}\n" for name in _NEW)
        + "".join(f"would build the index jobs.{name}\n" for name in indexes)
        + "would build the index verdicts.verdict_decided\n"
        + "".join(f"would drop the index {step['name']}\n" for step in superseded)
        + f"{fleet.database_name} said no schema version, and would have 1\n"
    )  # fmt: skip
    assert await fleet.migrated() == {
        "database": fleet.database_name,
        "dry_run": False,
        "schema_version": {"before": None, "after": 1},
        "steps": [*missing, *superseded, version],
        "kept": [],
    }
    assert (await fleet.migrated())["steps"] == []
    status, out, _ = await fleet.command("migrate")
    assert (status, out) == (0, f"{fleet.database_name} has schema version 1; nothing was missing\n")
    assert await _stored(fleet) == {**before, **{name: [] for name in _NEW if name != "meta"}}
    await fleet.replica("new")
    assert (await fleet.cluster("new"))["counts"]["schedules"] == 1
    fleet.assert_nothing_set_aside()


async def test_the_steps_of_a_migration_are_shown(fleet: Fleet, present: Release) -> None:
    fleet.release = present
    status, out, err = await fleet.command("migrate")
    lines = out.splitlines()
    assert (status, len(lines)) == (0, len(EVERYTHING))
    assert (lines[0], lines[-2]) == ("created the collection definitions", "built the index processors.expire_at")
    assert lines[-1] == f"{fleet.database_name} said no schema version, and has now 1"
    reported = [json.loads(line) for line in err.splitlines()]
    assert [line["step"] for line in reported if line["event"] == "migrated"] == [str(step) for step in EVERYTHING]


async def test_after_a_kill_during_an_index_build_the_next_migration_builds_it(fleet: Fleet, present: Release) -> None:
    fleet.release = present
    async with _held(fleet):
        process = await fleet.start("migrating", "migrate", "--json")
        await eventually(lambda: _builds(fleet), "it waits for the collection")
        await process.kill()
    assert process.output.read_text() == ""
    assert [step["name"] for step in (await fleet.migrated())["steps"] if step["kind"] == "version"] == ["1"]
    assert (await fleet.migrated())["steps"] == []


async def test_on_sigterm_a_migration_ends_between_two_steps(fleet: Fleet, present: Release) -> None:
    fleet.release = present
    async with _held(fleet):
        process = await fleet.start("migrating", "migrate")
        await eventually(lambda: _builds(fleet), "it waits for the collection")
        assert await process.terminate() == 1
    last = (fleet.folder / "migrating.err").read_text().splitlines()[-1]
    assert last == "hascheduler: stopped before its end; what is done stays done, and the next goes on from there"


@asynccontextmanager
async def _held(fleet: Fleet) -> AsyncIterator[None]:
    """No index of jobs can be built meanwhile: a transaction holds the collection."""
    await fleet.database.create_collection("jobs")
    async with fleet.mongo.start_session() as session, await session.start_transaction():
        await fleet.database.jobs.insert_one({"_id": "a"}, session=session)
        yield


async def _builds(fleet: Fleet) -> bool:
    began = fleet.said("migrating", "migrating")
    return bool(began) and bool(began[-1]["step"] == "index jobs.submitted")


async def _stored(fleet: Fleet) -> dict[str, list[Any]]:
    """Every document of every collection but `meta`."""
    names = sorted(set(await fleet.database.list_collection_names()) - {"meta"})
    return {name: await fleet.database[name].find().sort("_id", 1).to_list() for name in names}
