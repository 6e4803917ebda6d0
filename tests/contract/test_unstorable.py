"""All stores: a value that no database can hold is the caller's mistake, and nothing is written."""

from typing import Any

import pytest

from hascheduler.errors import InvalidInput
from hascheduler.model.collection import Collection
from hascheduler.model.job import JobState
from hascheduler.ports import AttemptOutcome
from tests.contract.backends import Backend, on
from tests.contract.checks import AFTER as AT
from tests.contract.job_states import bring_to, stored
from tests.factories import make_job, make_schedule


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


# Not mongomock: it holds anything.
pytestmark = [
    on("memory", "pymongo", "motor"),
    pytest.mark.parametrize(
        "value",
        [
            pytest.param(2**63, id="65 bits"),
            pytest.param({"a\0b": 1}, id="NUL in a name"),
            pytest.param("\ud800", id="half a surrogate pair"),
            pytest.param({1: 2}, id="a name that is no text"),
            pytest.param({1, 2}, id="a set"),
            pytest.param(nested(250), id="too deep"),
        ],
    ),
]


async def test_no_schedule_is_created_from_it(backend: Backend, value: Any) -> None:
    with pytest.raises(InvalidInput):
        await backend.schedules.create(make_schedule(payload=value))
    assert await backend.behind.find(Collection.SCHEDULES, "tick") is None


async def test_no_schedule_is_edited_to_it(backend: Backend, value: Any) -> None:
    before = await backend.schedules.create(make_schedule())
    with pytest.raises(InvalidInput):
        await backend.schedules.edit("tick", 1, {"payload": value})
    assert await backend.schedules.get("tick") == before


async def test_no_job_is_inserted_with_it(backend: Backend, value: Any) -> None:
    with pytest.raises(InvalidInput):
        await backend.jobs.submit(make_job(payload=value))
    assert await backend.jobs.get("a") is None


async def test_no_attempt_ends_with_it(backend: Backend, value: Any) -> None:
    await bring_to(backend, JobState.RUNNING)
    before = await stored(backend)
    with pytest.raises(InvalidInput):
        await backend.work.finish("a", 1, "p1", AttemptOutcome(JobState.SUCCEEDED, result=value), AT)
    assert await stored(backend) == before


async def test_no_late_result_is_stored_with_it(backend: Backend, value: Any) -> None:
    await bring_to(backend, JobState.DISPATCHED)
    before = await stored(backend)
    with pytest.raises(InvalidInput):
        await backend.work.finish("a", 1, "p2", AttemptOutcome(JobState.SUCCEEDED, result=value), AT)
    assert await stored(backend) == before
