"""`migrate`: of an empty database, repeated, concurrent, cut short, of another shape, and refused."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pymongo import ASCENDING, IndexModel

from hascheduler.errors import DatabaseUnfit
from hascheduler.model import schema_version
from hascheduler.model.collection import Collection
from hascheduler.model.schema_version import MigrationStep, StepKind
from hascheduler.mongo.connection import Database
from hascheduler.mongo.schema.indexes import INDEXES, SUPERSEDED
from hascheduler.mongo.schema.migrate import migrate, prepare, require_readable

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


@pytest.fixture(autouse=True)
async def empty(database: Database) -> None:
    await database.client.drop_database(database.name)


async def _is_whole(database: Database) -> None:
    assert set(await database.list_collection_names()) == set(Collection)
    for collection, models in INDEXES.items():
        names = set(await database[collection.value].index_information())
        assert names == {"_id_"} | {model.document["name"] for model in models}
    assert await database.meta.find_one({}, {"raised_at": False}) == {"_id": "schema", "version": 1, "rev": 1}


async def test_a_migration_is_looked_at_done_and_repeated(database: Database) -> None:
    looked = await migrate(database, _silent, dry_run=True)
    assert (looked.before, looked.after, list(looked.steps)) == (None, 1, EVERYTHING)
    assert await database.list_collection_names() == []
    done = await asyncio.gather(*(migrate(database, _silent) for _ in range(3)))
    assert [migration.after for migration in done] == [1] * 3
    await _is_whole(database)
    again = await migrate(database, _silent)
    assert (again.before, again.after, again.steps) == (1, 1, [])


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
            IndexModel([("submitted_at_ms", ASCENDING), ("_id", ASCENDING)], name="mine"),
            "the index 'mine' of jobs takes the place of 'submitted'; drop it: db.jobs.dropIndex(\"mine\")",
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


async def test_superseded_indexes_stay_while_a_replica_of_0_2_0_lives(database: Database) -> None:
    await migrate(database, _silent)
    for name in SUPERSEDED[Collection.JOBS]:
        await database.jobs.create_indexes([IndexModel([(name, ASCENDING), ("_id", ASCENDING)], name=name)])
    superseded = [MigrationStep(StepKind.SUPERSEDED, f"jobs.{name}") for name in SUPERSEDED[Collection.JOBS]]
    new = {"expire_at": datetime.now(UTC) + timedelta(minutes=1), "reads": 1}
    await database.replicas.insert_many([{"_id": "new", **new, "indexes": 2}, {"_id": "old", **new}])
    for dry_run in (True, False):
        done = await migrate(database, _silent, dry_run=dry_run)
        assert (done.steps, done.kept, done.is_complete) == ([], superseded, False)
    await database.replicas.delete_one({"_id": "old"})
    done = await migrate(database, _silent)
    assert (done.steps, done.kept, done.is_complete) == (superseded, [], True)
    await _is_whole(database)


@pytest.mark.parametrize("collection", [Collection.REPLICAS, Collection.PROCESSORS])
async def test_the_version_is_raised_only_when_all_live_processes_read_it(
    database: Database, collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema_version, "NEWEST_VERSION", 2)
    soon = datetime.now(UTC) + timedelta(hours=1)
    await database[collection.value].insert_many(
        [{"_id": "new.1", "reads": 2, "indexes": 2, "expire_at": soon}, {"_id": "old.1", "expire_at": soon}]
    )
    with pytest.raises(DatabaseUnfit, match=r"can't be raised to 2 yet: old\.1 can't read it"):
        await migrate(database, _silent)
    await database[collection.value].delete_one({"_id": "old.1"})
    assert (await migrate(database, _silent)).after == 2


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"version": 2, "rev": 1}, "the database has schema version 2, but this release reads 1"),
        ({"version": 0, "rev": 1}, "the database has schema version 0, but this release reads 1"),
        ({"version": "1"}, "the schema version in meta: version: '1' (str); expected an integer"),
    ],
)
async def test_a_version_that_this_release_does_not_read_is_refused(
    database: Database, said: dict[str, Any], problem: str
) -> None:
    await database.meta.insert_one({"_id": "schema", **said})
    attempts = (
        require_readable(database), prepare(database), migrate(database, _silent),
        migrate(database, _silent, dry_run=True),
    )  # fmt: skip
    for attempt in attempts:
        with pytest.raises(DatabaseUnfit) as refusal:
            await attempt
        assert problem in str(refusal.value)
    assert await database.list_collection_names() == ["meta"]
