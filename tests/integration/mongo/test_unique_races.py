"""Equal submits of a unique job at two replicas: the one that made the job replaces others, and nothing replaces it."""

import pytest

from hascheduler.model.instants import WallMs
from hascheduler.model.job import NewJob
from hascheduler.model.uniqueness import OnDuplicate, UniqueKey, Uniqueness
from hascheduler.mongo.connection import Database
from hascheduler.mongo.submissions import Submissions
from hascheduler.ports import SubmitAnswer
from tests.factories import NOW, make_job

REPLACE = UniqueKey("u", Uniqueness(on_duplicate=OnDuplicate.REPLACE))


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
