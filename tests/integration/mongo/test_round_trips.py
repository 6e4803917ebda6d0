"""Commands to the database: what a lone job sends (the table in docs/explanation/protocol.md), unique jobs in races."""

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest
from pymongo import AsyncMongoClient
from pymongo.errors import AutoReconnect, DuplicateKeyError

from hascheduler.dispatch.decisions import Dispatch
from hascheduler.errors import StoreUnavailable
from hascheduler.model.job import JobState, NewJob
from hascheduler.model.leadership import EntryKind, JournalHead
from hascheduler.model.limit_keys import OnDuplicate, UniqueKey
from hascheduler.model.values.instants import WallMs, from_datetime
from hascheduler.mongo.apply.claims import MongoClaimStore
from hascheduler.mongo.connection import CLIENT_OPTIONS, Database, open_database
from hascheduler.mongo.jobs.store import MongoJobStore
from hascheduler.mongo.jobs.submissions import Submissions
from hascheduler.mongo.journal import MongoJournal
from hascheduler.mongo.work.store import MongoWorkStore
from hascheduler.ports import AttemptOutcome, FinishAnswer, JournalEntry, StartedJob, SubmitAnswer
from tests.contract.backends import RETENTION_MS
from tests.factories import NOW, make_job
from tests.sent_commands import SentCommands

AT = WallMs(NOW + 1_000)
_LONGER_THAN_KEYS_MS = 7 * 24 * 3_600_000


class Stores:
    def __init__(self, database: Database) -> None:
        self.jobs = MongoJobStore(database, RETENTION_MS)
        self.journal = MongoJournal(database)
        self.claims = MongoClaimStore(database, RETENTION_MS)
        self.work = MongoWorkStore(database, _LONGER_THAN_KEYS_MS)

    async def start(self, id: str) -> StartedJob | None:
        return await self.work.start(id, 1, "p", WallMs(AT + 5))

    async def finish(self, id: str, result: Any = None) -> FinishAnswer:
        return await self.work.finish(id, 1, "p", AttemptOutcome(JobState.SUCCEEDED, result=result), WallMs(AT + 10))


@pytest.fixture
async def commands() -> SentCommands:
    return SentCommands()


@pytest.fixture
async def stores(database: Database, mongodb_uri: str, commands: SentCommands) -> AsyncIterator[Stores]:
    options = {**CLIENT_OPTIONS, "event_listeners": [commands]}
    async with AsyncMongoClient[dict[str, Any]](mongodb_uri, **options) as client:
        yield Stores(open_database(client, database.name))


async def test_each_step_of_a_lone_job_is_one_command(stores: Stores, commands: SentCommands) -> None:
    claim = Dispatch("j", 1, "p")
    await stores.jobs.submit(make_job("j"))
    assert await stores.journal.insert(JournalEntry(JournalHead("s", 1, 1, EntryKind.DECISIONS, "r1", 0), AT, (claim,)))
    await stores.claims.apply([claim], AT, majority=False)
    assert await stores.start("j") is not None
    assert await stores.finish("j") is FinishAnswer.DONE
    assert [next(iter(command.items())) for command in commands.taken()] == [
        ("insert", "jobs"),
        ("insert", "journal"),
        ("update", "jobs"),
        ("findAndModify", "jobs"),
        ("find", "definitions"),  # once in two seconds
        ("update", "jobs"),
    ]


@pytest.mark.parametrize("key", [None, "key"])
@pytest.mark.parametrize("result", [None, {"$set": "a result"}])
async def test_a_start_and_an_end_are_plain_updates_without_a_record_for_a_repeat_by_the_driver(
    stores: Stores, commands: SentCommands, result: Any, key: str | None
) -> None:
    """A transaction number asks the server for that record, which is one more write, or two."""
    await stores.jobs.submit(make_job("j", idempotency_key=key, submitted_at_ms=NOW))
    await stores.claims.apply([Dispatch("j", 1, "p")], AT, majority=False)
    commands.taken()
    assert await stores.start("j") is not None
    assert await stores.finish("j", result) is FinishAnswer.DONE
    sent = [command for command in commands.taken() if "find" not in command]
    assert not any("txnNumber" in command for command in sent)
    start, end = sent
    assert [type(update) for update in (start["update"], *(each["u"] for each in end["updates"]))] == [dict, dict]
    stored: Any = await stores.jobs.get("j")
    assert from_datetime(stored["expire_at"]) == AT + 10 + _LONGER_THAN_KEYS_MS
    assert ("kept_until" in stored) is (key is not None)


