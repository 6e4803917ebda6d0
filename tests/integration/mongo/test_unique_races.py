"""Equal submits of a unique job at two replicas: the one that made the job replaces others, and nothing replaces it."""

from contextlib import suppress
from typing import Any

import pytest
from pymongo.errors import AutoReconnect, DuplicateKeyError

from hascheduler.errors import StoreUnavailable
from hascheduler.model.job import NewJob
from hascheduler.model.limit_keys import OnDuplicate, UniqueKey
from hascheduler.model.values.instants import WallMs
from hascheduler.mongo.connection import Database
from hascheduler.mongo.jobs.submissions import Submissions
from hascheduler.ports import SubmitAnswer
from tests.factories import NOW, make_job

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