async def test_a_start_that_waits_for_its_majority_in_vain_has_no_answer(database: Database) -> None:
    """It may have started; the processor asks again."""
    await MongoJobStore(database, RETENTION_MS).submit(make_job("j"))
    await MongoClaimStore(database, RETENTION_MS).apply([Dispatch("j", 1, "p")], AT, majority=True)
    cut_off: Any = _WithoutMajority(database)
    with pytest.raises(StoreUnavailable, match="majority"):
        await MongoWorkStore(cut_off, RETENTION_MS).start("j", 1, "p", AT)
    started = await MongoWorkStore(database, RETENTION_MS).start("j", 1, "p", WallMs(AT + 5))
    assert started is not None
    assert started.started_at_ms == AT


class _WithoutMajority:
    """A database whose commands are carried out by the primary alone."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.codec_options = database.codec_options

    def __getitem__(self, name: str) -> Any:
        return self._database[name]

    async def command(self, command: dict[str, Any], **options: Any) -> dict[str, Any]:
        answer = await self._database.command({**command, "writeConcern": {"w": 1}}, **options)
        return {**answer, "writeConcernError": {"code": 64, "codeName": "WriteConcernTimeout"}}


REPLACE = UniqueKey("u", OnDuplicate.REPLACE)


def again(id: str) -> NewJob:
    return make_job(
        id, unique=REPLACE, submitted_at_ms=WallMs(NOW + 1), idempotency_key="once", request_hash="the same request"
    )


async def states(database: Database) -> dict[str, str]:
    return {job["_id"]: job["state"] for job in await database["jobs"].find({}, ["state"]).to_list(None)}


async def test_a_job_is_not_cancelled_by_a_repeated_submit_of_itself(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = Submissions(database, 60_000), Submissions(database, 60_000)
    await one.submit(make_job("old", unique=REPLACE, submitted_at_ms=NOW))
    take = one._take_unique_key

    async def late(job: NewJob, replaced: dict[str, None]) -> NewJob:
        """It has met the old job; the other replica answers the same request before it goes on."""
        if "new" not in await states(database):
            assert (await other.submit(again("new"))).answer is SubmitAnswer.NEW
        return await take(job, replaced)

    monkeypatch.setattr(one, "_take_unique_key", late)
    answer = await one.submit(again("repeated"))
    assert (answer.answer, answer.document["_id"]) == (SubmitAnswer.KNOWN, "new")
    assert await states(database) == {"old": "cancelled", "new": "pending"}


class _Dying:
    """Jobs whose ``nth`` write is not carried out, or is and nobody learns of it: that replica is dead from then on."""

    def __init__(self, jobs: Any, nth: int, *, carried_out: bool) -> None:
        self._jobs, self._left, self._carried_out = jobs, nth, carried_out

    @property
    def is_dead(self) -> bool:
        return self._left <= 0

    def __getattr__(self, name: str) -> Any:
        if name not in ("insert_one", "update_one", "update_many"):
            return getattr(self._jobs, name)

        async def write(*args: Any, **options: Any) -> Any:
            self._left -= 1
            if not self.is_dead:
                return await getattr(self._jobs, name)(*args, **options)
            if self._left == 0 and self._carried_out:
                with suppress(DuplicateKeyError):
                    await getattr(self._jobs, name)(*args, **options)
            raise AutoReconnect("the replica is dead")

        return write


@pytest.mark.parametrize("carried_out", [False, True])
async def test_a_replica_that_dies_between_two_writes_leaves_a_job_to_run_and_a_key_to_take(
    database: Database, *, carried_out: bool
) -> None:
    deaths: list[str] = []
    for nth in range(1, 99):
        await database["jobs"].delete_many({})
        one, other = Submissions(database, 60_000), Submissions(database, 60_000)
        await other.submit(make_job("old", unique=REPLACE, submitted_at_ms=NOW))
        dying = _Dying(one._jobs, nth, carried_out=carried_out)
        one._jobs = dying  # type: ignore[assignment]  # as far as it is used
        with suppress(StoreUnavailable):
            await one.submit(again("new"))
        left = await states(database)
        assert "pending" in left.values(), f"after write {nth} nothing is left to run"
        # The client asks another replica. It makes the job once, and that one stays.
        met = str((await other.submit(again("repeated"))).document["_id"])
        found = await states(database)
        assert (len(found), found[met]) == (2, "pending"), f"after write {nth}: {found}"
        # Another submit's job takes its place, as if the first one had not died.
        await other.submit(make_job("next", unique=REPLACE, submitted_at_ms=WallMs(NOW + 2)))
        found = await states(database)
        assert (found[met], found["next"]) == ("cancelled", "pending"), f"after write {nth}: {found}"
        deaths.append(left["old"])
        if not dying.is_dead:
            break
    # Its insert collides, the key is taken, the job inserted, and the other cancelled.
    assert len(deaths) > 4
    assert deaths[-1] == "cancelled"
